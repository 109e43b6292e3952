"""A job of profiles.py, which is warm when it has made FOLDER/MODEL.ROLE.ready, waits for .go beside it, and then measures itself into .json.

    profiled.py MODEL FOLDER plain SECONDS      steps for so long: time, cores, memory; then how much of a step the GPU has kernels
    profiled.py MODEL FOLDER counted SECONDS    under ncu with --profile-from-start off: lets it see a part of the operations of each step, until it has seen all, or time is over

An operation that is seen takes hundreds of times as long. So a step is divided into PARTS, each an operation in PARTS from everywhere in it: whenever time is over, what was seen is
of the whole step. The model `python` computes without PyTorch and without a GPU, to try these programs where there is none.
"""
import json
import os
import resource
import sys
import time

PARTS = 16
ORDER = (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15)
PROFILED_STEPS = 5


def make_step(model):
    """A step, which is over when it returns."""
    if model == "python":
        return lambda: sum(i * i for i in range(20000))
    import torch
    import workload
    step = workload.stepper(model, [], 0)

    def whole():
        step()
        torch.cuda.synchronize()
    return whole


def write(path, values):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(values, file)
    os.rename(path + ".new", path)


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def covered(spans):
    """How much of the time is in at least one of them."""
    total, until = 0.0, float("-inf")
    for begun, ended in sorted(spans):
        total += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return total


def kernel_seconds(step):
    """Of one step: the time in which the GPU had something of it."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(PROFILED_STEPS):
            step()
    spans = [(event.time_range.start, event.time_range.end) for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return covered(spans) / 1e6 / PROFILED_STEPS


def plain(model, step, seconds, path):
    begun, cpu, steps = time.monotonic(), cpu_seconds(), 0
    while time.monotonic() - begun < seconds or steps < 3:
        step()
        steps += 1
    wall = time.monotonic() - begun
    found = {"step_s": wall / steps, "steps": steps, "cores": (cpu_seconds() - cpu) / wall, "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "kernels_s": None}
    # Whatever becomes of the profiler, this is known.
    write(path, dict(found, more=model != "python"))
    if model != "python":
        import torch
        found["gpu_bytes"] = torch.cuda.max_memory_reserved()
        try:
            found["kernels_s"] = kernel_seconds(step)
        except Exception as error:  # pylint: disable=broad-except
            found["trouble"] = f"the time of kernels: {error!r}"
        write(path, dict(found, more=False))


def sampling(part):
    """Lets the profiler see every PARTS-th operation, forward, backward and of the optimizer."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Sampling(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.operation, self.backward = 0, False

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            chosen = self.operation % PARTS == part
            self.operation += 1
            self.backward |= "backward" in str(func)
            if not chosen:
                return func(*args, **(kwargs or {}))
            torch.cuda.profiler.start()
            try:
                return func(*args, **(kwargs or {}))
            finally:
                torch.cuda.profiler.stop()
    return Sampling()


def counted(model, step, seconds, path):
    begun, done, seen = time.monotonic(), 0, {}
    for part in ORDER:
        if done > 0 and time.monotonic() - begun >= seconds:
            break
        if model == "python":
            step()
        else:
            with sampling(part) as mode:
                step()
            seen = {"operations": mode.operation, "backward": mode.backward}
        done += 1
    write(path, {"parts": done, **seen, "seconds": time.monotonic() - begun, "more": False})


def main():
    model, folder, role, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    base = os.path.join(folder, f"{model}.{role}")
    step = make_step(model)
    for _ in range(5):
        step()
    write(base + ".ready", {})
    while not os.path.exists(base + ".go"):
        time.sleep(0.02)
    (plain if role == "plain" else counted)(model, step, seconds, base + ".json")


main()
