"""The live cluster that is attacked, and what must hold after every attack.

Three users, by numbers of this run alone: an innocent one, whose jobs count their own steps into files, one that attacks, and root, which runs the cluster. Controller and agent are real
processes; GPUs are described, not there.
"""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import wire

ATTACKS = []
COUNT = 'echo "$$" >>"$1.starts"; i=0; while :; do i=$((i + 1)); echo "$i" >"$1.new"; mv "$1.new" "$1"; sleep 0.2; done'
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Broken(Exception):
    """Something that must hold does not."""


def attack(aim):
    """Puts a function into the table, under the name of its file."""

    def add(function):
        kind = pathlib.Path(function.__code__.co_filename).stem
        ATTACKS.append((kind, function.__name__, aim, function))
        return function

    return add


def check(holds, fact):
    if not holds:
        raise Broken(fact)


class Arena:
    def __init__(self, program, full):
        self.full = full
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="sharewell-attacks-"))
        self.place.chmod(0o711)
        self.program = self.place / "sharewell"
        # What is beside the program is looked for there.
        for name in ("sharewell", "sharewell-supervisor", "libsharewell-gpu.so"):
            source = pathlib.Path(program).parent / name
            if source.exists():
                shutil.copy(source, self.place / name)
                (self.place / name).chmod(0o755)
        self.checked = b"__asan_init" in self.program.read_bytes()
        # Numbers of users that no other test has: one attack signals all processes of its user.
        base = 1_000_000_000 + os.getpid() * 8
        self.innocent, self.mallory = base, base + 1
        self.homes = {}
        for uid in (self.innocent, self.mallory):
            self.homes[uid] = self.place / f"home-{uid}"
            self.homes[uid].mkdir(mode=0o700)
            os.chown(self.homes[uid], uid, uid)
        self.socket = str(self.place / "door" / "controller.sock")
        self.state = self.place / "state"
        self.jobs_bound = self.size(50_000, 2_000)
        self.held_bound = self.size(64 << 20, 8 << 20)
        self.kept, self.acknowledged, self.counters, self.waiting = [], [], [], []
        self.tokens = 0
        self.up = None

    def size(self, full, small):
        """How much of something: of the whole run, and of the one in the suite."""
        return full if self.full else small

    # ---- the cluster

    def start(self):
        gpus = self.place / "gpus.yaml"
        gpus.write_text("uuid_prefix: GPU-a7000000\ngpus:\n  - name: Attacked\n    count: 8\n    memory: 16G\n")
        env = {"PATH": PATH, "LC_ALL": "C.UTF-8", "SHAREWELL_HOST_LEDGER": str(self.place / "ledger")}
        self.log = open(self.place / "up.out", "wb")
        bounds = f"jobs={self.jobs_bound},held={self.held_bound}"
        self.up = subprocess.Popen(
            [str(self.program), "up", "--all-users", "--state", str(self.state), "--socket", self.socket, "--gpus", str(gpus), "--port", "0", "--node", "here",
             "--bounds", bounds], stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=env, cwd="/")
        check(wire.wait_until(lambda: self.node_is_there("here"), 120), "the cluster does not start: " + self.said())
        check(wire.wait_until(lambda: re.search(r"http://127\.0\.0\.1:(\d+)", self.said())), "the cluster does not say its port: " + self.said())
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)", self.said()).group(1))
        self.pids = self.children()
        check(len(self.pids) == 2, f"there are not two processes below up: {self.pids}")
        # The loop's time is measured, and not how busy the machine is.
        os.setpriority(os.PRIO_PROCESS, self.pids["controller"], -15)
        for i in range(2):
            path = self.homes[self.innocent] / f"count-{i}"
            self.counters.append((self.submit(self.innocent, command=["sh", "-c", COUNT, "count", str(path)]), path))
        self.waiting.append(self.submit(self.innocent, command=["true"], depends=f"afterany:{self.counters[0][0]}"))
        self.waiting.append(self.submit(self.innocent, command=["true"], hold=True))
        check(wire.wait_until(lambda: all(path.exists() and self.view(self.innocent, job)["state"] == "R" for job, path in self.counters)),
              "the innocent jobs do not start")
        self.before = self.figures()

    def said(self):
        return (self.place / "up.out").read_text(errors="replace")

    def children(self):
        found = {}
        for line in subprocess.run(["pgrep", "-a", "-P", str(self.up.pid)], capture_output=True, text=True).stdout.splitlines():
            pid, _, command = line.partition(" ")
            for name in ("controller", "agent"):
                if f"sharewell {name}" in command:
                    found[name] = int(pid)
        return found

    def node_is_there(self, name):
        try:
            status, body = self.ask(0, "GET", "/v1/nodes")
        except OSError:
            return False
        return status == 200 and any(node["name"] == name and node["up"] for node in body["nodes"])

    def stop(self):
        self.drop()
        if self.up is None:
            shutil.rmtree(self.place, ignore_errors=True)
            return
        try:
            for uid in (self.innocent, self.mallory):
                self.cancel_all(uid)
            wire.wait_until(lambda: not self.active(self.innocent) and not self.active(self.mallory), 20)
        except (OSError, Broken):
            pass
        self.up.terminate()
        try:
            self.up.wait(60)
        except subprocess.TimeoutExpired:
            self.up.kill()
        for uid in (self.innocent, self.mallory):
            self.end_processes(uid)
        shutil.rmtree(self.place, ignore_errors=True)

    def processes(self, uid):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == uid:
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def end_processes(self, uid):
        """What an attack left behind is not left to the machine. The users are of this run alone."""
        for pid in self.processes(uid):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    # ---- doing something

    def keep(self, connection):
        """Stays open until the checks after the attack are done."""
        self.kept.append(connection)
        return connection

    def drop(self):
        for connection in self.kept:
            connection.close()
        self.kept = []

    def tcp(self):
        return wire.dial_tcp(self.port)

    def unix(self, uid=None):
        return wire.dial_unix(self.socket, self.mallory if uid is None else uid)

    def ask(self, uid, method, target, body=None, fields=(), patient=True):
        """Status and body of one request on the socket. 429 is heeded, as a well-behaved client would."""
        for _ in range(60):
            with wire.dial_unix(self.socket, uid) as connection:
                wire.send(connection, wire.request(method, target, body, list(fields) + [("Connection", "close")]))
                status, data = wire.read_answer(connection)
            if status != 429 or not patient:
                break
            time.sleep(1)
        try:
            return status, json.loads(data)
        except ValueError:
            return status, data

    def submit(self, uid, **fields):
        fields.setdefault("env", {"PATH": PATH, "HOME": str(self.homes[uid])})
        fields.setdefault("workdir", str(self.homes[uid]))
        status, body = self.ask(uid, "POST", "/v1/jobs", fields)
        check(status == 201, f"a submit is answered with {status}: {body}")
        if uid == self.innocent:
            self.acknowledged += body["ids"]
        return body["id"]

    def program_of_job(self, name, source, **fields):
        """A job of mallory's that is a Python program; its number. It has FOLDER, and says there what it found."""
        path = self.homes[self.mallory] / f"{name}.py"
        path.write_text(f"FOLDER = {str(self.homes[self.mallory])!r}\nINNOCENT = {self.innocent}\n" + source)
        os.chown(path, self.mallory, self.mallory)
        return self.submit(self.mallory, command=["python3", "-S", str(path)], **fields)

    def view(self, uid, job):
        status, body = self.ask(uid, "GET", f"/v1/jobs/{job}")
        check(status == 200, f"job {job} is answered with {status}")
        return body

    def reaches(self, job, *states, uid=None):
        uid = self.mallory if uid is None else uid
        check(wire.wait_until(lambda: self.view(uid, job)["state"] in states, 120), f"job {job} does not become {states}: {self.view(uid, job)['state']}")
        return self.view(uid, job)

    def mine(self, name):
        """A file that a job of mallory's writes when it is ready; what it says."""
        path = self.homes[self.mallory] / name
        check(wire.wait_until(path.exists, 120), f"the attacking job does not come to '{name}'")
        return path.read_text(errors="replace")

    def active(self, uid, by=None):
        ids, cursor = [], 0
        while True:
            status, body = self.ask(uid if by is None else by, "GET", f"/v1/jobs?user={uid}&state=active&limit=1000&cursor={cursor}")
            check(status == 200, f"the list of jobs is answered with {status}: {body}")
            ids += [job["id"] for job in body["jobs"]]
            if not body.get("next"):
                return ids
            cursor = body["next"]

    def cancel_all(self, uid, by=None):
        by = uid if by is None else by
        ids = self.active(uid, by)
        if ids:
            status, body = self.ask(by, "POST", "/v1/jobs/change", {"verb": "cancel", "jobs": ids, "skip_ended": True})
            check(status == 200, f"cancelling {len(ids)} own jobs is answered with {status}: {str(body)[:300]}")

    def command(self, *arguments, uid=0, seconds=120):
        """The program itself, as that user."""
        env = {"PATH": PATH, "LC_ALL": "C.UTF-8", "SHAREWELL_CONTROLLER": f"unix:{self.socket}", "HOME": str(self.homes.get(uid, self.place))}
        return subprocess.run([str(self.program), *arguments], capture_output=True, timeout=seconds, env=env, cwd=str(self.homes.get(uid, "/")), user=uid, group=uid,
                              extra_groups=[], stdin=subprocess.DEVNULL)

    def token(self, role, *options):
        self.tokens += 1
        name = f"attack-{self.tokens}"
        made = self.command("token", "create", "--role", role, "--name", name, "--state", str(self.state), *options)
        check(made.returncode == 0, f"no token: {made.stderr}")
        return name, made.stdout.decode().strip()

    def revoke(self, name):
        made = self.command("token", "revoke", name, "--state", str(self.state))
        check(made.returncode == 0, f"a token cannot be revoked: {made.stderr}")

    @contextlib.contextmanager
    def standing_still(self, name):
        os.kill(self.pids[name], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.pids[name], signal.SIGCONT)

    # ---- what must hold

    def figures(self):
        status, text = self.ask(0, "GET", "/metrics")
        check(status == 200, f"/metrics is answered with {status}")
        text = text.decode()
        for line in text.splitlines():
            check(re.fullmatch(r"#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-zA-Z_]\w*=\"([^\"\\\n]|\\.)*\",?)*\})? [-+0-9.eEInfNa]+", line), f"a line of /metrics is spoilt: {line[:200]!r}")
        bucket = dict(re.findall(r'sharewell_loop_seconds_bucket\{le="([^"]+)"\} (\d+)', text))
        rss = {}
        for name, pid in self.pids.items():
            try:
                rss[name] = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
            except (OSError, AttributeError):
                raise Broken(f"the {name} is gone")
        return {
            "buckets": {bound: int(count) for bound, count in bucket.items()},
            "longest_ms": float(re.search(r"^sharewell_loop_seconds_max (\S+)", text, re.M).group(1)) * 1000,
            "cpu_ms": float(re.search(r"^sharewell_loop_cpu_seconds_max (\S+)", text, re.M).group(1)) * 1000,
            "turn_ms": float(re.search(r"^sharewell_turn_seconds_max (\S+)", text, re.M).group(1)) * 1000,
            "rss": rss,
            "disk": sum(path.stat().st_size for path in (self.state / "journal.db", self.state / "journal.db-wal") if path.exists()) / 1e6,
        }

    @staticmethod
    def hold(before, after):
        """The longest hold of the loop between the two, in ms, and its text. The figure is of the whole life; where it did not grow, the histogram says within which bound it was."""
        if after["cpu_ms"] > before["cpu_ms"]:
            print(f"# the longest hold so far in time of the processor: {after['cpu_ms']:.0f} ms")
        if after["longest_ms"] > before["longest_ms"]:
            stored = f" (storing: {after['turn_ms']:.0f})" if after["turn_ms"] > before["turn_ms"] else ""
            return after["longest_ms"], f"{after['longest_ms']:.0f} ms{stored}"
        least = {bound: after["buckets"][bound] - before["buckets"][bound] for bound in after["buckets"]}
        total = least["+Inf"]
        for bound, count in least.items():
            if count == total:
                ms = float(bound) * 1000 if bound != "+Inf" else after["longest_ms"]
                return min(ms, after["longest_ms"]), f"<= {min(ms, after['longest_ms']):.0f} ms"
        return after["longest_ms"], f"<= {after['longest_ms']:.0f} ms"

    def count_of(self, path):
        return int(path.read_text())

    def innocent_goes_on(self):
        """Jobs of the innocent user run in their first epoch and count on; those that waited wait; all that was acknowledged is listed; a new one is taken. How long that took, in s."""
        counts = {job: self.count_of(path) for job, path in self.counters}
        began = time.monotonic()
        status, body = self.ask(self.innocent, "POST", "/v1/jobs", {"command": ["true"], "hold": True}, patient=False)
        took = time.monotonic() - began
        check(status == 201, f"a submit of the innocent user is answered with {status}: {body}")
        self.acknowledged += body["ids"]
        for job, path in self.counters:
            seen = self.view(self.innocent, job)
            check(seen["state"] == "R" and seen["epoch"] == 1 and seen["restarts"] == 0, f"innocent job {job} is {seen['state']} in epoch {seen['epoch']}")
            starts = pathlib.Path(f"{path}.starts").read_text().split()
            check(len(starts) == 1, f"innocent job {job} was started {len(starts)} times")
            check(wire.wait_until(lambda: self.count_of(path) > counts[job]), f"innocent job {job} stands still at {counts[job]}")
        listed = set(self.active(self.innocent))
        lost = [job for job in self.acknowledged if job not in listed]
        check(not lost, f"acknowledged jobs are not listed: {lost[:20]}")
        return took

    def same_processes(self):
        check(self.children() == self.pids, f"the processes are {self.children()}, not {self.pids}: {self.said()[-2000:]}")

    def restart(self):
        """Kills the controller; the one that is started in its place knows all that was acknowledged."""
        os.kill(self.pids["controller"], signal.SIGKILL)
        check(wire.wait_until(lambda: self.children().get("controller", self.pids["controller"]) != self.pids["controller"], 120), "no controller is started again")
        self.pids = self.children()

        def answers():
            try:
                return self.ask(0, "GET", "/healthz")[0] == 200
            except OSError:
                return False

        check(wire.wait_until(answers, 120), "the new controller does not answer: " + self.said()[-2000:])
        check(wire.wait_until(lambda: self.node_is_there("here"), 120), "the node does not come back")
        check(wire.wait_until(lambda: self.view(self.innocent, self.counters[0][0])["state"] == "R", 60), "an innocent job does not run after the restart")

    def submit_and_end(self):
        """Whether a job of mallory's still comes to its end. It asks for all that is free on the innocent node, and so runs nowhere else."""
        return self.reaches(self.submit(self.mallory, command=["true"], gpus=6), "CD", "F")["state"] == "CD"
