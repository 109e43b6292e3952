"""A supervisor of version 0.1, as far as leases go. Usage: old_supervisor.py RUN_FOLDER COMMAND...

Runs the command, obeys the lines of the control socket that matter here, and kills the command without a signal of its own at the end of its lease, which is 30 s at first.
Writes exit.json when the command has ended. It listens OLD_SILENT_S after it has begun.
"""
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import time


def boot_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def main():
    os.chdir(sys.argv[1])
    lock = open("spec.json", "r+")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    job, epoch = map(int, os.path.basename(os.getcwd()).split("."))
    lease = boot_ns() + int(os.environ.get("OLD_LEASE_S", "30")) * 10**9
    run = subprocess.Popen(sys.argv[2:], start_new_session=True)
    account = {"job": job, "epoch": epoch, "state": "running", "code": 0, "signal": 0, "pid": run.pid, "started_at_ns": time.time_ns(),
               "ended_at_ns": 0, "reason": "", "log_bytes": 0, "supervisor": os.getpid()}
    with open("pid", "w") as file:
        file.write(f"{os.getpid()} 0 0\n")
    with open("status.json", "w") as file:
        json.dump(account, file)
    time.sleep(float(os.environ.get("OLD_SILENT_S", "0")))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("supervisor.sock")
    listener.listen()
    clients = {}
    while run.poll() is None:
        if boot_ns() >= lease:
            os.killpg(run.pid, 9)
            account["reason"] = "lease"
        for ready in select.select([listener, *clients], [], [], 0.1)[0]:
            if ready is listener:
                clients[listener.accept()[0]] = b""
                continue
            data = ready.recv(4096)
            if not data:
                del clients[ready]
                continue
            *lines, clients[ready] = (clients[ready] + data).split(b"\n")
            for line in lines:
                words = line.split()
                if words[:1] == [b"lease"]:
                    lease = max(lease, int(words[1]))
                elif words[:1] == [b"status"]:
                    ready.sendall(json.dumps(account).encode() + b"\n")
    code = run.wait()
    account |= {"state": "exited", "code": max(code, 0), "signal": max(-code, 0), "ended_at_ns": time.time_ns()}
    with open("exit.new", "w") as file:
        json.dump(account, file)
    os.rename("exit.new", "exit.json")
    for client in clients:
        client.sendall(json.dumps(account).encode() + b"\n")


main()
