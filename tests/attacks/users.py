"""Another user on the socket."""
import json
import os
import socket
import time

import wire
from arena import PATH, attack, check

HELD = {"command": ["true"], "hold": True}


def post(arena, body, **options):
    return arena.ask(arena.mallory, "POST", "/v1/jobs", body, **options)


def refused(arena, bodies, allowed=(400, 413)):
    """Each body is refused with one of these; how."""
    found = []
    for body in bodies:
        status, answer = post(arena, body)
        check(status in allowed, f"{str(body)[:100]} is answered with {status}: {str(answer)[:200]}")
        found.append(status)
    return wire.tally(found)


@attack("submits in lists of thousands, to the bound on jobs and beyond")
def submit_flood(arena):
    made, status = 0, 201
    while status == 201 and made <= arena.jobs_bound:
        status, body = post(arena, [HELD] * arena.size(5000, 500), patient=False)
        made += len(body["ids"]) if status == 201 else 0
    check(status == 429 and made <= arena.jobs_bound, f"{made} jobs were taken, then {status}")
    return f"{made} taken, then 429"


@attack("arrays of ten thousand, one at a time, cancelled at once")
def huge_arrays(arena):
    taken = []
    for array in ("0-9999%1", "0-3999999:400", "0-9999") if arena.full else ("0-999%1", "0-4000000:4000"):
        status, body = post(arena, {"command": ["true"], "array": array, "hold": array == "0-9999", "workdir": str(arena.homes[arena.mallory])}, patient=False)
        taken.append(status)
        check(status in (201, 429), f"an array is answered with {status}: {str(body)[:200]}")
    arena.cancel_all(arena.mallory)
    for array in ("0-10000", "9-0", "0-4000001", "0-9%0", "0-9%-1", "0-0:0", "0-9%99999999999999999999", "-1-5", "0-9,0-9,0-9" * 100, "0-99999999999999999999"):
        status, body = post(arena, {"command": ["true"], "array": array})
        check(status in (400, 413), f"the array '{array[:40]}' is answered with {status}")
    return wire.tally(taken) + ", 10 absurd ones refused"


@attack("a chain of thousands of jobs, each waiting for the one before; then the first is cancelled")
def deep_chain(arena):
    first = last = arena.submit(arena.mallory, **HELD)
    connection = arena.unix()
    for _ in range(arena.size(3500, 300)):
        wire.send(connection, wire.request("POST", "/v1/jobs", {"command": ["true"], "depends": f"afterok:{last}"}))
        status, body = wire.read_answer(connection)
        if status == 429:
            break
        check(status == 201, f"a link is answered with {status}")
        last = json.loads(body)["id"]
    connection.close()
    check(arena.ask(arena.mallory, "POST", f"/v1/jobs/{first}/cancel")[0] == 200, "the first cannot be cancelled")
    check(wire.wait_until(lambda: arena.view(arena.mallory, last)["ended_at"] is not None, 120), "the last of the chain does not hear of it")
    return f"{last - first} links, all ended"


@attack("layers of jobs, each waiting for 64 of the layer above; then the top is cancelled")
def dense_layers(arena):
    width = arena.size(1000, 100)
    top = arena.submit(arena.mallory, **HELD)
    above = [top]
    for _ in range(arena.size(20, 4)):
        jobs = [{"command": ["true"], "depends": ",".join(f"afterok:{above[(i * 7 + k) % len(above)]}" for k in range(min(64, len(above))))} for i in range(width)]
        status, body = post(arena, jobs)
        check(status == 201, f"a layer is answered with {status}: {str(body)[:200]}")
        above = body["ids"]
    check(arena.ask(arena.mallory, "POST", f"/v1/jobs/{top}/cancel")[0] == 200, "the top cannot be cancelled")
    check(wire.wait_until(lambda: arena.view(arena.mallory, above[-1])["ended_at"] is not None, 120), "the last layer does not hear of it")
    return "all layers ended"


@attack("one job that everything waits for, finished again and again")
def wide_fans(arena):
    width = arena.size(8000, 300)
    for how in ("afterany", "afterok", "afternotok"):
        root = arena.submit(arena.mallory, **HELD)
        status, body = post(arena, [{"command": ["true"], "hold": True, "depends": f"{how}:{root}"}] * width)
        check(status == 201, f"a fan is answered with {status}: {str(body)[:200]}")
        check(arena.ask(arena.mallory, "POST", f"/v1/jobs/{root}/cancel")[0] == 200, "the root cannot be cancelled")
        arena.cancel_all(arena.mallory)
    return f"3 fans of {width}"


@attack("waiting for oneself, for numbers to come, for numbers that are none")
def impossible_dependencies(arena):
    last = arena.submit(arena.mallory, **HELD)
    numbers = [last + 1, last + 2, last + 1000, 0, -1, 4294967295, 4294967296, 2**63, 2**64, 10**40, "1x", "", "%00", "1:x"]
    result = refused(arena, [{"command": ["true"], "depends": f"afterok:{number}"} for number in numbers], (400, 404, 409))
    refused(arena, [[{"command": ["true"], "depends": f"afterok:{last + 2}"}, {"command": ["true"], "depends": f"afterok:{last + 1}"}]], (400, 404, 409))
    refused(arena, [{"command": ["true"], "depends": ",".join([f"afterok:{last}"] * 65)}, {"command": ["true"], "depends": "afterok:1" * 20_000}], (400, 404, 409, 413))
    return result


@attack("waiting for jobs of others, to learn how they ended")
def foreign_dependencies(arena):
    found = []
    for job in (arena.counters[0][0], arena.waiting[0]):
        for how in ("afterok", "afternotok", "afterany"):
            status, body = post(arena, {"command": ["true"], "depends": f"{how}:{job}"})
            found.append(status)
            check(status in (201, 400, 403, 404, 409), f"answered with {status}: {body}")
    return wire.tally(found)


@attack("4,096 variables of the largest size, to the bound on bytes and beyond")
def large_environments(arena):
    made, status = 0, 201
    while status == 201 and made < 2000:
        tag = os.urandom(8).hex()
        status, body = post(arena, {"command": ["true"], "hold": True, "env": {f"V{i}": tag + "x" * 30 for i in range(4096)}}, patient=False)
        made += status == 201
    check(status == 429 and made > 0, f"{made} environments were taken, then {status}: {str(body)[:200]}")
    return f"{made} taken, then 429"


@attack("one variable of 128 KiB, and everything one beyond a bound")
def beyond_bounds(arena):
    long = "x" * (128 * 1024)
    wrong = [{"env": {"A": long + "x"}}, {"env": {f"V{i}": "" for i in range(4097)}}, {"env": {"": "x"}}, {"env": {"A=B": "x"}}, {"env": {"A\0B": "x"}}, {"name": "n" * 256},
             {"tenant": "t" * 65}, {"comment": "c" * 4097}, {"workdir": "/" + "w" * 4095}, {"stdout": "/" + "s" * 4096}, {"cpus": 65537}, {"retries": 1001}, {"signal": 65}, {"signal": -1},
             {"gpus": 65537}, {"gpus": -1}, {"weight": -1}, {"weight": 10**9}, {"gpu_memory": 2**61}, {"umask": "7777"}, {"command": ["x"] * 4097}, {"command": ["a\0b"]}, {"command": []}, {"workdir": "relative"}]
    return refused(arena, [dict({"command": ["true"]}, **fields) for fields in wrong])


@attack("names at the bound, of every odd kind of character")
def odd_names(arena):
    names = ["\u202e" + "gnp.exe", "e\u0301" * 85, "\u200d" * 85, "\U0001f468\u200d\U0001f469" * 20, "\ufeffx", "\u2028line\u2029", "ﷺ" * 85, "'; DROP TABLE jobs; --", "<script>alert(1)</script>",
             "$(reboot)`reboot`", "%s%n%x%p", '"}\n', "../" * 80, "-rf", "--help", "{{7*7}}", "\ud800", "n\u0000n", "\u001b[31m", "\u009b31m", "a\tb", "\\" * 255, '"' * 255, "\x7f"]
    found = []
    for name in names:
        body = json.dumps({"command": ["true"], "hold": True, "name": name, "comment": name, "tenant": name[:20]}).encode()
        status, answer = post(arena, body)
        check(status in (201, 400, 413), f"{name!r} is answered with {status}: {answer}")
        found.append(status)
    for uid in (0, arena.innocent):
        for command in (["ps", "--all"], ["ps", "--all", "--json"], ["top", "--once"], ["history"]):
            shown = arena.command(*command, uid=uid)
            check(shown.returncode == 0, f"{command} fails: {shown.stderr[:300]}")
            if "--json" not in command:
                bad = [byte for byte in shown.stdout if byte < 32 and byte not in (9, 10)]
                check(not bad and b"\xc2\x9b" not in shown.stdout, f"{command} prints control characters {bad[:5]}")
    check(b"script" not in arena.command("ps", "--all", uid=arena.innocent).stdout, "names are shown to others")
    return wire.tally(found)


@attack("keys for repeated submits: at the bound, beyond it, thousands, with another body")
def idempotency_keys(arena):
    found = []
    for key in ("k" * 128, "k" * 129, "", " ", "\x01", "é" * 64, "k" * 4000):
        status, _ = post(arena, HELD, fields=[("Idempotency-Key", key)])
        check(status in (201, 400, 431), f"a key of {len(key)} is answered with {status}")
        found.append(status)
    status, _ = post(arena, {"command": ["false"], "hold": True}, fields=[("Idempotency-Key", "k" * 128)])
    check(status == 409, f"the same key with another body is answered with {status}")
    # The innocent user's key is theirs, though mallory has the same.
    status, body = arena.ask(arena.innocent, "POST", "/v1/jobs", HELD, fields=[("Idempotency-Key", "k" * 128)])
    check(status == 201, f"another user's key is in the way: {status}")
    arena.acknowledged += body["ids"]
    count = min(arena.size(5000, 200), arena.jobs_bound // 2)
    connection = arena.unix()
    for i in range(count):
        wire.send(connection, wire.request("POST", "/v1/jobs", HELD, [("Idempotency-Key", f"{i:0128d}")]))
        found.append(wire.read_answer(connection)[0])
        if found[-1] == 429:  # Too fast: the body was not read, so that this connection ends.
            connection.close()
            connection = arena.unix()
    connection.close()
    check(set(found) <= {201, 400, 429, 431}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("streams of events that are not read, while thousands of things happen")
def unread_events(arena):
    found = []
    for i in range(arena.size(300, 20)):
        try:
            connection = arena.keep(arena.unix())
            wire.send(connection, wire.head("GET", "/v1/events?after=0" if i % 2 else "/v1/events"))
            connection.settimeout(10)
            found += wire.statuses(connection.recv(300))
        except OSError:
            found.append(0)
    for _ in range(3):
        status, body = post(arena, [HELD] * arena.size(3000, 200))
        check(status in (201, 429), f"answered with {status}")
        arena.cancel_all(arena.mallory)
    return wire.tally(found)


@attack("followers of a log that floods, which do not read it")
def unread_logs(arena):
    job = arena.program_of_job("flood", "import os\nopen(FOLDER + '/flooding', 'w').close()\nfor i in range(%d): os.write(1, b'x' * 65536)\n" % arena.size(1600, 100))
    arena.mine("flooding")
    found = []
    for _ in range(arena.size(200, 20)):
        try:
            connection = arena.keep(arena.unix())
            wire.send(connection, wire.head("GET", f"/v1/jobs/{job}/logs?follow=true"))
            connection.settimeout(10)
            found += wire.statuses(connection.recv(300))
        except OSError:
            found.append(0)
    arena.reaches(job, "CD", "F")
    return wire.tally(found)


@attack("every verb on the innocent user's jobs, by number")
def foreign_jobs(arena):
    found = []
    for job in [arena.counters[0][0], arena.counters[1][0]] + arena.waiting:
        for verb, body in [("cancel", None), ("hold", None), ("release", None), ("requeue", None), ("suspend", None), ("suspend?deep=true", None), ("resume", None),
                           ("limit", {"compute": 1, "gpu_memory": "16M"}), ("move", {"gpus": [7]}), ("move", {})]:
            found.append(arena.ask(arena.mallory, "POST", f"/v1/jobs/{job}/{verb}", body)[0])
        for what in ("why", "logs", "logs?follow=true", "logs?run=1&offset=-100"):
            found.append(arena.ask(arena.mallory, "GET", f"/v1/jobs/{job}/{what}")[0])
    check(set(found) <= {403}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("numbers of jobs that never were, are beyond every bound, or were forgotten")
def odd_numbers(arena):
    found = []
    for number in ("0", "-1", "00", "1e3", "4294967295", "4294967296", "9223372036854775807", "18446744073709551616", "9" * 100, "0x1", "%31", "1%00", "\u0661", "1.0", "1,2", "*", "1?"):
        for verb in ("cancel", "why", "logs", "move"):
            method = "GET" if verb in ("why", "logs") else "POST"
            found.append(arena.ask(arena.mallory, method, f"/v1/jobs/{number}/{verb}", {} if verb == "move" else None)[0])
    check(set(found) <= {400, 403, 404, 405}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("changes of many jobs with one of another user among them")
def mixed_changes(arena):
    status, body = post(arena, [HELD] * arena.size(5000, 200))
    check(status == 201, f"answered with {status}")
    own = body["ids"]
    found = []
    for verb in ("cancel", "hold", "release", "requeue", "suspend", "resume"):
        found.append(arena.ask(arena.mallory, "POST", "/v1/jobs/change", {"verb": verb, "jobs": own + [arena.counters[0][0]], "skip_ended": True})[0])
    check(set(found) == {403}, f"answered with {found}")
    check(arena.view(arena.mallory, own[0])["ended_at"] is None, "half of a refused change was made")
    for body in ({"verb": "cancel", "jobs": [own[0]] * 100_001}, {"verb": "cancel", "jobs": []}, {"verb": "cancel", "jobs": [-1]}, {"verb": "cancel", "jobs": [1.5]}, {"verb": "x", "jobs": own},
                 {"verb": "cancel", "jobs": [2**64]}, {"verb": "cancel", "jobs": "all"}, {"verb": "cancel"}, [], {"verb": "cancel", "jobs": {"1": 2}}):
        status, answer = arena.ask(arena.mallory, "POST", "/v1/jobs/change", body)
        check(status in (400, 404, 413), f"{str(body)[:60]} is answered with {status}")
    status, _ = arena.ask(arena.mallory, "POST", "/v1/jobs/change", {"verb": "cancel", "jobs": own * (100_000 // len(own))})
    check(status == 200, f"naming jobs many times is answered with {status}")
    return wire.tally(found) + ", 10 absurd ones refused"


@attack("the innocent user's tenant, and every weight and class, to push running jobs out")
def foreign_tenant(arena):
    jobs = []
    for fields in ({"tenant": f"uid{arena.innocent}", "weight": 1_000_000, "gpus": 8}, {"class": "opportunistic", "gpus": 8}, {"class": "auto", "gpus": 7, "weight": 1_000_000},
                   {"gpus": "1-8", "weight": 999_999}, {"gpus": 8, "deadline": "2026-01-01T00:00:00Z", "weight": 1_000_000}, {"gpus": 8, "min_gpus": 1, "max_gpus": 8}):
        status, body = post(arena, dict({"command": ["sleep", "3"], "workdir": "/"}, **fields))
        check(status in (201, 400), f"{fields} is answered with {status}: {body}")
        jobs += body["ids"] if status == 201 else []
    time.sleep(0.5)
    return f"{len(jobs)} jobs wait or run beside"


@attack("times that are absurd: negative, not a number, of ten thousand years")
def absurd_times(arena):
    values = [-1, "-1", "1e400", "NaN", "inf", "9999999999999999999d", "99:99:99:99", "", " ", "1y", "0x10", "\u0665m", "1-1-1-1", "1s1", [1], {"s": 1}, True]
    result = refused(arena, [{"command": ["true"], "gpus": 2, field: value} for field in ("time_limit", "grace", "prerun", "expected", "lease") for value in values])
    for raw in (b'{"command":["true"],"time_limit":1e999}', b'{"command":["true"],"grace":123456789012345678901234567890}', b'{"command":["true"],"lease":-0.0000001,"on_lost":"restart"}'):
        status, body = post(arena, raw)
        check(status == 400, f"{raw} is answered with {status}: {body}")
    whens = ["0000-00-00T00:00:00Z", "9999-12-31T23:59:60Z", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00+99:99", "now", "-1", "2026-01-01T00:00:00." + "9" * 1000 + "Z", "292277026596-12-04T15:30:08Z"]
    for when in whens:
        check(post(arena, {"command": ["true"], "hold": True, "deadline": when})[0] in (201, 400), f"a deadline of {when[:40]}")
        check(arena.ask(arena.mallory, "GET", f"/v1/jobs?since={when.replace('+', '%2B')}")[0] in (200, 400), f"since {when[:40]}")
    # The longest that is allowed, on jobs that run.
    job = arena.submit(arena.mallory, command=["true"], gpus=2, time_limit="36500d", grace="36500d", prerun="36500d", expected="36500d")
    arena.reaches(job, "CD", "F")
    return result


@attack("patterns in the names of output files that grow without end")
def growing_patterns(arena):
    for stdout in ("/" + "%x" * 2000, "%x" * 1000 + "%", "%j%A%a%x%u%N%%" * 200, "%", "%q", "%" * 4000, "%999999999d", "%n%s"):
        job_status, body = post(arena, {"command": ["true"], "name": "n" * 255, "stdout": stdout, "workdir": str(arena.homes[arena.mallory])})
        check(job_status in (201, 400), f"'{stdout[:20]}' is answered with {job_status}")
        if job_status == 201:
            arena.reaches(body["id"], "CD", "F", "NF")
    return "each is its own job's trouble"


@attack("output into folders of others, devices, proc, folders, links, and places that cannot be")
def foreign_outputs(arena):
    home, theirs = arena.homes[arena.mallory], arena.homes[arena.innocent]
    before = {path.name for path in theirs.iterdir()}
    for name, target in (("link", theirs / "count-0"), ("loop", home / "loop"), ("token", arena.state / "tokens")):
        (home / name).symlink_to(target)
    places = [theirs / "stolen", theirs / "count-0", "/dev/full", "/dev/mem", "/dev/null", "/dev/tty", "/proc/self/mem", "/proc/1/mem", "/proc/sysrq-trigger", home, home / "link", home / "loop",
              home / "token", arena.state / "journal.db", "/etc/passwd", home / "none" / "x", "/sys/kernel/x", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/3"]
    for place in places:
        for field in ("stdout", "stderr"):
            status, body = post(arena, {"command": ["sh", "-c", "echo stolen; echo stolen >&2"], field: str(place), "workdir": str(home), "env": {"PATH": PATH}})
            check(status in (201, 400), f"output to {place} is answered with {status}")
            if status == 201:
                arena.reaches(body["id"], "CD", "F")
    after = {path.name for path in theirs.iterdir() if not path.name.endswith(".new")}
    check(after <= before | {"count-0", "count-1"}, f"there are new files of others: {after - before}")
    check(b"stolen" not in (theirs / "count-0").read_bytes(), "a job wrote into another user's file")
    return f"{2 * len(places)} jobs ended"


@attack("a fifo that nothing reads as output, and as folder and input")
def fifo_output(arena):
    home = arena.homes[arena.mallory]
    os.mkfifo(home / "fifo", 0o666)
    os.chown(home / "fifo", arena.mallory, arena.mallory)
    stuck = [arena.submit(arena.mallory, command=["echo", "x"], stdout=str(home / "fifo")), arena.submit(arena.mallory, command=["echo", "x"], stderr=str(home / "fifo")),
             arena.submit(arena.mallory, command=["cat", str(home / "fifo")]), arena.submit(arena.mallory, command=["true"], workdir=str(home / "fifo"))]
    after = arena.submit(arena.mallory, command=["true"])
    arena.reaches(after, "CD")
    states = [arena.view(arena.mallory, job)["state"] for job in stuck]
    arena.cancel_all(arena.mallory)
    for job in stuck:
        arena.reaches(job, "CD", "F", "CA")
    return f"the next job ran; these were {' '.join(states)}"


@attack("a token that was taken back: requests, open streams, and guesses at its neighbours")
def revoked_token(arena):
    name, token = arena.token("user", "--user", str(arena.mallory))
    fields = [("Authorization", f"Bearer {token}")]
    stream = arena.keep(arena.tcp())
    wire.send(stream, wire.head("GET", "/v1/events", fields))
    check(b" 200 " in stream.recv(100), "the token is not good")
    arena.revoke(name)
    found = []
    for i in range(arena.size(1000, 50)):
        value = token if i % 2 else f"{(int(token, 16) ^ 1 << i % 256):064x}"
        with arena.tcp() as connection:
            wire.send(connection, wire.request("POST", "/v1/jobs", HELD, [("Authorization", f"Bearer {value}"), ("Connection", "close")]))
            found.append(wire.read_answer(connection)[0])
    check(set(found) <= {401, 429}, f"answered with {set(found)}")
    wire.read_all(stream)
    return wire.tally(found)


@attack("ranges of logs that are none")
def log_ranges(arena):
    job = arena.submit(arena.mallory, command=["echo", "twelve bytes"])
    arena.reaches(job, "CD")
    found = []
    for query in ("offset=-9223372036854775808", "offset=9223372036854775807", "offset=9223372036854775808&limit=1", "limit=0", "limit=-1", "limit=18446744073709551615", "offset=1e9", "offset=&limit=",
                  "run=0", "run=4294967295", "run=-1", "run=../1", "run=99999999999", "follow=maybe", "offset=5&offset=6", "x=y", "offset=%00", "follow=true&offset=99999999"):
        found.append(arena.ask(arena.mallory, "GET", f"/v1/jobs/{job}/logs?{query}")[0])
    for value in ("bytes=0-", "bytes=-5", "bytes=5-1", "bytes=0-0,1-1,2-2" + ",3-3" * 2000, "lines=1-2", "bytes=99999999999999999999-"):
        found.append(arena.ask(arena.mallory, "GET", f"/v1/jobs/{job}/logs", fields=[("Range", value)])[0])
    check(set(found) <= {200, 400, 404, 416, 206}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("lists with absurd cursors, limits and filters")
def absurd_queries(arena):
    found = []
    for query in ("limit=0", "limit=1001", "limit=-5", "limit=99999999999999999999", "cursor=-1", "cursor=18446744073709551615", "cursor=99999999999", "order=sideways", "state=" + "PD," * 1000,
                  "state=%2525", "user=nobody-at-all", "user=4294967295", "user=-1", "name=" + "*" * 3000, "name=" + "%2A" * 1000, "asked=true&limit=1000", "since=&until=", "a=b&" * 800, "limit=1&limit=2",
                  "name=%ff%fe", "name=%00", "cursor=1&order=desc&state=ended&user=me&name=x*", "=", "&&&&", "%"):
        found.append(arena.ask(arena.mallory, "GET", f"/v1/jobs?{query}")[0])
    for query in ("after=-1", "after=99999999999999999999", "job=0", "job=-1", "after=x", "job=" + "1" * 3000):
        with arena.unix() as connection:
            wire.send(connection, wire.head("GET", f"/v1/events?{query}"))
            found += wire.statuses(connection.recv(4096)) or [0]
    check(set(found) <= {200, 400, 404, 414, 431}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("JSON that is deep, doubled, long, or not quite JSON")
def odd_json(arena):
    bodies = [b"[" * 100_000, b'{"command":' * 50_000, b"[" * 2000 + b"]" * 2000, b'{"command":["true"],"command":["false"],"command":[]}', b'\xef\xbb\xbf{"command":["true"]}', b'{"command":["\xff\xfe"]}',
              b'{"command":["\\ud800"]}', b'{"command":["true"],"gpus":1' + b"0" * 100_000 + b"}", b'{"command":["true"],"gpus":0.' + b"1" * 100_000 + b"}", b'{"command":["true"]}garbage', b"null", b"1", b'""', b"",
              b"\x00" * 1000, b'{"command":["true"],"' + b"k" * 200_000 + b'":1}', b'{"command":["true"],"\\u0000":1}', b'{"command":["a\\u0000b"]}', b"[" + b"{}," * 20_000 + b"{}]", b"{" + b'"a":1,' * 30_000 + b'"b":1}',
              b'{"command":["true"],"gpus":-0}', b'{"command":["true"],"gpus":1e1}', b'{"command":["true"],"__proto__":{}}', json.dumps([{"command": ["x" * 1000]}] * 10_001).encode()]
    return refused(arena, bodies, (400, 413))


@attack("bodies of megabytes that are nothing but parts, in one job, one change, one list")
def many_parts(arena):
    size = arena.size(15, 3) << 20
    found = []
    for target, body in (("/v1/jobs", b'[{"env":[' + b"[]," * (size // 3) + b"[]]}]"), ("/v1/jobs", b"[" + b"1," * (size // 2) + b"1]"), ("/v1/jobs", b"[" + b'{"a":1},' * (size // 8) + b"1]"),
                         ("/v1/jobs", b" " * size), ("/v1/jobs", b'[{"command":["' + b"x" * size + b'"]}]'), ("/v1/jobs/change", b'{"verb":"cancel","jobs":[' + b"[]," * 690_000 + b"1]}"),
                         ("/v1/jobs/change", b'{"verb":"' + b"c" * 2_000_000 + b'"}')):
        found.append(arena.ask(arena.mallory, "POST", target, body)[0])
    check(set(found) <= {400, 413}, f"answered with {found}")
    return wire.tally(found)


@attack("changes of tens of thousands of jobs that have left the state, and of numbers that never were")
def past_changes(arena):
    count = min(arena.size(30_000, 1500), arena.jobs_bound)
    ids = []
    while len(ids) < count:
        status, body = post(arena, [HELD] * min(5000, count - len(ids)))
        check(status == 201, f"answered with {status}")
        ids += body["ids"]
        arena.cancel_all(arena.mallory)
    found = []
    for verb in ("cancel", "hold", "release", "requeue", "suspend", "resume"):
        for jobs in (ids, list(range(1, ids[-1] + 1))[-100_000:]):
            found.append(arena.ask(arena.mallory, "POST", "/v1/jobs/change", {"verb": verb, "jobs": jobs, "skip_ended": True})[0])
    check(set(found) <= {200, 403, 404, 409}, f"answered with {found}")
    return f"{ids[-1]} jobs were; " + wire.tally(found)


@attack("lists that look through everything and find nothing, on all connections, forwards and back")
def scans(arena):
    queries = ("name=none&state=ended", "name=none*&order=desc", f"user={arena.innocent}&state=CD&order=desc", "user=4294967294&state=ended", "since=2001-01-01T00:00:00Z&until=2001-01-02T00:00:00Z",
               "since=2096-01-01T00:00:00Z&order=desc", "state=OOM&order=desc", "state=ended&asked=true&limit=1000", "state=F,TO,NF&user=me&name=a*", "user=no-such-user-anywhere", "state=ended&cursor=4294967294&order=desc")
    found, cursor = [], {}
    connections = [arena.unix() for _ in range(arena.size(60, 6))]
    for _ in range(arena.size(20, 3)):
        for i, connection in enumerate(connections):
            query = queries[i % len(queries)]
            wire.send(connection, wire.request("GET", f"/v1/jobs?{query}" + (f"&cursor={cursor[i]}" if cursor.get(i) and "cursor" not in query else "")))
        for i, connection in enumerate(connections):
            status, body = wire.read_answer(connection)
            found.append(status)
            cursor[i] = json.loads(body).get("next") if status == 200 else 0
    for connection in connections:
        connection.close()
    check(set(found) <= {200, 404, 429}, f"answered with {wire.tally(found)}")
    return wire.tally(found)


@attack("streams of events from the first on, of all jobs and of jobs that are past, while thousands of things happen")
def filtered_events(arena):
    status, body = post(arena, [HELD] * arena.size(3000, 100))
    check(status == 201, f"answered with {status}")
    found = []
    for i in range(arena.size(120, 10)):
        connection = arena.keep(arena.unix())
        job = body["ids"][i] if i % 3 == 0 else i + 1 if i % 3 == 1 else None
        wire.send(connection, wire.head("GET", "/v1/events?after=0" + (f"&job={job}" if job else ""), [("Last-Event-ID", "1")] if i % 2 else []))
    for _ in range(3):
        status, _ = post(arena, [HELD] * arena.size(3000, 100))
        check(status in (201, 429), f"answered with {status}")
        arena.cancel_all(arena.mallory)
        for connection in arena.kept:
            found.append(len(wire.read_all(connection, 0.01, 1 << 16)) > 0)
    return wire.tally(found)


@attack("arrays that wait for arrays, held, let go, requeued and cancelled as a whole")
def array_fans(arena):
    width = arena.size(5000, 300)
    found = []
    for how in ("afterok", "afterany", "aftercorr"):
        status, body = post(arena, {"command": ["true"], "array": f"0-{width - 1}%7", "hold": True})
        if status == 429:
            break
        check(status == 201, f"an array is answered with {status}: {str(body)[:200]}")
        first = body["ids"]
        status, body = post(arena, [{"command": ["true"], "array": f"0-{width // 10}%3", "depends": f"{how}:{first[k]}", "hold": True} for k in range(8)])
        check(status in (201, 400), f"arrays that wait are answered with {status}: {str(body)[:200]}")
        fans = body["ids"] if status == 201 else []
        for verb in ("release", "hold", "release", "requeue", "suspend", "resume", "cancel"):
            found.append(arena.ask(arena.mallory, "POST", "/v1/jobs/change", {"verb": verb, "jobs": (fans + first)[::-1], "skip_ended": True})[0])
        arena.cancel_all(arena.mallory)
    check(set(found) <= {200, 409}, f"answered with {found}")
    return wire.tally(found)


@attack("every connection that a user may have, each with a large answer that is read a byte at a time")
def slow_readers(arena):
    status, body = post(arena, [dict(HELD, env={f"V{i}": "x" * 2000 for i in range(20)})] * 200)
    check(status in (201, 429), f"answered with {status}")
    targets = ("/v1/jobs?limit=1000&asked=true&order=desc", "/v1/nodes", "/v1/jobs?limit=1000&order=desc", "/openapi.json")
    connections = []
    for i in range(arena.size(240, 20)):
        connection = arena.keep(arena.unix())
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        wire.pour(connection, wire.request("GET", targets[i % len(targets)]) * 20, 0.01)
        connections.append(connection)
    taken = 0
    for _ in range(arena.size(30, 5)):
        for connection in connections:
            connection.setblocking(False)
            try:
                taken += len(connection.recv(1))
            except OSError:
                pass
    return f"{len(connections)} readers, {taken} bytes taken"


@attack("connections beyond the bound, again and again: each hears 429, and a cancel comes through once there is room")
def beyond_connections(arena):
    job = arena.submit(arena.mallory, **HELD)
    for _ in range(256):
        connection = arena.keep(arena.unix())
        wire.send(connection, wire.head("POST", "/v1/jobs", [("Content-Length", "1000")]) + b" ")
    found = []
    for _ in range(arena.size(600, 100)):
        connection = arena.keep(arena.unix())
        wire.send(connection, wire.request("POST", f"/v1/jobs/{job}/hold"))
        found.append(wire.read_answer(connection)[0])
    check(set(found) <= {200, 429}, f"answered with {wire.tally(found)}")
    made = arena.command("cancel", str(job), uid=arena.mallory)
    check(made.returncode == 0, f"a cancel does not come through: {made.stderr[:300]}")
    return wire.tally(found) + ", then cancelled"


@attack("every connection that a user may have, each asking as fast as it can")
def request_flood(arena):
    data = wire.request("GET", "/v1/jobs?limit=1000") * arena.size(200, 20)
    connections = []
    for _ in range(arena.size(256, 30)):
        try:
            connections.append(arena.keep(arena.unix()))
        except OSError:
            break
    sent = sum(wire.pour(connection, data, 0.02) for connection in connections)
    return f"{sent} bytes of requests on {len(connections)} connections"


@attack("costly requests on all connections at once: a request of another user that came after them is not answered last")
def in_line(arena):
    status, body = post(arena, [HELD] * min(1000, arena.jobs_bound))
    check(status == 201, f"answered with {status}")
    for _ in range(3):
        mine = [arena.keep(arena.unix()) for _ in range(200)]
        for connection in mine:
            connection.setblocking(False)
        with arena.unix(arena.innocent) as other:
            # All of it is there when the controller looks.
            with arena.standing_still("controller"):
                for connection in mine:
                    connection.send(wire.request("GET", "/v1/jobs?limit=1000&order=desc"))
                wire.send(other, wire.request("GET", "/v1/cluster"))
            check(wire.read_answer(other)[0] == 200, "the other user is not answered")
            answered = sum(has_data(connection) for connection in mine)
        arena.drop()
        # How many were answered meanwhile depends on the machine; with turns it is never all of them, except where this test itself was kept waiting.
        if answered < len(mine):
            return f"answered after {answered} of {len(mine)}"
    check(False, f"the other user was answered after all {len(mine)}")


def has_data(connection):
    try:
        return len(connection.recv(1, socket.MSG_PEEK)) > 0
    except OSError:
        return False


@attack("lists of jobs that fail at the last one, so that something is ready in every round: what another user submits is stored all the same")
def failing_lists(arena):
    data = wire.request("POST", "/v1/jobs", [{"command": ["true"]}] * 1000 + [{"command": 5}])
    for _ in range(3):
        mine = [arena.keep(arena.unix()) for _ in range(arena.size(60, 30))]
        with arena.unix(arena.innocent) as other:
            # All of it is there when the controller looks.
            with arena.standing_still("controller"):
                lists = sum(wire.pour(connection, data * 4, 0) // len(data) for connection in mine)
                wire.send(other, wire.request("POST", "/v1/jobs", HELD))
            status, body = wire.read_answer(other)
            check(status == 201, f"the other user's submit is answered with {status}")
            arena.acknowledged += json.loads(body)["ids"]
            answered = sum(len(answers_there(connection)) for connection in mine)
        arena.drop()
        # As above: it is never all of them, except where this test itself was kept waiting.
        if answered < lists:
            return f"stored after {answered} of {lists}"
    check(False, f"the other user's submit was stored after all {lists} lists")


def answers_there(connection):
    connection.setblocking(False)
    try:
        return wire.statuses(connection.recv(1 << 20))
    except OSError:
        return []


@attack("bodies that are announced large and come a byte at a time")
def slow_bodies(arena):
    found = []
    for _ in range(arena.size(40, 8)):
        connection = arena.keep(arena.unix())
        wire.send(connection, wire.head("POST", "/v1/jobs", [("Content-Length", "15000000"), ("Content-Type", "application/json")]))
        for _ in range(5):
            wire.send(connection, b" ")
        connection.settimeout(0.05)
        try:
            found += wire.statuses(connection.recv(300)) or [0]
        except OSError:
            found.append("taken")
    return wire.tally(found)


@attack("a job of its own that is held, let go, requeued, suspended and limited hundreds of times")
def churn(arena):
    job = arena.submit(arena.mallory, command=["sleep", "600"], grace=1)
    arena.reaches(job, "R")
    found = []
    steps = [("suspend", None), ("resume", None), ("hold", None), ("release", None), ("requeue", None), ("limit", {"compute": 1}), ("limit", {"compute": None}), ("limit", {"gpu_memory": "16M"}), ("move", {}),
             ("move", {"gpus": [99]}), ("move", {"gpus": [0, 0]}), ("limit", {"compute": 0}), ("limit", {"gpu_memory": 1}), ("limit", {}), ("suspend?deep=true", None), ("resume", None)]
    connection = arena.unix()
    for i in range(arena.size(2000, 160)):
        verb, body = steps[i % len(steps)]
        wire.send(connection, wire.request("POST", f"/v1/jobs/{job}/{verb}", body))
        found.append(wire.read_answer(connection)[0])
    connection.close()
    check(set(found) <= {200, 400, 409, 429}, f"answered with {set(found)}")
    return wire.tally(found)


@attack("jobs that end at once and are tried again a thousand times")
def retry_storm(arena):
    status, body = post(arena, [{"command": ["sh", "-c", "echo CUDA error: out of memory; kill -9 $$"], "retries": 1000, "workdir": "/"}, {"command": ["/nonexistent"], "retries": 1000},
                                {"command": ["sh", "-c", "exit 1"], "retries": 1000}] * arena.size(20, 4))
    check(status == 201, f"answered with {status}: {body}")
    time.sleep(arena.size(10, 1))
    epochs = [arena.view(arena.mallory, job)["epoch"] for job in body["ids"]]
    return f"{len(epochs)} jobs, {sum(epochs)} runs so far"


@attack("programs that are none: folders, links to themselves, thousands of arguments, variables of the loader")
def odd_programs(arena):
    home = arena.homes[arena.mallory]
    (home / "self").symlink_to("self")
    (home / "script").write_text("#!" + "/" * 300 + "\n")
    (home / "script").chmod(0o755)
    requests = [{"command": ["/"]}, {"command": [str(home / "self")]}, {"command": [str(home / "script")]}, {"command": ["a" * 100_000]}, {"command": ["true"] + ["x"] * 4095}, {"command": ["", ""]},
                {"command": ["true"], "env": {"LD_PRELOAD": "/nonexistent.so", "LD_LIBRARY_PATH": str(home), "PATH": PATH}}, {"command": ["true"], "env": {"PATH": ""}}, {"command": "exit 3; " + "#" * 100_000},
                {"command": ["env"], "env": {"SHAREWELL_JOB": "1", "SHAREWELL_NODE": "evil", "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7", "PATH": PATH}}, {"command": ["true"], "workdir": "/root"},
                {"command": ["true"], "workdir": "/proc/self/fd/0"}, {"command": ["true"], "workdir": "/nonexistent"}, {"command": ["true"], "signal": 9}, {"command": ["true"], "memory": 2**59, "cpus": 65536},
                {"command": ["true"], "gpus": 65536}, {"command": ["true"], "gpu_memory": 2**60}]
    found = []
    for request in requests:
        status, body = post(arena, dict({"workdir": str(home)}, **request))
        check(status in (201, 400, 409), f"{str(request)[:80]} is answered with {status}: {str(body)[:200]}")
        found.append(status)
    check(arena.submit_and_end(), "the next job does not run")
    return wire.tally(found)


@attack("what is for operators and agents, and the innocent user's name in every header")
def foreign_roles(arena):
    found = []
    for target, body in (("/v1/policy", {"name": "chaos"}), ("/v1/quota", {"tenant": f"uid{arena.innocent}", "gpus": 0}), ("/v1/nodes", {"name": "here", "closed": True}),
                         ("/v1/nodes", {"name": "here", "removed": True}), ("/v1/agents/sync", {"node": "here", "instance": "x", "number": 1})):
        for fields in ([], [("Authorization", "Bearer " + "0" * 64)], [("X-User", "root"), ("X-Uid", "0")]):
            found.append(arena.ask(arena.mallory, "POST", target, body, fields)[0])
    check(set(found) <= {401, 403}, f"answered with {set(found)}")
    for fields in ({"uid": 0}, {"user": "root"}, {"gid": 0}):
        status, _ = post(arena, dict(HELD, **fields))
        check(status == 400, f"a request with {fields} is answered with {status}")
    return wire.tally(found)
