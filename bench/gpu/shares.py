"""How well a share of the GPU's time is kept. Usage: shares.py LIBRARY [MODEL ...]

Of each share: speed against alone, the mean error of that over windows of 1 s and of 10 s, and how much of the time the GPU was busy, as NVIDIA's management library counts it.
"""
import os
import statistics
import subprocess
import sys

import stage

SECONDS = 10


class Busy:
    """Part of the time in which the GPU had a kernel, by nvidia-smi's count."""

    def __enter__(self):
        self.process = subprocess.Popen(["nvidia-smi", "--query-gpu=utilization.gpu,clocks.sm", "--format=csv,noheader,nounits", "-lms", "200"],
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *unused):
        self.process.terminate()
        rows = [line.split(",") for line in self.process.communicate()[0].splitlines()[2:]]
        rows = [row for row in rows if len(row) == 2]
        self.part = statistics.mean(float(row[0]) for row in rows) / 100 if rows else float("nan")
        self.clock = statistics.mean(float(row[1]) for row in rows) if rows else float("nan")


def main():
    library, models = os.path.abspath(sys.argv[1]), sys.argv[2:] or ("resnet", "matmul")
    jobs = [stage.Job(model, library=library) for model in models]
    stage.ready(*jobs)
    print("| job | share | speed against alone | error over 1 s | over 10 s | GPU busy | clock |\n|---|---|---|---|---|---|---|")
    for job in jobs:
        alone = stage.watch(job, seconds=4)[0].rate
        for share in (100, 250, 500, 750):
            job.page.wish(share=share)
            with Busy() as busy:
                window = stage.watch(job, seconds=SECONDS)[0]
            errors = [abs(window.done(window.begun + s, window.begun + s + 1) / alone - share / 1000) for s in range(SECONDS)]
            whole = window.done(window.begun, window.ended) / (window.ended - window.begun) / alone
            print(f"| {job.name} | {share / 1000:.2f} | {whole:.3f} | {statistics.mean(errors):.3f} | {abs(whole - share / 1000):.3f} | {busy.part:.3f} | {busy.clock:.0f} MHz |",
                  flush=True)
        job.page.wish(share=0)
        job.end()


main()
