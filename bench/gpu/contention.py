"""How much jobs slow each other down on one GPU: every pair, under time slices, under NVIDIA's multi-process service, and with the second giving way to the first.

    contention.py LIBRARY [SECONDS]      prints comma-separated values: way, first, second, slowdown of the first, slowdown of the second, steps that these were measured on
"""
import itertools
import os
import sys

import stage

MODELS = ("resnet", "mobilenet", "transformer", "speech", "dlrm", "deepfm")


def slowdown(alone, window):
    """By the time that its steps took, which a window of few steps tells more exactly than their number; by that where it hardly did any."""
    return window.mean / alone.mean if len(window.steps) >= 5 else alone.rate / max(window.rate, 1e-9)


def pairs(way, jobs, seconds, give_way=False):
    """`jobs`: two of each model, so that a model can be paired with itself."""
    alone = {model: stage.watch(jobs[model][0], seconds=seconds)[0] for model in MODELS}
    for model, window in alone.items():
        print(f"alone-{way},{model},,{window.mean * 1e3:.3f},{window.gpu * 1e3:.3f},{len(window.steps)}", flush=True)
    couples = itertools.product(MODELS, MODELS) if give_way else itertools.combinations_with_replacement(MODELS, 2)
    for a, b in couples:
        first, second = jobs[a][0], jobs[b][1]
        if give_way:
            first.page.wish(watched=1)
            second.page.wish(yields=1, neighbours=[first.page.path])
        one, other = stage.watch(first, second, seconds=seconds)
        print(f"{way},{a},{b},{slowdown(alone[a], one):.4f},{slowdown(alone[b], other):.4f},{len(one.steps)}/{len(other.steps)}", flush=True)
        if give_way:
            first.page.wish(watched=0)
            second.page.wish(yields=0)


def cast(**settings):
    jobs = {model: (stage.Job(model, **settings), stage.Job(model, **settings)) for model in MODELS}
    stage.ready(*[job for two in jobs.values() for job in two])
    return jobs


def end(jobs):
    for two in jobs.values():
        for job in two:
            job.end()


def main():
    library, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    jobs = cast(library=library)
    pairs("slices", jobs, seconds)
    pairs("gate", jobs, seconds, give_way=True)
    end(jobs)
    service = stage.Mps()
    jobs = cast(env=service.env)
    pairs("mps", jobs, seconds)
    end(jobs)
    service.end()


main()
