"""What each model uses alone: cores and memory of the host, and by the GPU's counters (Nsight Compute) SMs, memory pipeline, L2, DRAM reads and writes.

    profiles.py [LIBRARY] [--seconds 5] [--models resnet,dlrm] [--in-turn] [--store profiles.yaml] > profiles.json

With LIBRARY, the host's part is measured under the runtime. --seconds is how long counters are read of each model. --store also writes what `sharewell contention --profiles` reads.
Prints JSON, which contention_report.py takes, and the table of it to standard error. All jobs start at once, are warm before the first is measured, and are measured one after the other;
with --in-turn those under ncu also start one after the other.
What a model uses of the GPU is that of its kernels, weighed by their time, times the part of the time in which it has any.
"""
import argparse
import atexit
import csv
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = {"resnet": "resnet50", "mobilenet": "mobilenet_v2", "transformer": "transformer", "speech": "data2vec", "dlrm": "dlrm", "deepfm": "deepfm"}
DURATION, OF_PEAK = "gpu__time_duration.sum", ".pct_of_peak_sustained_elapsed"
METRICS = {"sm": "sm__throughput.avg" + OF_PEAK, "mem_pipe": "gpu__compute_memory_throughput.avg" + OF_PEAK, "l2": "lts__throughput.avg" + OF_PEAK,
           "dram_read": "dram__bytes_read.sum" + OF_PEAK, "dram_write": "dram__bytes_write.sum" + OF_PEAK}
NANOSECONDS = {"nsecond": 1, "ns": 1, "usecond": 1e3, "us": 1e3, "msecond": 1e6, "ms": 1e6, "second": 1e9, "s": 1e9}
HOST_CORES, HOST_BYTES = 10, 40 << 30
PLAIN_SECONDS, READY_SECONDS, GRACE_SECONDS = 2.0, 150, 60
PARTS = 16  # of profiled.py


def say(text):
    print(text, file=sys.stderr, flush=True)


def read_text(path):
    """"" where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# ---- what ncu prints

def read_counters(text):
    """Kernels, their time in seconds, and what they use, weighed by it; None: there are none."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    kernels = {}
    for row in csv.DictReader(lines) if lines else ():
        name, unit, value = row.get("Metric Name"), row.get("Metric Unit"), (row.get("Metric Value") or "").replace(",", "")
        try:
            figure = float(value) * NANOSECONDS[unit] if name == DURATION else float(value)
        except (ValueError, KeyError):
            continue
        kernels.setdefault((row.get("Process ID"), row.get("ID")), {})[name] = figure
    kernels = [kernel for kernel in kernels.values() if kernel.get(DURATION, 0) > 0]
    if not kernels:
        return None
    found = {"kernels": len(kernels), "time_s": sum(kernel[DURATION] for kernel in kernels) / 1e9}
    for part, metric in METRICS.items():
        known = [kernel for kernel in kernels if metric in kernel]
        weight = sum(kernel[DURATION] for kernel in known)
        found[part] = sum(kernel[DURATION] * min(kernel[metric], 100) for kernel in known) / weight / 100 if weight > 0 else None
    return found


# ---- jobs

def find_ncu():
    places = [shutil.which("ncu"), "/usr/local/cuda/bin/ncu", *sorted(glob.glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)]
    return next((place for place in places if place and os.access(place, os.X_OK)), None)


class Job:
    """profiled.py, plain or counted. `trouble` says why it gave nothing."""

    def __init__(self, model, role, seconds, folder, around=(), env=None):
        self.model, self.role, self.trouble = model, role, None
        self.base = os.path.join(folder, f"{model}.{role}")
        self.log = self.base + ".csv"
        self.out = open(self.base + ".out", "wb")
        command = [*around, sys.executable, os.path.join(HERE, "profiled.py"), model, folder, role, str(seconds)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.STDOUT, env=dict(os.environ, **(env or {})), start_new_session=True)
        atexit.register(self.end)

    def await_until(self, condition, until):
        """False, and why, where it ends before, or it takes too long."""
        while not condition():
            if self.process.poll() is not None and not condition():
                self.trouble = f"it ended with {self.process.returncode}: {self.last_words()}"
                return False
            if time.monotonic() > until:
                self.trouble = f"it took too long: {self.last_words()}"
                self.end()
                return False
            time.sleep(0.02)
        return True

    def last_words(self):
        """What it printed last, and what ncu complained of."""
        said = [line for line in read_text(self.log).splitlines() if line.startswith(("==ERROR==", "==WARNING=="))]
        return " / ".join(line.strip() for line in [*said[:4], *read_text(self.base + ".out").splitlines()[-4:]] if line.strip())

    def go(self):
        with open(self.base + ".go", "w", encoding="utf-8"):
            pass

    def result(self):
        try:
            with open(self.base + ".json", encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return None

    def end(self):
        if self.process.poll() is None:
            # With what ncu started: it is the first of its session.
            try:
                os.killpg(self.process.pid, 9)
            except ProcessLookupError:
                pass
        self.process.wait()


def start_plain(models, folder, library):
    jobs = {}
    for model in models:
        env = {}
        if library:
            sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))
            import page
            from gpus import uuids
            env = {"LD_PRELOAD": library, "SHAREWELL_GPU": page.Page(os.path.join(folder, model + ".page"), uuids()).path}
        jobs[model] = Job(model, "plain", PLAIN_SECONDS, folder, env=env)
    return jobs


def start_counted(model, folder, ncu, seconds):
    around = [ncu, "--csv", "--log-file", os.path.join(folder, f"{model}.counted.csv"), "--target-processes", "all", "--profile-from-start", "off", "--replay-mode", "kernel",
              "--clock-control", "none", "--cache-control", "none", "--metrics", ",".join([DURATION, *METRICS.values()])]
    return Job(model, "counted", seconds, folder, around, {"LC_NUMERIC": "C"})


def await_ready(job, until):
    return job.await_until(lambda: os.path.exists(job.base + ".ready"), until)


def measure_plain(job):
    job.go()
    job.await_until(lambda: job.result() is not None and not job.result()["more"], time.monotonic() + PLAIN_SECONDS + GRACE_SECONDS)
    job.end()
    return job.result()


def measure_counted(job, seconds):
    """What the counters say, with the part of a step that they are of."""
    job.go()
    job.await_until(lambda: job.process.poll() is not None, time.monotonic() + 3 * seconds + GRACE_SECONDS)
    job.end()
    found, result = read_counters(read_text(job.log)), job.result() or {}
    if found is None:
        job.trouble = f"no kernel was measured: {job.trouble or job.last_words()}"
        return None
    if not result.get("backward", True):
        job.trouble = "only operations of the forward pass were seen"
    return dict(found, parts=result.get("parts", 0))


# ---- what comes of it

def profile_of(plain, counters):
    found = {"host_cpu": None, "host_mem": None, "busy": None, **dict.fromkeys(METRICS)}
    if plain:
        found.update(host_cpu=min(plain["cores"] / HOST_CORES, 1), host_mem=min(plain["host_bytes"] / HOST_BYTES, 1), cores=plain["cores"], host_bytes=plain["host_bytes"],
                     step_ms=plain["step_s"] * 1e3, gpu_bytes=plain.get("gpu_bytes"))
        if plain["kernels_s"] is not None:
            found["busy"] = min(plain["kernels_s"] / plain["step_s"], 1)
    if counters:
        found.update(kernels=counters["kernels"], parts=counters["parts"])
        if plain and found["busy"] is None and counters["parts"]:
            # The parts that were seen, scaled to the whole.
            found["busy"] = min(counters["time_s"] * PARTS / counters["parts"] / plain["step_s"], 1)
        for part in METRICS:
            if counters[part] is not None and found["busy"] is not None:
                found[part] = counters[part] * found["busy"]
    return found


def store_of(profiles):
    """For `sharewell contention --profiles`: what is known of each; counters all, or none."""
    text = ""
    for model, found in profiles.items():
        if any(found.get(key) is None for key in ("cores", "host_bytes", "step_ms")):
            continue
        figures = {"wall": f"{max(found['step_ms'], PLAIN_SECONDS * 1e3) * 1e3:.0f}us", "cores": f"{found['cores']:.3f}", "host_memory": found["host_bytes"], "iteration_time": f"{found['step_ms'] * 1e3:.0f}us"}
        parts = [part for part in ("busy", *METRICS) if found.get(part) is not None]
        if len(parts) == 1 + len(METRICS) or parts == ["busy"]:
            figures.update({part: f"{max(found[part], 0.001):.3f}" for part in parts})
        text += f"  - name: {MODELS.get(model, model)}\n    runs:\n      - {{{', '.join(f'{key}: {value}' for key, value in figures.items())}}}\n"
    return "profiles:\n" + text if text else "profiles: []\n"


def table(profiles):
    columns = ("host_cpu", "host_mem", *METRICS, "busy")
    yield "| model | step | " + " | ".join(columns) + " | kernels |"
    yield "|---|---|" + "---|" * (len(columns) + 1)
    for model, found in profiles.items():
        cells = ("-" if found[column] is None else f"{found[column] * 100:.0f}" for column in columns)
        yield f"| {model} | {found.get('step_ms', float('nan')):.1f} ms | " + " | ".join(cells) + f" | {found.get('kernels', '-')} |"


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", nargs="?")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--store")
    parser.add_argument("--in-turn", action="store_true")
    options = parser.parse_args(arguments)
    options.models = options.models.split(",")
    for model in options.models:
        if model not in MODELS and model != "python":
            parser.error(f"there is no model {model!r}")
    if options.library and not os.path.exists(options.library):
        parser.error(f"there is no {options.library}")
    return options


def measure(options, folder):
    ncu = find_ncu()
    if ncu is None:
        say("there is no ncu (Nsight Compute): nothing is known of counters")
    plain = start_plain(options.models, folder, os.path.abspath(options.library) if options.library else None)
    counted = {model: start_counted(model, folder, ncu, options.seconds) for model in options.models} if ncu and not options.in_turn else {}
    until = time.monotonic() + READY_SECONDS
    for job in [*plain.values(), *counted.values()]:
        await_ready(job, until)
    host = {model: measure_plain(job) if job.trouble is None else None for model, job in plain.items()}
    counters = {}
    for model in options.models if ncu else ():
        if options.in_turn:
            counted[model] = start_counted(model, folder, ncu, options.seconds)
            await_ready(counted[model], time.monotonic() + READY_SECONDS)
        counters[model] = measure_counted(counted[model], options.seconds) if counted[model].trouble is None else None
    profiles = {}
    for model in options.models:
        profiles[model] = profile_of(host[model], counters.get(model))
        trouble = [f"{job.role}: {job.trouble}" for job in (plain[model], counted.get(model)) if job and job.trouble] + [(host[model] or {}).get("trouble")]
        profiles[model]["trouble"] = [text for text in trouble if text]
        for text in profiles[model]["trouble"]:
            say(f"{model}: {text}")
    return profiles


def main():
    options = options_of(sys.argv[1:])
    folder = tempfile.mkdtemp(prefix="sharewell-profiles-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    begun = time.monotonic()
    profiles = measure(options, folder)
    say("\n".join(table(profiles)))
    say(f"{time.monotonic() - begun:.0f} s in all")
    if options.store:
        with open(options.store, "w", encoding="utf-8") as file:
            file.write(store_of(profiles))
    print(json.dumps({"profiles": profiles}, indent=1))


if __name__ == "__main__":
    main()
