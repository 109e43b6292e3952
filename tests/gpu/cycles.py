"""Runs train.py bare, under the runtime, and under the runtime with random suspends or squeezes; the hashes must agree.
Usage: cycles.py LIBRARY MODEL STEPS CYCLES suspend|squeeze [options of train.py]"""
import os
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page as pages
from gpus import used_mib, uuids


def start(args, library=None, path=None):
    env = dict(os.environ)
    if library:
        env.update(LD_PRELOAD=library, SHAREWELL_GPU=path)
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.py")
    errors = tempfile.TemporaryFile("w+")  # not a pipe, which would have to be emptied meanwhile
    process = subprocess.Popen([sys.executable, script] + args, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
    process.errors = errors
    return process


def finish(process, how):
    """What it printed last; of one that failed, what it said, and in which of the runs."""
    out, _ = process.communicate(timeout=300)
    lines = [line for line in out.splitlines() if line.startswith("hash")]
    if lines:
        return lines[0].split()
    process.errors.seek(0)
    print(f"FAILED {how}, exit {process.returncode}:\n{process.errors.read()[-4000:]}", flush=True)
    return ["hash", "none", "median_ms", "0", "peak_mib", f"exit {process.returncode}"]


def main():
    library, model, steps, cycles, kind, options = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5], sys.argv[6:]
    bare = finish(start([model, steps] + options), "bare")
    if bare[1] == "none":
        return 77
    path = tempfile.mktemp(prefix="page-", dir="/dev/shm")
    page = pages.Page(path, uuids())
    calm = finish(start([model, steps] + options, library, path), "under the runtime")
    page = pages.Page(path, uuids())
    process = start([model, steps] + options, library, path)
    process.stdout.readline()
    chance = random.Random(1)
    done, troubles, gbps, freed = 0, {}, [], []
    for _ in range(cycles):
        time.sleep(chance.uniform(0.0, 0.15))
        if process.poll() is not None:
            break
        if kind == "suspend":
            serial = page.wish(want=pages.SUSPEND)
            ok = page.wait(serial, 10)
            slot = (page.slots() or [{}])[0]
            if ok and slot.get("state") == pages.SUSPENDED and slot["moved_bytes"]:
                gbps.append(slot["moved_bytes"] / slot["move_ns"])
                if done < 2:
                    freed.append((slot["moved_bytes"] >> 20, round(slot["drain_ns"] / 1e6, 1), round(slot["move_ns"] / 1e6, 1), used_mib()))
            time.sleep(chance.uniform(0.0, 0.05))
            serial = page.wish(want=pages.RUN)
            ok = page.wait(serial, 10) and ok
            slot = (page.slots() or [{}])[0]
            if ok and slot.get("move_ns"):
                gbps.append(slot["moved_bytes"] / slot["move_ns"])
        else:
            peak = (page.slots() or [{"gpus": [{"charged": 1 << 30}]}])[0]["gpus"][0]["charged"]
            serial = page.wish(limit=int(peak * chance.uniform(0.4, 0.9)))
            ok = page.wait(serial, 20)
            slot = (page.slots() or [{}])[0]
            if ok and slot.get("move_ns"):
                gbps.append(slot["moved_bytes"] / slot["move_ns"])
            serial = page.wish(limit=pages.NO_LIMIT)
            ok = page.wait(serial, 20) and ok
        done += ok
        slot = (page.slots() or [{"trouble": "gone"}])[0]
        troubles[slot["trouble"]] = troubles.get(slot["trouble"], 0) + 1
        if not ok:
            print("not met:", kind, {k: slot.get(k) for k in ("state", "trouble", "done", "waits")}, "ended" if process.poll() is not None else "runs", flush=True)
    slot = (page.slots() or [{}])[0]
    page.wish(want=pages.RUN, limit=pages.NO_LIMIT)
    moved = finish(process, "while it was moved")
    same = bare[1] == calm[1] == moved[1]
    print(f"{model} {' '.join(options)} {kind}: {'SAME' if same else 'DIFFERENT'} {bare[1]} {calm[1]} {moved[1]} cycles {done}/{cycles} troubles {troubles} "
          f"bare {bare[3]} ms, under the runtime {calm[3]} ms; GB/s {[round(g, 1) for g in gbps[:6]]} first (MiB, drain ms, move ms, used MiB after) {freed} "
          f"slot {({k: slot.get(k) for k in ('launches', 'copies', 'waits', 'suspends', 'resumes')})} peak {bare[5]}", flush=True)
    os.unlink(path)
    return 0 if same else 1


sys.exit(main())
