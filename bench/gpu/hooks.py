"""What standing between a program and the driver costs: the same job with and without the runtime, in turns. Usage: hooks.py LIBRARY [quick]"""
import os
import statistics
import sys

import stage

CASES = (("mlp",), ("mlp", "graph"), ("mlp", "compile"), ("resnet",), ("transformer",), ("transformer", "graph"), ("transformer", "compile"))


def main():
    library, rounds = os.path.abspath(sys.argv[1]), 3 if "quick" in sys.argv else 6
    pairs = [(stage.Job(*case), stage.Job(*case, library=library)) for case in CASES]
    stage.ready(*[job for pair in pairs for job in pair])
    print("| job | step alone | under the runtime | more |\n|---|---|---|---|")
    for bare, hooked in pairs:
        medians = ([], [])
        for _ in range(rounds):
            for job, found in zip((bare, hooked), medians):
                found.append(stage.watch(job, seconds=0.8, settle=0.2)[0].median * 1e3)
        a, b = (statistics.median(found) for found in medians)
        spread = (max(medians[0]) - min(medians[0])) / a
        print(f"| {bare.name} | {a:.3f} ms (+-{spread * 50:.1f} %) | {b:.3f} ms | {(b / a - 1) * 100:+.2f} % |", flush=True)


main()
