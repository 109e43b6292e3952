"""Processes outside the queue on the GPUs of a live cluster, `sharewell up`: their GPU is not given out while they stay. Usage: strangers.py SHAREWELL [COMMAND...]

    strangers.py build/release/sharewell                                                     a PyTorch program that holds 4 GiB
    strangers.py build/release/sharewell ./train --steps 1000000 --memory 64M                any program that stays on the GPU; on the emulated driver, too

On a machine with one GPU the job waits, else it goes to another one. Also said: how the driver names processes here (as this machine does, by numbers of another namespace, or not at all), that a job of our own is not
taken for a stranger, how long things took to be seen, and what a look at the GPUs costs. Prints `holds` or `FAILS` for each, and at the end `holds` or not.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PATIENCE = 180
HOLD = """
import sys, time, torch
kept = torch.empty(int(float(sys.argv[1]) * 2**30), dtype=torch.uint8, device="cuda")
a = torch.randn(2048, 2048, device="cuda")
print("there", flush=True)
end = time.time() + float(sys.argv[2])
while time.time() < end:
    a = (a @ a) / a.norm()
    torch.cuda.synchronize()
    time.sleep(0.01)
print("hash", 1)
"""

failures = []


def check(aim, good, more=""):
    print(f"{'holds' if good else 'FAILS'}  {aim}{': ' if more else ''}{more}", flush=True)
    if not good:
        failures.append(aim)


class Cluster:
    def __init__(self, program, *words):
        self.program, self.folder = os.path.abspath(program), tempfile.mkdtemp(prefix="strangers-")
        os.environ["SHAREWELL_STATE"] = os.path.join(self.folder, "state")
        for name in ("SHAREWELL_CONTROLLER", "SHAREWELL_TOKEN", "XDG_RUNTIME_DIR"):
            os.environ.pop(name, None)
        self.said = open(os.path.join(self.folder, "up"), "w+")
        self.process = subprocess.Popen([self.program, "up", "--node", "here", *words], stdout=self.said, stderr=subprocess.STDOUT, start_new_session=True)
        wait("the node", lambda: self.json("nodes").get("nodes"))

    def json(self, *words):
        done = subprocess.run([self.program, *words, "--json"], capture_output=True, text=True, timeout=PATIENCE)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def call(self, *words):
        return subprocess.run([self.program, *words], capture_output=True, text=True, timeout=PATIENCE).stdout

    def submit(self, command, *words):
        ours = [word for key in ("SHAREWELL_EMU", "SHAREWELL_EMU_STATE", "LD_LIBRARY_PATH") if key in os.environ for word in ("--env", f"{key}={os.environ[key]}")]
        return int(self.call("submit", "--parsable", *ours, *words, "--", *command))

    def gpus(self):
        nodes = self.json("nodes").get("nodes") or [{}]
        return nodes[0].get("devices", [])

    def shut(self):
        return [gpu.get("shut") for gpu in self.gpus()]

    def show(self, job):
        return self.json("show", str(job))

    def state(self, job):
        return self.show(job).get("state")

    def metric(self, name):
        socket = os.path.join(os.environ["SHAREWELL_STATE"], "controller.sock")
        text = subprocess.run(["curl", "-s", "--max-time", "20", "--unix-socket", socket, "http://localhost/metrics"], capture_output=True, text=True).stdout
        return [float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? ([0-9.]+)$", text, re.M)]

    def end(self):
        for job in self.json("ps").get("jobs", []):
            self.call("cancel", str(job["id"]))
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.said.seek(0)
        for line in self.said.read().splitlines()[-20:]:
            print(f"up: {line}")
        self.said.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def wait(what, holds, patience=PATIENCE):
    """Seconds until it does; None: it does not."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > patience:
            print(f"no {what} within {patience} s", flush=True)
            return None
        time.sleep(0.05)
    return time.monotonic() - begun


def how_driver_names(pid):
    """As nvidia-smi lists compute processes, where there is one."""
    if not shutil.which("nvidia-smi"):
        return "there is no nvidia-smi"
    lines = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader"], capture_output=True, text=True).stdout.split("\n")
    pids = [line.split(",")[0].strip() for line in lines if line.strip()]
    where = "by its number here" if str(pid) in pids else "by other numbers" if pids else "not at all"
    return f"the driver names it {where}: {'; '.join(line for line in lines if line.strip())}"


def start(command, there):
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="0")
    process = subprocess.Popen(command, stdout=subprocess.PIPE if there else subprocess.DEVNULL, text=True, env=environment)
    if there and process.stdout.readline().strip() != "there":
        return None
    time.sleep(0 if there else 2)
    return process if process.poll() is None else None


def in_words(seconds):
    return "never" if seconds is None else f"{seconds:.1f} s"


def one_stranger(cluster, stranger, command, own):
    print(how_driver_names(stranger.pid), flush=True)
    took = wait("stranger on GPU 0", lambda: (cluster.shut() or [None])[0] == "stranger", 30)
    check("the stranger is seen", took is not None, in_words(took))
    print(json.dumps([gpu.get("strangers") for gpu in cluster.gpus()]), flush=True)
    print(cluster.call("nodes"), end="", flush=True)
    several = len(cluster.gpus()) > 1
    job = cluster.submit(own)
    time.sleep(8)
    if several:
        check("a job goes to another GPU", cluster.state(job) == "R" and 0 not in cluster.show(job).get("gpu_indexes", [0]))
        cluster.call("cancel", str(job))
        wait("the end of the job", lambda: cluster.state(job) == "CA")
    else:
        why = cluster.call("why", str(job)).strip()
        check("a job waits", cluster.state(job) == "PD", cluster.state(job))
        check("and says for what", "processes outside the queue" in why, why)
    stranger.kill()
    stranger.wait()
    took = wait("GPU 0 open", lambda: (cluster.shut() or ["?"])[0] is None, 60)
    check("the GPU opens when the stranger has left", took is not None, in_words(took))
    if not several:
        took = wait("start of the job", lambda: cluster.state(job) == "R", 60)
        check("the job starts then", took is not None, in_words(took))
        watch_own(cluster, job)


def watch_own(cluster, job):
    """Our own job is no stranger, neither while it runs nor when it ends."""
    seen, begun = set(), time.monotonic()
    while time.monotonic() - begun < 30:
        seen.update(str(word) for word in cluster.shut())
        time.sleep(0.5)
    check("a job of our own is not taken for a stranger", seen == {"None"} and cluster.state(job) == "R", f"{sorted(seen)}, {cluster.state(job)}, {cluster.show(job).get('gpu')}")
    cluster.call("cancel", str(job))
    wait("the end of the job", lambda: cluster.state(job) == "CA")
    begun = time.monotonic()
    while time.monotonic() - begun < 12:
        seen.update(str(word) for word in cluster.shut())
        time.sleep(0.2)
    check("nor when it ends", seen == {"None"}, f"{sorted(seen)}")


def bare(cluster, command):
    """The same of a job without the GPU runtime, of which only the driver tells."""
    job = cluster.submit(command, "--gpu-runtime", "off")
    if wait("start of the job without the runtime", lambda: cluster.state(job) == "R", 60) is None:
        check("a job without the runtime starts", False)
        return
    print("a job without the GPU runtime:")
    watch_own(cluster, job)


def meets(cluster, own, command, there):
    """A stranger that comes to the GPU of a job that runs."""
    job = cluster.submit(own)
    wait("start of the job", lambda: cluster.state(job) == "R", 60)
    time.sleep(10)
    stranger = start(command, there)
    if stranger is None:
        check("a stranger comes to a job that runs", False, "it could not start")
        return
    took = wait("stranger beside the job", lambda: "stranger" in cluster.shut(), 60)
    check("a stranger that comes to the GPU of a job is seen", took is not None, in_words(took))
    check("the job goes on", cluster.state(job) == "R", cluster.call("why", str(job)).strip())
    stranger.kill()
    stranger.wait()
    cluster.call("cancel", str(job))
    wait("the end of the job", lambda: cluster.state(job) == "CA")


def main():
    there = len(sys.argv) < 3
    command = sys.argv[2:] or [sys.executable, "-c", HOLD, "4", "600"]
    own = sys.argv[2:] or [sys.executable, "-c", HOLD, "2", "600"]
    stranger = start(command, there)
    if stranger is None:
        print("strangers: skipped, the program does not run here")
        return 77
    cluster = Cluster(sys.argv[1])
    try:
        print(cluster.call("nodes", "--gpus"), end="", flush=True)
        one_stranger(cluster, stranger, command, own)
        bare(cluster, own)
        meets(cluster, own, command, there)
        looks = []
        for _ in range(10):
            looks += cluster.metric("sharewell_node_look_seconds")
            time.sleep(2)
        check("a look at the GPUs is cheap", looks and max(looks) < 0.5, f"{', '.join(f'{1000 * look:.1f}' for look in looks)} ms")
    finally:
        if stranger.poll() is None:
            stranger.kill()
        cluster.end()
    print("strangers: holds" if not failures else f"strangers: FAILS: {'; '.join(failures)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
