"""What happens to the jobs of a live cluster, as 'sim --events-out' says it of simulated ones: lines "start 1", "stop 1", "resume 1", "end 1", in their order. Usage: watch.py SOCKET OUTPUT

The jobs are looked at again and again. What happened between two looks is put in order by what the jobs say: how often each was stopped, when it started and ended. That is exact for jobs of
which one runs at a time, as long as none is stopped twice between two looks.
"""
import http.client
import json
import socket
import sys
import time

runs, stops = {}, {}  # by job: whether it runs, None when it is over; how often it was stopped


def jobs():
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(sys.argv[1])
    connection.request("GET", "/v1/jobs?limit=1000")
    found = json.load(connection.getresponse())["jobs"]
    connection.close()
    return found


def news(job):
    """What happened to it since the last look, each with its place in the order of that time."""
    number, state = job["id"], job["state"]
    is_over = job.get("ended_at") is not None
    is_on = state in ("CF", "R", "CG") or is_over
    start = (1, job.get("started_at") or "9", 1)
    if runs.get(number, False) is None:
        return
    if number not in runs and (is_on or job["preemptions"] > 0):
        runs[number] = True
        yield start, "start", number
    for _ in range(stops.get(number, 0), job["preemptions"]):
        runs[number] = False
        yield (0,), "stop", number
    stops[number] = job["preemptions"]
    if is_on and runs.get(number) is False:
        runs[number] = True
        yield (2,), "resume", number
    if is_over:
        runs[number] = None
        yield (1, job["ended_at"], 0) if number not in stops or stops[number] == 0 else (3,), "end", number


with open(sys.argv[2], "w", buffering=1) as output:
    while True:
        for _, what, number in sorted(event for job in jobs() for event in news(job)):
            output.write(f"{what} {number}\n")
        time.sleep(0.05)
