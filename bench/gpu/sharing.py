"""Shares and protection on a real GPU, alone and paired in one run. Usage: sharing.py LIBRARY [shares|protect ...]"""
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "gpu"))
import page as pages
from gpus import uuids

HERE = os.path.dirname(os.path.abspath(__file__))
SHM = "/dev/shm"


class Job:
    def __init__(self, name, library=None, idle=0.0):
        self.steps_path = tempfile.mktemp(prefix="steps-", dir=SHM)
        self.page_path = tempfile.mktemp(prefix="page-", dir=SHM)
        self.page = pages.Page(self.page_path, uuids())
        env = dict(os.environ)
        if library:
            env.update(LD_PRELOAD=library, SHAREWELL_GPU=self.page_path)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "workload.py"), name, self.steps_path, str(idle)], env=env)

    def ready(self, timeout=60):
        until = time.monotonic() + timeout
        while time.monotonic() < until and self.process.poll() is None:
            if os.path.exists(self.steps_path) and os.path.getsize(self.steps_path) > 16 * 8:
                return self
            time.sleep(0.05)
        raise SystemExit("the workload did not start")

    def steps(self, since, until):
        with open(self.steps_path, "rb") as file:
            data = file.read()
        data = data[:len(data) // 16 * 16]
        return [(b, e) for b, e in struct.iter_unpack("<dd", data) if b >= since and e <= until]

    def pause(self, on):
        self.process.send_signal(signal.SIGSTOP if on else signal.SIGCONT)

    def end(self):
        self.process.kill()
        self.process.wait()
        os.unlink(self.page_path)
        if os.path.exists(self.steps_path):
            os.unlink(self.steps_path)


def figures(steps):
    times = sorted(e - b for b, e in steps)
    return sum(times) / len(times), times[min(len(times) - 1, int(len(times) * 0.99))]


def observe(job, seconds):
    time.sleep(0.4)
    begun = time.monotonic()
    time.sleep(seconds)
    return begun, time.monotonic()


def shares(library):
    for name in ("resnet", "matmul"):
        job = Job(name, library).ready()
        begun, ended = observe(job, 3)
        alone = len(job.steps(begun, ended)) / (ended - begun)
        for share in (100, 250, 500, 750):
            job.page.wish(share=share)
            begun, ended = observe(job, 6)
            steps = job.steps(begun, ended)
            rate = len(steps) / (ended - begun) / alone
            errors = []
            for second in range(6):
                # part of a step counts as part
                lo, hi = begun + second, begun + second + 1
                done = sum((min(e, hi) - max(b, lo)) / (e - b) for b, e in steps if e > lo and b < hi)
                errors.append(abs(done / alone - share / 1000))
            print(f"share {name} {share / 10:.0f} %: reached {rate:.3f}, mean error over 1 s {sum(errors) / len(errors):.3f}", flush=True)
        job.end()


def protect(library, guaranteed, idle, neighbour, seconds=5):
    first = Job(guaranteed, library, idle).ready()
    begun, ended = observe(first, seconds)
    alone = figures(first.steps(begun, ended))
    other = Job(neighbour, library)
    other.page.wish(yields=0)
    first.pause(True)
    other.ready()
    begun, ended = observe(other, 3)
    other_alone = len(other.steps(begun, ended)) / (ended - begun)
    first.pause(False)
    rows = []
    for mode in ("sliced", "gate"):
        on = mode == "gate"
        first.page.wish(watched=on)
        other.page.wish(yields=on, neighbours=[first.page_path])
        begun, ended = observe(first, seconds)
        steps = first.steps(begun, ended)
        mean, p99 = figures(steps)
        theirs = len(other.steps(begun, ended)) / (ended - begun) / other_alone
        busy = sum(e - b for b, e in steps) / (ended - begun)
        rows.append(f"{mode} {mean / alone[0]:.3f}/{p99 / alone[1]:.3f} N{theirs:.2f} busy {busy:.2f}")
    print(f"protect {guaranteed} idle {idle:.0f} ms beside {neighbour}: alone {alone[0] * 1e3:.1f} ms p99 {alone[1] * 1e3:.1f}; " + "; ".join(rows), flush=True)
    first.end()
    other.end()


def main():
    library, what = sys.argv[1], sys.argv[2:] or ["shares", "protect"]
    if "shares" in what:
        shares(library)
    if "protect" in what:
        for guaranteed, idle, neighbour in (("resnet", 0, "resnet"), ("resnet", 0, "matmul"), ("resnet", 35, "matmul"), ("resnet", 35, "resnet")):
            protect(library, guaranteed, idle, neighbour)


main()
