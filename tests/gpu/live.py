"""Programs that share a GPU by `sharewell share`, as AntMan and Gandiva promise it. Usage: live.py SHAREWELL [PART ...] [--unit MIB] [--room UNITS]

    burst    a guaranteed program takes half as much memory again as it had, where an opportunistic one has all the rest and works with a part of it in host memory: no error, at most one slow step,
             and it did not feel the other before
    turns    three programs of which only one fits take turns: all get the same time
    shares   ResNet-50 with 20, 50 and 80 % of the time: its speed against alone            (PyTorch)
    contexts a program whose contexts come and go: their memory goes with them
    protect  ResNet-50 that is idle half of the time beside another: both guaranteed, then one opportunistic (PyTorch)

Memory is counted in units (1 GiB); what the GPU has above `room` (24) is taken by a program that only holds it. The emulated driver takes `--unit 8` and needs no room taken.
"""
import argparse
import os
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOAD = os.path.join(HERE, "..", "..", "bench", "gpu", "workload.py")


def free_mib():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True).stdout
    return int(out.split()[0])


class Stage:
    def __init__(self, options):
        self.program, self.unit, self.folder, self.processes = os.path.abspath(options.program), options.unit, tempfile.mkdtemp(prefix="live-"), []
        os.environ["SHAREWELL_STATE"] = os.path.join(self.folder, "state")

    def path(self, name):
        return os.path.join(self.folder, name)

    def begin(self, name, command, *words, shared=True):
        around = [self.program, "share", "--name", name, *words, "--"] if shared else []
        self.processes.append(subprocess.Popen([*around, sys.executable, *command], start_new_session=True))
        return self.processes[-1]

    def fills(self, name, units, fills, *words, grow=0, at=0, shared=True):
        return self.begin(name, [os.path.join(HERE, "steps.py"), self.path(name), str(units * self.unit), str(fills), str(grow * self.unit), str(at)], *words, shared=shared)

    def trains(self, name, model, *options, words=()):
        return self.begin(name, [WORKLOAD, model, self.path(name), *options], *words)

    def ask(self, *words):
        subprocess.run([self.program, "share", *words], check=True, stdout=subprocess.DEVNULL)

    def change(self, name, *words):
        self.ask("--limit", name, *words)

    def steps(self, name, shape="<dd"):
        size = struct.calcsize(shape)
        try:
            with open(self.path(name), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return []
        return [step[:2] for step in struct.iter_unpack(shape, data[:len(data) // size * size])]

    def until(self, name, count, shape="<dd", patience=120):
        """Waits until it has done so many steps."""
        end = time.monotonic() + patience
        while len(self.steps(name, shape)) < count:
            if time.monotonic() > end or any(process.poll() is not None for process in self.processes):
                raise SystemExit(f"{name} did {len(self.steps(name, shape))} of {count} steps; ended: {[process.returncode for process in self.processes]}")
            time.sleep(0.02)

    def rate(self, name, seconds, shape="<ddd"):
        """Steps in a second, from now on; parts count as parts."""
        begun = time.monotonic()
        time.sleep(seconds)
        ended = time.monotonic()
        time.sleep(0.3)
        return sum((min(e, ended) - max(b, begun)) / (e - b) for b, e in self.steps(name, shape) if e > begun and b < ended) / seconds

    def mean(self, name, seconds, shape="<ddd"):
        """Length of a step, from now on."""
        begun = time.monotonic()
        time.sleep(seconds)
        return statistics.mean(e - b for b, e in self.steps(name, shape) if b > begun)

    def end(self, *processes):
        for process in processes or list(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.processes.remove(process)

    def fill_up(self, room):
        """Something that is not ours takes all memory but so many units, once what ran before is gone."""
        free, before = free_mib(), -1
        while free != before:
            time.sleep(1)
            free, before = free_mib(), free
        taken = free // self.unit - room - 1
        self.fills("ballast", taken, 0, shared=False)
        self.until("ballast", 1)


def burst(stage, options):
    if options.room:
        stage.fill_up(options.room)
    stage.fills("low", 11, 7, "--class", "opportunistic")
    stage.until("low", 20)
    stage.fills("high", 10, 7, grow=5, at=200)
    stage.until("high", 400)
    steps = stage.steps("high")
    times = [e - b for b, e in steps]
    before, after = statistics.median(times[100:200]), statistics.median(times[300:])
    beside = statistics.mean(times[100:200]) / before
    slow = {step: round(took * 1e3) for step, took in enumerate(times) if step >= 200 and took > 2 * after}
    print(f"burst: a step takes {before * 1e3:.1f} ms (in the mean {beside:.3f} times that), with half as much memory again {after * 1e3:.1f} ms; slow ones from step 200 on (ms): {slow}; the other did "
          f"{sum(1 for b, e in stage.steps('low') if b > steps[200][0])} steps")
    return len(slow) <= 1 and beside <= 1.05


def turns_of(steps, quantum):
    """When each turn began, and the time at work in it. The step in which a turn ends takes until the next one."""
    had = []
    for begun, ended in steps:
        if not had or ended - begun > quantum / 2:
            had.append([ended, 0.0])
        else:
            had[-1][1] += ended - begun
    return had


def whole_turns(steps, quantum):
    """Those of all, once each has had one: before, they make the host memory that they need. The one that goes on is not whole."""
    had = {name: turns_of(steps[name], quantum)[:-1] for name in steps}
    first = [next((begun for begun, took in turns if took > quantum / 2), float("inf")) for turns in had.values()]
    return {name: [took for begun, took in turns if begun > max(first)] for name, turns in had.items()}


def turns(stage, options):
    if options.room:
        stage.fill_up(options.room)
    names, quantum, quanta = ("one", "two", "three"), 2, 10
    for name in names:
        stage.fills(name, 14, 5, "--slice", str(quantum))
    begun, patience = time.monotonic(), 6 * quantum * (quanta + 4) * len(names)
    had = {}
    while min(map(len, had.values()), default=0) < quanta:
        if time.monotonic() - begun > patience or any(process.poll() is not None for process in stage.processes):
            raise SystemExit(f"turns so far: {had}; ended: {[process.returncode for process in stage.processes]}")
        time.sleep(0.5)
        had = whole_turns({name: stage.steps(name) for name in names}, quantum)
    times = {name: sum(took[:quanta]) for name, took in had.items()}
    fair = statistics.mean(times.values())
    print(f"turns: time at work in {quanta} turns {({name: round(time, 2) for name, time in times.items()})} s: off by {max(abs(time / fair - 1) for time in times.values()):.3f}; "
          f"the shortest took {min(min(took[:quanta]) for took in had.values()):.2f} s, the longest {max(max(took[:quanta]) for took in had.values()):.2f}")
    return max(abs(time / fair - 1) for time in times.values()) <= 0.05


def shares(stage, options):
    stage.trains("train", "resnet")
    stage.until("train", 20, "<ddd")
    alone, good = stage.rate("train", 4), True
    for percent in (20, 50, 80):
        stage.change("train", "--compute", str(percent))
        time.sleep(1)
        part = stage.rate("train", 8) / alone
        good = good and abs(part - percent / 100) <= 0.05
        print(f"shares: with {percent} % its speed is {part:.3f} of alone", flush=True)
    return good


def protect(stage, options):
    """By turns: its own steps differ by several percent from one minute to the next."""
    stage.trains("high", "resnet", "idle=35")
    stage.trains("low", "resnet")
    for name in ("high", "low"):
        stage.until(name, 20, "<ddd")
    took = {"alone": [], "guaranteed": [], "opportunistic": []}
    for _ in range(4):
        stage.ask("--suspend", "low")
        took["alone"].append(stage.mean("high", 2.5))
        stage.ask("--resume", "low")
        for kind in ("guaranteed", "opportunistic"):
            stage.change("low", "--class", kind)
            time.sleep(1)
            took[kind].append(stage.mean("high", 2.5))
    alone, beside, behind = (statistics.mean(times) for times in took.values())
    print(f"protect: steps of {({kind: [round(time * 1e3, 1) for time in times] for kind, times in took.items()})} ms: beside a guaranteed one {beside / alone:.3f} times as long as alone, "
          f"beside an opportunistic one {behind / alone:.3f}")
    return beside / alone >= 1.3 and behind / alone <= 1.05


def contexts(stage, options):
    return stage.begin("contexts", [os.path.join(HERE, "contexts.py")]).wait() == 0


def main():
    parts = {"contexts": contexts, "burst": burst, "turns": turns, "shares": shares, "protect": protect}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--unit", type=int, default=1024, help="MiB")
    parser.add_argument("--room", type=int, default=24, help="units of memory that are left free; 0: all")
    options = parser.parse_args()
    answers = {}
    for part in options.parts or parts:
        stage = Stage(options)
        try:
            answers[part] = parts[part](stage, options)
        except (SystemExit, statistics.StatisticsError) as error:
            print(f"{part}: {error}")
            answers[part] = False
        stage.end()
        print(f"{part}: {'holds' if answers[part] else 'DOES NOT HOLD'}", flush=True)
    return 0 if all(answers.values()) else 1


sys.exit(main())
