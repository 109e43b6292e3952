"""What standing between a program and the driver costs: the same job with and without the runtime, several processes of each, in turns. Usage: hooks.py LIBRARY [quick] [MODEL[,OPTION...] ...]

Two processes of one program differ on their own, so that each counts once, by the median of its steps. All of them run on the same few cores. The interval is that of Welch's for 95 %.
"""
import os
import statistics
import sys

import stage

CASES = ("mlp", "mlp,graph", "mlp,compile", "mlp,pool", "resnet", "transformer", "transformer,graph", "transformer,compile")
CORES = 4
# Of Student's distribution at 97.5 %, by degrees of freedom.
STUDENT = {2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26, 10: 2.23, 11: 2.20, 12: 2.18, 13: 2.16, 14: 2.14}


def settle(job):
    """Keeps all its threads to the last cores."""
    cores = sorted(os.sched_getaffinity(0))[-CORES:]
    for thread in os.listdir(f"/proc/{job.process.pid}/task"):
        os.sched_setaffinity(int(thread), cores)


def launches(job):
    """How many a step has, by the runtime's count over all of its steps."""
    counts = [slot["launches"] for slot in job.page.slots()]
    return sum(counts) / max(1, os.path.getsize(job.steps_path) // stage.STEP.size)


def measure(jobs, rounds):
    """Median step of each, in milliseconds, measured in turns."""
    found = [[] for _ in jobs]
    for turn in range(rounds):
        order = list(enumerate(jobs))
        for i, job in order if turn % 2 == 0 else reversed(order):
            found[i].append(stage.watch(job, seconds=0.7, settle=0.2)[0].median * 1e3)
    return [statistics.median(medians) for medians in found]


def compare(case, library, count, rounds):
    words = case.split(",")
    pairs = [(stage.Job(*words), stage.Job(*words, library=library)) for _ in range(count)]
    jobs = [job for pair in pairs for job in pair]
    stage.ready(*jobs)
    for job in jobs:
        settle(job)
    medians, each = measure(jobs, rounds), launches(jobs[1])
    for job in jobs:
        job.end()
    bare, hooked = medians[::2], medians[1::2]
    a, b = statistics.mean(bare), statistics.mean(hooked)
    parts = [statistics.variance(values) / count for values in (bare, hooked)]
    freedom = sum(parts) ** 2 / sum(part ** 2 / (count - 1) for part in parts)
    error = STUDENT[max(2, min(14, int(freedom)))] * sum(parts) ** 0.5
    print(f"| {' '.join(words)} | {a:.3f} ms (+-{(max(bare) - min(bare)) / a * 50:.1f} %) | {b:.3f} ms | {(b / a - 1) * 100:+.2f} % | {(b - a - error) / a * 100:+.2f} to {(b - a + error) / a * 100:+.2f} % "
          f"| {each:.0f} |", flush=True)


def main():
    library, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    count, rounds = (4, 2) if "quick" in words else (6, 2)
    print(f"Of {count} processes each:\n\n| job | step alone | under the runtime | more | 95 % interval | launches in a step |\n|---|---|---|---|---|---|", flush=True)
    for case in [word for word in words if word != "quick"] or CASES:
        compare(case, library, count, rounds)


main()
