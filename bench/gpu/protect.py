"""What a neighbour costs a guaranteed job, and what the neighbour gets. Usage: protect.py LIBRARY [GUARANTEED:IDLE_MS:NEIGHBOUR ...] [peers] [shares]

Of each way to share the GPU: step of the guaranteed job against alone, mean and 99th percentile, and the neighbour's speed against its own alone. `peers` adds NVIDIA's multi-process
service; `shares` adds neighbours that get a share, for a curve.
"""
import os
import sys

import stage

PAIRS = [f"{g}:{idle}:{n}" for g, idle in (("resnet", 0), ("transformer", 0), ("dlrm", 0), ("resnet", 35)) for n in ("resnet", "matmul")]


class Cast:
    """Jobs by name, started once and together; how each does alone is measured when it is first asked."""

    def __init__(self):
        self.jobs, self.alone = {}, {}

    def add(self, key, *arguments, **settings):
        if key not in self.jobs:
            self.jobs[key] = stage.Job(*arguments, **settings)

    def fares_alone(self, key):
        if key not in self.alone:
            self.alone[key], = stage.watch(self.jobs[key], seconds=3)
        return self.alone[key]

    def show(self, pair, way, first, other, other_alone=None):
        alone, other_alone = self.fares_alone(first), self.fares_alone(other_alone or other)
        window, neighbour = stage.watch(self.jobs[first], self.jobs[other], seconds=3)
        print(f"| {pair} | {way} | {window.mean / alone.mean:.3f} | {window.p99 / alone.p99:.3f} | {neighbour.rate / other_alone.rate:.2f} | {window.busy():.2f} "
              f"| {window.gpu / alone.gpu:.3f} |", flush=True)

    def end(self):
        for job in self.jobs.values():
            job.end()


def ours(library, pairs, with_shares):
    cast = Cast()
    for guaranteed, idle, neighbour in pairs:
        cast.add((guaranteed, idle), guaranteed, f"idle={idle}", library=library)
        cast.add(neighbour, neighbour, library=library)
    stage.ready(*cast.jobs.values())
    for guaranteed, idle, neighbour in pairs:
        pair, first = f"{guaranteed}:{idle}:{neighbour}", (guaranteed, idle)
        watched, other = cast.jobs[first].page, cast.jobs[neighbour].page
        cast.show(pair, "time slices", first, neighbour)
        for share in (100, 250, 500) if with_shares else ():
            other.wish(share=share)
            cast.show(pair, f"share {share / 10:.0f} %", first, neighbour)
        watched.wish(watched=1)
        for share in (1000, 800, 600, 400) if with_shares else (1000,):
            other.wish(share=share % 1000, yields=1, neighbours=[watched.path])
            cast.show(pair, "gives way" + (f", share {share / 10:.0f} %" if share < 1000 else ""), first, neighbour)
        watched.wish(watched=0)
        other.wish(share=0, yields=0)
    cast.end()


def peers(pairs):
    """The multi-process service: plain, with a priority, and with a percentage and a priority."""
    service, cast = stage.Mps(), Cast()
    low = dict(service.env, CUDA_MPS_CLIENT_PRIORITY="1")
    ways = {"MPS": service.env, "MPS, priority": low, "MPS, 20 % and priority": dict(low, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="20")}
    for guaranteed, idle, neighbour in pairs:
        cast.add((guaranteed, idle), guaranteed, f"idle={idle}", env=dict(service.env, CUDA_MPS_CLIENT_PRIORITY="0"))
        for way, env in ways.items():
            cast.add((neighbour, way), neighbour, env=env)
    stage.ready(*cast.jobs.values())
    for guaranteed, idle, neighbour in pairs:
        for way in ways:
            cast.show(f"{guaranteed}:{idle}:{neighbour}", way, (guaranteed, idle), (neighbour, way), (neighbour, "MPS"))
    cast.end()
    service.end()


def main():
    library, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    pairs = [word.split(":") for word in words if ":" in word] or [pair.split(":") for pair in PAIRS]
    print("| pair | way | mean | p99 | neighbour | guaranteed busy | its GPU time |\n|---|---|---|---|---|---|---|")
    ours(library, pairs, "shares" in words)
    if "peers" in words:
        peers(pairs)


main()
