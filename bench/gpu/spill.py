"""A job that gets less memory than it needs: how fast it goes on with the rest in host memory. Usage: spill.py LIBRARY [MODEL ...]"""
import os
import sys

import stage


def main():
    library, models = os.path.abspath(sys.argv[1]), sys.argv[2:] or ("resnet", "transformer")
    jobs = [stage.Job(model, library=library) for model in models]
    stage.ready(*jobs)
    print("| job | memory | speed against all of it | in host memory |\n|---|---|---|---|")
    for job in jobs:
        alone, = stage.watch(job)
        peak = max(slot["gpus"][0]["peak"] for slot in job.page.slots())
        for part in (0.9, 0.75, 0.6):
            serial = job.page.wish(limit=int(peak * part))
            job.go()
            met = job.page.wait(serial, 60)
            window, = stage.watch(job, seconds=6)
            host = sum(slot["gpus"][0]["host"] for slot in job.page.slots())
            print(f"| {job.name} | {part:.0%} of {peak / 2**30:.1f} GiB{'' if met else ', not met'} | {window.rate / alone.rate:.3f} | {host / 2**30:.2f} GiB |", flush=True)
            job.go()
            job.page.wait(job.page.wish(limit=stage.pages.NO_LIMIT), 60)
        job.end()


main()
