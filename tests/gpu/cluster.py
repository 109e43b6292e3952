"""A live cluster of this machine, `sharewell up`, with jobs under the GPU runtime: what they compute is what they compute alone, whatever is done to them. Usage: cluster.py SHAREWELL [MEMORY COMMAND...]

    cluster.py build/release/sharewell                             as 12G python3 train.py resnet 600
    cluster.py build/release/sharewell 100M ./train --steps 3000   any program that prints `hash ...` and needs no more memory than that; on the emulated driver, too

One job is suspended, taken off its GPU whole, limited to half its memory, and its agent is killed; another shares the GPU with an opportunistic neighbour; a third, which says nothing of
--preempt or memory, is suspended for a shorter one that takes the whole GPU. Prints what each took, and at the end `holds` or not.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import gpus

PATIENCE = 120


def used():
    """What the driver says of the whole GPU, where it can be asked."""
    return f", {gpus.used_mib()} MiB of it used in all" if shutil.which("nvidia-smi") else ""


def hash_in(text):
    words = text.split()
    return words[words.index("hash") + 1] if "hash" in words else None


class Cluster:
    def __init__(self, program):
        self.program, self.folder = os.path.abspath(program), tempfile.mkdtemp(prefix="cluster-")
        os.environ["SHAREWELL_STATE"] = os.path.join(self.folder, "state")
        for name in ("SHAREWELL_CONTROLLER", "SHAREWELL_TOKEN", "XDG_RUNTIME_DIR"):
            os.environ.pop(name, None)
        self.said = open(os.path.join(self.folder, "up"), "w+")
        # As the world `live`, with a quantum that is shorter than the programs.
        world = os.path.join(self.folder, "world.yaml")
        with open(world, "w") as file:
            file.write("base: live\nname: short\nquantum: 1s\n")
        self.process = subprocess.Popen([self.program, "up", "--port", "0", "--node", "here", "--policy", "antman", "--world", world], stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True)
        self.wait("a node", lambda: self.json("nodes").get("nodes"))

    def call(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode != 0:
            raise SystemExit(f"sharewell {' '.join(words)}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    def json(self, *words):
        done = subprocess.run([self.program, *words, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def wait(self, what, holds):
        """Seconds until it does."""
        begun = time.monotonic()
        while not holds():
            if time.monotonic() - begun > PATIENCE:
                raise SystemExit(f"no {what} within {PATIENCE} s")
            time.sleep(0.02)
        return time.monotonic() - begun

    def submit(self, name, command, *words):
        # Variables of ours do not go into jobs by themselves.
        ours = [word for key in ("SHAREWELL_EMU", "SHAREWELL_EMU_STATE") if key in os.environ for word in ("--env", f"{key}={os.environ[key]}")]
        return int(self.call("submit", "--parsable", "-J", name, "-o", self.path(name), *ours, *words, "--", *command))

    def path(self, name):
        return os.path.join(self.folder, name)

    def show(self, job):
        return self.json("show", str(job))

    def is_in(self, job, state):
        return self.show(job)["state"] == state

    def until(self, job, state):
        return self.wait(f"state {state} of job {job}", lambda: self.is_in(job, state))

    def held(self, job):
        """MiB of the job on its GPU, and in the host instead."""
        gpu = self.show(job).get("gpu") or {}
        return (gpu.get("memory_bytes") or 0) >> 20, (gpu.get("host_bytes") or 0) >> 20

    def kill_agent(self):
        found = subprocess.run(["pgrep", "-P", str(self.process.pid), "-f", "sharewell agent"], capture_output=True, text=True).stdout.split()
        os.kill(int(found[0]), signal.SIGKILL)

    def result(self, name, job):
        subprocess.run([self.program, "wait", str(job)], capture_output=True, timeout=600)
        with open(self.path(name)) as file:
            return hash_in(file.read())

    def end(self):
        for job in self.json("ps").get("jobs", []):
            subprocess.run([self.program, "cancel", str(job["id"])], capture_output=True, timeout=PATIENCE)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.said.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def disturb(cluster, job):
    """All that may be done to a job that runs; each says how long it took."""
    cluster.until(job, "R")
    cluster.wait("memory on the GPU", lambda: cluster.held(job)[0] > 0)
    full, before = cluster.held(job)[0], 0
    while full != before:
        time.sleep(3)
        full, before = cluster.held(job)[0], full
    print(f"job {job} holds {full} MiB", flush=True)
    for words, ready in (((), lambda: cluster.is_in(job, "S")), (("--deep",), lambda: cluster.show(job).get("deep") == "off")):
        begun = time.monotonic()
        cluster.call("suspend", *words, str(job))
        cluster.wait("suspension", ready)
        took = time.monotonic() - begun
        cluster.wait("free memory", lambda: cluster.held(job)[0] < full / 2)
        print(f"{' '.join(('suspend', *words))}: {took:.2f} s, then {cluster.held(job)[0]} MiB on the GPU{used()}", flush=True)
        cluster.kill_agent()
        begun = time.monotonic()
        cluster.call("resume", str(job))
        cluster.until(job, "R")
        cluster.wait("its memory", lambda: cluster.held(job)[0] >= full * 0.9)
        print(f"resume, of an agent that was killed meanwhile: {time.monotonic() - begun:.2f} s until that is known", flush=True)
    cluster.call("limit", str(job), "--gpu-memory", f"{full // 2}M")
    print(f"half its memory: {cluster.wait('memory in the host', lambda: cluster.held(job)[1] > 0):.2f} s, then {cluster.held(job)} MiB on the GPU and in the host", flush=True)
    cluster.call("limit", str(job), "--gpu-memory", "none")
    print(f"all of it: {cluster.wait('memory on the GPU', lambda: cluster.held(job)[1] == 0):.2f} s", flush=True)


def give_way(cluster, command):
    """Of two jobs that say nothing the longer one stands still for the shorter one, and goes on in its first run. What both computed."""
    cluster.call("policy", "srtf")
    longer = cluster.submit("longer", command, "--expected", "5h")
    cluster.until(longer, "R")
    cluster.wait("memory on the GPU", lambda: cluster.held(longer)[0] > 1000 or cluster.held(longer)[0] > 0 and not shutil.which("nvidia-smi"))
    shorter = cluster.submit("shorter", command, "--expected", "1m")
    print(f"a shorter job: {cluster.until(longer, 'S'):.2f} s until the longer one stands still, {cluster.until(shorter, 'R'):.2f} s more until it runs; then {cluster.held(longer)} MiB "
          f"of the longer one are on the GPU and in the host", flush=True)
    results = [cluster.result("shorter", shorter), cluster.result("longer", longer)]
    if cluster.show(longer).get("epoch") != 1:
        raise SystemExit(f"the longer job was started {cluster.show(longer).get('epoch')} times")
    return results


def main():
    memory, *command = sys.argv[2:] or ["12G", sys.executable, os.path.join(HERE, "train.py"), "resnet", "600"]
    alone = hash_in(subprocess.run(command, capture_output=True, text=True, timeout=600).stdout)
    if alone is None:
        print("cluster: skipped, the program does not run here even bare")
        return 77
    cluster = Cluster(sys.argv[1])
    try:
        print(cluster.call("nodes"), end="", flush=True)
        job = cluster.submit("disturbed", command, "--preempt", "suspend", "--gpu-memory", memory)
        disturb(cluster, job)
        disturbed = cluster.result("disturbed", job)
        both = {name: cluster.submit(name, command, "--class", name, "--gpu-memory", memory) for name in ("guaranteed", "opportunistic")}
        for name, number in both.items():
            cluster.until(number, "R")
        print(cluster.call("ps"), end="", flush=True)
        shared = [cluster.result(name, number) for name, number in both.items()]
        plain = give_way(cluster, command)
        same = [disturbed, *shared, *plain] == [alone] * 5
        print(f"alone {alone}, disturbed {disturbed}, guaranteed and opportunistic on one GPU {shared}, one after the other {plain}\ncluster: {'holds' if same else 'DOES NOT HOLD'}", flush=True)
        return 0 if same else 1
    finally:
        cluster.end()


sys.exit(main())
