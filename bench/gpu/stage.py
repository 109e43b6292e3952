"""The stage of the benchmarks: jobs that are started together, wait until it is their turn, and are watched for a while, alone or beside others."""
import atexit
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))
import page as pages
from gpus import uuids

FOLDER = tempfile.mkdtemp(prefix="sharewell-bench-", dir="/dev/shm")
STEP = struct.Struct("<ddd")


class Window:
    """What one job did between two moments."""

    def __init__(self, steps, begun, ended):
        self.steps, self.begun, self.ended = steps, begun, ended
        times = sorted(e - b for b, e, _ in steps) or [float("nan")]
        self.mean, self.median = sum(times) / len(times), times[len(times) // 2]
        self.p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
        gpu = sorted(g for _, _, g in steps) or [float("nan")]
        self.gpu = gpu[len(gpu) // 2]
        self.rate = len(steps) / (ended - begun)

    def busy(self):
        """Part of the time in which a step was under way."""
        return sum(e - b for b, e, _ in self.steps) / (self.ended - self.begun)

    def done(self, since, until):
        """Steps between two moments; part of one counts as part."""
        return sum((min(e, until) - max(b, since)) / (e - b) for b, e, _ in self.steps if e > since and b < until)


class Job:
    """Runs workload.py; under the runtime where a library is given. Waits from its first steps on until go()."""

    def __init__(self, model, *options, library=None, env=None):
        self.name = f"{model} {' '.join(options)}".strip()
        base = tempfile.mktemp(prefix=model, dir=FOLDER)
        self.steps_path, self.page = base + ".steps", None
        around = dict(os.environ, **(env or {}))
        if library:
            self.page = pages.Page(base + ".page", uuids())
            around.update(LD_PRELOAD=library, SHAREWELL_GPU=self.page.path)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "workload.py"), model, self.steps_path, *options], env=around)
        atexit.register(self.end)

    def is_ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"{self.name} ended with {self.process.returncode}")
        return os.path.exists(self.steps_path) and os.path.getsize(self.steps_path) > 8 * STEP.size

    def go(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def window(self, begun, ended):
        with open(self.steps_path, "rb") as file:
            data = file.read()
        data = data[:len(data) // STEP.size * STEP.size]
        return Window([s for s in STEP.iter_unpack(data) if s[0] >= begun and s[1] <= ended], begun, ended)


def ready(*jobs, timeout=240):
    """Waits until all of them have done some steps, each stopped as it gets there, so that one compiles while others wait."""
    until, left = time.monotonic() + timeout, list(jobs)
    while left:
        for job in [job for job in left if job.is_ready()]:
            job.stop()
            left.remove(job)
        if time.monotonic() > until:
            raise SystemExit(f"not ready: {[job.name for job in left]}")
        time.sleep(0.01)
    # What was given to the GPU before they stopped is over.
    time.sleep(0.2)
    return jobs


def watch(*jobs, seconds=3.0, settle=0.4):
    """Lets these run, and no others; returns a window of each."""
    for job in jobs:
        job.go()
    time.sleep(settle)
    begun = time.monotonic()
    time.sleep(seconds)
    ended = time.monotonic()
    for job in jobs:
        job.stop()
    # A job that was stopped with work on the GPU must not disturb the next.
    time.sleep(0.15)
    return [job.window(begun, ended) for job in jobs]


class Mps:
    """NVIDIA's multi-process service, with its own folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="mps-", dir=FOLDER)
        self.env = {"CUDA_MPS_PIPE_DIRECTORY": self.folder, "CUDA_MPS_LOG_DIRECTORY": self.folder}
        subprocess.run(["nvidia-cuda-mps-control", "-d"], env=dict(os.environ, **self.env), check=True)
        atexit.register(self.end)

    def end(self):
        subprocess.run(["nvidia-cuda-mps-control"], input=b"quit -t 2\n", env=dict(os.environ, **self.env), timeout=30, check=False)


def clean():
    shutil.rmtree(FOLDER, ignore_errors=True)


# Runs last: handlers run in the opposite order.
atexit.register(clean)
