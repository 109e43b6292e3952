"""A caller with an agent's token: a node that lies."""
import json

import wire
from arena import attack, check


class Rogue:
    """Speaks as an agent over TCP, with a token of its own."""

    def __init__(self, arena, *options):
        self.arena = arena
        self.name, token = arena.token("agent", *options)
        self.fields = [("Authorization", f"Bearer {token}")]
        self.numbers = {}
        self.nodes = set()

    def body(self, node, gpus=2, **more):
        self.numbers[node] = self.numbers.get(node, 0) + 1
        self.nodes.add(node)
        message = {"node": node, "home": "f" * 32, "start": 1, "instance": "00000001", "number": self.numbers[node], "have": 0,
                   "inventory": {"cpus": 8, "memory_bytes": 1 << 36, "gpus": [{"uuid": f"GPU-{node[:16]}-{i}", "name": "Invented", "memory_bytes": 16 << 30} for i in range(gpus)]},
                   "jobs": [], "samples": []}
        message.update(more)
        return {name: value for name, value in message.items() if value is not None}

    def send(self, connection, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return wire.send(connection, wire.request("POST", "/v1/agents/sync", data, self.fields))

    def say(self, body, seconds=12):
        """Status and answer of one sync; the controller may keep it for ten seconds."""
        with self.arena.tcp() as connection:
            connection.settimeout(seconds * 5)
            self.send(connection, body)
            status, data = wire.read_answer(connection)
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data

    def tell(self, bodies, allowed):
        found = []
        for body in bodies:
            status, answer = self.say(body)
            check(status in allowed, f"{str(body)[:150]} is answered with {status}: {str(answer)[:200]}")
            found.append(status)
        return wire.tally(found)

    def leave(self):
        """Its nodes take no more jobs."""
        for node in self.nodes:
            self.arena.ask(0, "POST", "/v1/nodes", {"name": node, "closed": True})
        self.arena.revoke(self.name)


def node_view(arena, name):
    status, body = arena.ask(0, "GET", "/v1/nodes")
    check(status == 200, f"the list of nodes is answered with {status}")
    found = [node for node in body["nodes"] if node["name"] == name]
    return found[0] if found else None


def shown_well(arena):
    """What people and Prometheus see has no control characters, and the innocent node is as it was."""
    for command in (["nodes"], ["nodes", "--gpus"], ["top", "--once"]):
        shown = arena.command(*command)
        check(shown.returncode == 0, f"{command} fails: {shown.stderr[:300]}")
        bad = [byte for byte in shown.stdout if byte < 32 and byte not in (9, 10)]
        check(not bad and b"\xc2\x9b" not in shown.stdout, f"{command} prints control characters {bad[:5]}")
    arena.figures()
    here = node_view(arena, "here")
    check(here["up"] and here["gpus"] == 8 and not here["closed"], f"the innocent node is {here}")


@attack("nodes with no GPUs, 65, 256 and 257 of them")
def counts_of_gpus(arena):
    rogue = Rogue(arena)
    found = {count: rogue.say(rogue.body(f"count{count}", count))[0] for count in (0, 1, 64, 65, 256, 257, 5000)}
    check(set(found.values()) <= {200, 400, 403, 404, 409, 413}, f"answered with {found}")
    shown_well(arena)
    rogue.leave()
    return str(found)


@attack("the same GPU twice, and GPUs of the innocent node")
def doubled_gpus(arena):
    rogue = Rogue(arena)
    theirs = [gpu["uuid"] for gpu in node_view(arena, "here")["devices"]]

    def with_uuids(node, uuids):
        body = rogue.body(node)
        body["inventory"]["gpus"] = [{"uuid": uuid, "name": "x", "memory_bytes": 1 << 30} for uuid in uuids]
        return body

    result = rogue.tell([with_uuids("twice", ["GPU-same"] * 4), with_uuids("theirs", theirs), with_uuids("odd", ["", "a,b", "x" * 48, '"', "\\", "\u0661", "GPU 1", "../x"]), with_uuids("long", ["x" * 10_000])],
                        (200, 400, 403, 404, 409))
    shown_well(arena)
    rogue.leave()
    return result


@attack("memory and cores that are negative, absurd, fractions, text")
def absurd_inventories(arena):
    rogue = Rogue(arena)
    bodies = []
    for i, value in enumerate([-1, 2**63 - 1, 2**63, 2**64, 1.5, "1G", None, [], {}, True, 1e300]):
        for part in ("node", "gpu", "cpus"):
            body = rogue.body(f"inventory{i % 20}")
            target = body["inventory"]["gpus"][0] if part == "gpu" else body["inventory"]
            target["cpus" if part == "cpus" else "memory_bytes"] = value
            bodies.append(body)
    for value in (None, [], "x", {"gpus": {}}, {"gpus": [None]}, {"gpus": [[]]}, {}):
        bodies.append(rogue.body("inventory-form", inventory=value))
    result = rogue.tell(bodies, (200, 400, 403, 404, 409))
    shown_well(arena)
    rogue.leave()
    return result


@attack("names of ten kilobytes, with escapes, with quotes for Prometheus, with paths")
def odd_node_names(arena):
    rogue = Rogue(arena)
    names = ["n" * 10_240, "n" * 255, "n" * 256, "", " ", "a\nb", "\x1b[2Jx", "\u009b31m", 'x"} 1\nsharewell_gpus 0\n#', "../../etc", "a/b", "\u202ereh", "<b>x</b>", "\ud800", "a\0b", ".", "..", "-h", "%s%n", "here ", "HERE", "here\0x"]
    bodies = []
    for name in names:
        body = rogue.body("placeholder")
        body["node"] = name
        rogue.nodes.add(name)
        bodies.append(body)
        body = rogue.body("gpu-names")
        body["inventory"]["gpus"][0]["name"] = name
        bodies.append(body)
    result = rogue.tell(bodies, (200, 400, 403, 404, 409))
    shown_well(arena)
    rogue.leave()
    return result


@attack("thousands of invented nodes")
def invented_nodes(arena):
    rogue = Rogue(arena)
    connection, found = arena.tcp(), []
    for i in range(arena.size(3000, 150)):
        rogue.send(connection, rogue.body(f"invented-{i}", 16))
        status, _ = wire.read_answer(connection)
        if status == 0:
            connection.close()
            connection = arena.tcp()
        found.append(status)
    connection.close()
    check(found.count(200) <= 64, f"{found.count(200)} invented nodes were taken")
    rogue.nodes = {f"invented-{i}" for i in range(64)}
    shown_well(arena)
    rogue.leave()
    return wire.tally(found)


@attack("the name of the innocent node")
def takes_the_name(arena):
    rogue = Rogue(arena)
    bodies = [rogue.body("here"), rogue.body("here", home=None), rogue.body("here", start=10**9), rogue.body("here", instance="ffffffffffffffff"), rogue.body("here", number=2**62), rogue.body("here", gpus=0)]
    result = rogue.tell(bodies, (403, 409))
    rogue.nodes = set()
    rogue.leave()
    bound = Rogue(arena, "--nodes", "elsewhere")
    result += "; bound: " + bound.tell([bound.body("here")], (403, 409))
    bound.nodes = set()
    bound.leave()
    shown_well(arena)
    return result


@attack("reports of the innocent jobs: ended, failed, never started, in epochs to come")
def foreign_reports(arena):
    rogue = Rogue(arena)
    check(rogue.say(rogue.body("liar"))[0] == 200, "the node is not taken")
    jobs = [job for job, _ in arena.counters] + arena.waiting
    bodies = []
    for state in ("exited", "running", "starting", "suspended"):
        for epoch in (0, 1, 2, 4294967295):
            for reason in ("", "never-started", "supervisor-lost", "lease", "stopped"):
                bodies.append(rogue.body("liar", jobs=[{"job": job, "epoch": epoch, "state": state, "code": 0, "reason": reason, "started_at_ns": 1, "ended_at_ns": 2} for job in jobs]))
    result = rogue.tell(bodies if arena.full else bodies[::4], (200, 400, 404, 409))
    shown_well(arena)
    rogue.leave()
    return result


@attack("4,096 invented runs, of jobs that were, are and will be")
def invented_runs(arena):
    rogue = Rogue(arena)
    states = ("exited", "running", "starting", "suspended")
    result = []
    for base in (1, 2**31, 2**53 - 5000):
        runs = [{"job": base + i, "epoch": i % 7 + 1, "state": states[i % 4], "code": i % 256, "signal": i % 65, "detail": "d" * 900, "failure_line": "\x1b" * 900, "log_bytes": 2**62} for i in range(4096)]
        result.append(rogue.say(rogue.body("runs", jobs=runs))[0])
    result.append(rogue.say(rogue.body("runs", jobs=[{"job": i, "epoch": 1, "state": "running"} for i in range(1, 4098)]))[0])
    result.append(rogue.say(rogue.body("runs", jobs=[{"job": 1, "epoch": 1, "state": "running"}] * 4096))[0])
    check(set(result) <= {200, 400, 413, 429}, f"answered with {result}")
    shown_well(arena)
    rogue.leave()
    return wire.tally(result)


@attack("two agents for one name, by turns")
def two_homes(arena):
    rogue = Rogue(arena)
    found = []
    for i in range(arena.size(200, 20)):
        found.append(rogue.say(rogue.body("twins", home=("a" if i % 2 else "b") * 32))[0])
    check(set(found) <= {200, 409, 429}, f"answered with {set(found)}")
    rogue.leave()
    return wire.tally(found)


@attack("numbers and starts that go back, stand still, and jump to the end")
def numbers_back(arena):
    rogue = Rogue(arena)
    bodies = [rogue.body("numbers", number=number, start=start) for number, start in
              ((1, 1), (100, 1), (2, 1), (100, 1), (2**63 - 1, 1), (1, 1), (1, 2), (1, 0), (1, 2**63 - 1), (2, 5), (1, 2**63 - 1), (0, 1), (-1, 1), (2**63, 1), (1, -1), (1.5, 1), ("1", 1))]
    found = []
    for body in bodies:
        # One that is not news waits for ten seconds as any other: what it hears is not read.
        connection = arena.keep(arena.tcp())
        connection.settimeout(1)
        rogue.send(connection, body)
        found.append(wire.read_answer(connection)[0] or "waits")
    check(set(found) <= {200, 400, 409, "waits"}, f"answered with {found}")
    rogue.leave()
    return wire.tally(found)


@attack("samples that are absurd, and of the innocent jobs and GPUs")
def absurd_samples(arena):
    rogue = Rogue(arena)
    theirs = node_view(arena, "here")["devices"][0]["uuid"]
    job = arena.counters[0][0]
    values = [{"busy_milli": 2**32 - 1, "memory_bytes": 2**63 - 1, "power_mw": 2**32 - 1, "temperature_c": 10_000}, {"busy_milli": -1}, {"temperature_c": -301}, {"at_ns": -1}, {"at_ns": 2**63 - 1},
              {"memory_bytes": 1e300}, {"share_milli": 1001}, {"iteration_ns": 2**63 - 1, "iterations": 2**63 - 1, "launches": 2**63 - 1, "peak_bytes": 2**63 - 1, "floor_bytes": 2**63 - 1}]
    bodies = []
    for value in values:
        for gpu in ("GPU-samples-0", theirs, "x" * 255):
            bodies.append(rogue.body("samples", samples=[dict({"at_ns": 1, "gpu": gpu}, **value), dict({"at_ns": 1, "gpu": gpu, "job": job, "epoch": 1}, **value)]))
    bodies.append(rogue.body("samples", samples=[{"at_ns": i, "gpu": "GPU-samples-0", "busy_milli": i} for i in range(8192)]))
    bodies.append(rogue.body("samples", samples=[{"at_ns": i, "gpu": "GPU-samples-0"} for i in range(8193)]))
    bodies.append(rogue.body("samples", jobs=[{"job": job, "epoch": 1, "state": "running", "iteration_ns": 2**63 - 1, "alone_ns": 1, "iterations": 2**63 - 1, "beside": [job] * 8}]))
    result = rogue.tell(bodies, (200, 400, 409, 413))
    shown_well(arena)
    rogue.leave()
    return result


@attack("closed GPUs and strangers on GPUs that are not its own")
def foreign_shuts(arena):
    rogue = Rogue(arena)
    devices = [gpu["uuid"] for gpu in node_view(arena, "here")["devices"]]
    bodies = []
    for why in ("stranger", "excluded", "dead", "silent", "none"):
        bodies.append(rogue.body("shutter", shut=[{"gpu": uuid, "why": why, "since_ns": 1, "detail": "\x1b[2J"} for uuid in devices + ["GPU-shutter-0", "x"]],
                                 strangers=[{"gpu": uuid, "pid": 1, "user": "\x1b[2J", "program": "p" * 255, "memory_bytes": 2**62} for uuid in devices + ["GPU-shutter-0"]]))
    bodies.append(rogue.body("shutter", strangers=[{"gpu": "GPU-shutter-0", "pid": i, "user": "u", "program": "p"} for i in range(300)]))
    bodies.append(rogue.body("shutter", shut=[{"gpu": "GPU-shutter-0", "why": "dead"}] * 300))
    result = rogue.tell(bodies, (200, 400, 404, 409))
    check(arena.submit_and_end(), "a job on the innocent node does not run")
    shown_well(arena)
    rogue.leave()
    return result


@attack("fields that no version knows, deep and large messages")
def odd_syncs(arena):
    rogue = Rogue(arena)
    bodies = [json.dumps(rogue.body("odd", future={"a": [1] * 1000}, jobs=[{"job": 1, "epoch": 1, "state": "running", "future": 1}])).encode(), b"[" * 100_000, b"null", b"{}", b"",
              json.dumps(rogue.body("odd")).encode()[:-1] + b',"node":"here"}', json.dumps(rogue.body("odd", future="x" * (arena.size(15, 2) << 20))).encode(), b" " * (17 << 20), b"[" + b"[]," * (arena.size(15, 3) << 18) + b"1]", b'{"node":"x","y":[' + b'{"a":1},' * (arena.size(15, 3) << 16) + b"1]}",
              json.dumps(rogue.body("odd", jobs={"job": 1})).encode(), json.dumps(rogue.body("odd", jobs=[[]] * 4096, samples=[None] * 8192)).encode(),
              json.dumps(rogue.body("odd", inventory={"gpus": [{"uuid": f"g{i}", "name": "\u0001" * 255} for i in range(256)]})).encode()]
    found = []
    for body in bodies:
        with arena.tcp() as connection:
            rogue.send(connection, body)
            found.append(wire.read_answer(connection)[0])
    check(set(found) <= {0, 200, 400, 403, 404, 409, 413, 429}, f"answered with {found}")
    shown_well(arena)
    rogue.leave()
    return wire.tally(found)


@attack("syncs at all their bounds: runs, samples, GPUs, strangers, of many nodes; and what people see of these")
def full_syncs(arena):
    rogue = Rogue(arena)
    found, gpus = [], 64
    for n in range(arena.size(12, 2)):
        node = f"full-{n}"
        uuids = [f"GPU-{node[:16]}-{i}" for i in range(gpus)]
        runs = [{"job": 10**6 + i, "epoch": 1, "state": "running", "detail": "\x01" * 300, "gpus": "g" * 1000, "iteration_ns": 5, "alone_ns": 4, "beside": [1, 2, 3, 4, 5, 6, 7, 8]} for i in range(4096)]
        samples = [{"at_ns": 5, "gpu": uuids[i % gpus], "job": 10**6 + i // 2, "epoch": 1, "memory_bytes": 1, "runtime": True, "iterations": 5} for i in range(8192)]
        body = rogue.body(node, gpus, jobs=runs, samples=samples, looked=True, shut=[{"gpu": uuid, "why": "dead", "since_ns": 1, "detail": "d" * 900} for uuid in uuids],
                          strangers=[{"gpu": uuids[i % gpus], "pid": i + 1, "user": "u" * 60, "program": "p" * 60, "memory_bytes": i} for i in range(256)])
        # Told twice, the second time with news: the first made the node.
        for _ in range(2):
            found.append(rogue.say(body)[0])
            body["number"] += 1
            rogue.numbers[node] += 1
        for sample in samples:
            sample["gpu"] = "GPU-elsewhere-" + sample["gpu"][-6:]
        found.append(rogue.say(body)[0])
    check(set(found) <= {200, 429}, f"answered with {wire.tally(found)}")
    shown_well(arena)
    for target in ("/v1/nodes", "/v1/cluster", "/v1/jobs?limit=1000", "/metrics"):
        check(arena.ask(arena.innocent if target != "/metrics" else 0, "GET", target)[0] == 200, f"{target} is not answered")
    rogue.leave()
    return wire.tally(found)


@attack("syncs as fast as they can be sent, small and large: 429, and the innocent node is heard all the same")
def sync_flood(arena):
    rogue = Rogue(arena)
    small = [rogue.body(f"flood-{i}", 1) for i in range(4)]
    large = rogue.body("flood-0", 1, future="x" * (arena.size(8, 1) << 20))
    found = []
    for i in range(arena.size(6000, 200)):
        body = large if i % 500 == 499 else small[i % 4]
        body["number"] = i + 1
        with arena.tcp() as connection:
            rogue.send(connection, body)
            if i % 3 == 0:
                found.append(wire.read_answer(connection)[0])
    check(set(found) <= {0, 200, 409, 429}, f"answered with {wire.tally(found)}")
    check(429 in found or not arena.full, "no sync was too many")
    check(arena.submit_and_end(), "a job on the innocent node does not run")
    shown_well(arena)
    rogue.leave()
    return wire.tally(found)


@attack("syncs that are cut, swollen and nested everywhere: every byte of them, and every list")
def spoilt_syncs(arena):
    rogue = Rogue(arena)
    whole = json.dumps(rogue.body("spoilt", 1, jobs=[{"job": 1, "epoch": 1, "state": "running", "detail": "\u00e9\"\\"}], samples=[{"at_ns": 1, "gpu": "g"}])).encode()
    bodies = [whole[:i] for i in range(0, len(whole), arena.size(1, 40))] + [whole[:i] + b"[" * 5000 + whole[i:] for i in range(0, len(whole), arena.size(7, 60))]
    size = arena.size(15, 1) << 20
    for name in ("jobs", "samples", "shut", "strangers", "inventory", "about", "node", "x"):
        for value in (b"[" + b"[]," * 100_000 + b"[]]", b'"' + b"\\u0001" * (size // 6) + b'"', b"[" + b'{"job":1,"epoch":1,"state":"running"},' * 12_000 + b"1]", b'[{"job":1,"epoch":1,"state":"running","detail":"' + b"x" * size + b'"}]',
                      b"9" * 100_000, b"{" + b'"a":{' * 20_000 + b"}" * 20_000 + b"}"):
            bodies.append(b'{"node":"spoilt","instance":"00000001","number":9,"' + name.encode() + b'":' + value + b"}")
    found = []
    for body in bodies:
        with arena.tcp() as connection:
            connection.settimeout(0.3)  # one that is not news waits for ten seconds
            rogue.send(connection, body)
            found.append(wire.read_answer(connection)[0])
    check(set(found) <= {0, 200, 400, 403, 404, 409, 413, 429}, f"answered with {wire.tally(found)}")
    shown_well(arena)
    rogue.leave()
    return wire.tally(found)


@attack("answers that are never read, and polls that are dropped, in numbers")
def unread_answers(arena):
    rogue = Rogue(arena)
    for i in range(arena.size(300, 30)):
        connection = arena.tcp()
        if i % 2:
            arena.keep(connection)
        rogue.send(connection, rogue.body(f"unread-{i % 8}", 64, have=i))
        if i % 2 == 0:
            connection.close()
    shown_well(arena)
    rogue.leave()
    return "dropped"


@attack("an agent's token at every door that is not its own")
def other_doors(arena):
    rogue = Rogue(arena)
    job = arena.counters[0][0]
    found = []
    for method, target, body in (("POST", "/v1/jobs", {"command": ["true"]}), ("GET", "/v1/jobs", None), ("GET", f"/v1/jobs/{job}", None), ("POST", f"/v1/jobs/{job}/cancel", None), ("GET", f"/v1/jobs/{job}/logs", None),
                                 ("GET", "/v1/events", None), ("GET", "/v1/nodes", None), ("POST", "/v1/nodes", {"name": "here", "closed": True}), ("POST", "/v1/policy", {"name": "chaos"}), ("POST", "/v1/quota", {"tenant": "x", "gpus": 0}),
                                 ("POST", "/v1/jobs/change", {"verb": "cancel", "jobs": [job]})):
        with arena.tcp() as connection:
            wire.send(connection, wire.request(method, target, body, rogue.fields + [("Connection", "close")]))
            found.append(wire.read_answer(connection)[0])
    check(set(found) == {403}, f"answered with {found}")
    rogue.leave()
    return wire.tally(found)


@attack("a node that takes jobs, and says of them whatever it likes")
def lies_about_jobs(arena):
    rogue = Rogue(arena)
    check(rogue.say(rogue.body("trap", 32))[0] == 200, "the node is not taken")
    found = []
    for state, code, reason in (("exited", 0, ""), ("exited", 255, "launch"), ("exited", 0, "never-started"), ("running", 0, ""), ("suspended", 0, ""), ("exited", 1, "x" * 64)):
        job = arena.submit(arena.mallory, command=["true"], gpus=16, grace=1)
        for i in range(3):
            run = {"job": job, "epoch": i + 1, "state": state, "code": code, "reason": reason, "detail": "\x1b[2J" * 100, "started_at_ns": 2**63 - 1, "ended_at_ns": 1, "gpus": "x" * 1000, "log_bytes": 2**63 - 1,
                   "max_rss_bytes": 2**63 - 1, "cpu_ns": 2**63 - 1, "failure": "y" * 64, "failure_line": "\n" * 1000, "failure_path": "../" * 300}
            found.append(rogue.say(rogue.body("trap", 32, jobs=[run, {"job": job, "epoch": 2**32 - 1, "state": "exited"}]))[0])
        for command in (["show", str(job)], ["why", str(job)]):
            shown = arena.command(*command, uid=arena.mallory)
            check(shown.returncode == 0 and b"\x1b" not in shown.stdout, f"{command} fails or prints escapes")
        arena.cancel_all(arena.mallory)
        # At last it tells the truth, so that the job ends.
        for epoch in range(1, 8):
            rogue.say(rogue.body("trap", 32, jobs=[{"job": job, "epoch": epoch, "state": "exited", "code": 0}]))
    check(set(found) <= {200, 409}, f"answered with {set(found)}")
    shown_well(arena)
    rogue.leave()
    return wire.tally(found)


@attack("a node that shrinks, grows and changes all of its GPUs with every word")
def flapping(arena):
    rogue = Rogue(arena)
    connection, found = arena.tcp(), []
    before = arena.figures()["disk"]
    for i in range(arena.size(1500, 60)):
        body = rogue.body("flapper", i % 64 + 1)
        for gpu in body["inventory"]["gpus"]:
            gpu["uuid"] = f"GPU-{i % 97}-{gpu['uuid'][-8:]}"
        rogue.send(connection, body)
        found.append(wire.read_answer(connection)[0])
    connection.close()
    check(set(found) <= {200, 409, 429}, f"answered with {set(found)}")
    shown_well(arena)
    grown = arena.figures()["disk"] - before
    rogue.leave()
    return wire.tally(found) + f", journal {grown:+.1f} MB"
