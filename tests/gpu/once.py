"""Runs a program bare and under the runtime, there suspended and resumed while it works; the hashes must agree. Usage: once.py LIBRARY LIMIT_GIB COMMAND..."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page as pages
from gpus import uuids, used_mib


def hash_of(out):
    lines = [line.split()[1] for line in out.splitlines() if line.startswith("hash")]
    return lines[0] if lines else "none"


def main():
    library, limit, command = sys.argv[1], float(sys.argv[2]), sys.argv[3:]
    bare = hash_of(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120).stdout)
    if bare == "none":
        print(f"{' '.join(os.path.basename(c) for c in command[:3])}: does not run here, even bare")
        return 77
    path = tempfile.mktemp(prefix="page-", dir="/dev/shm")
    page = pages.Page(path, uuids(), limit=int(limit * 2**30) if limit else pages.NO_LIMIT)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=library, SHAREWELL_GPU=path))
    warm = process.stdout.readline().split()[1:]
    time.sleep(0.1)
    ok = page.wait(page.wish(want=pages.SUSPEND), 20)
    slot = (page.slots() or [{}])[0]
    after = used_mib()
    ok = page.wait(page.wish(want=pages.RUN), 20) and ok
    out, _ = process.communicate(timeout=120)
    same = hash_of(out) == bare
    before = " before it was moved" if warm and warm[0] != bare else ""
    os.unlink(path)
    print(f"{' '.join(os.path.basename(c) for c in command[:3])}: {'SAME' if same and ok else 'DIFFERENT' + before} {bare} {hash_of(out)} moved {slot.get('moved_bytes', 0) >> 20} MiB in {slot.get('move_ns', 0) / 1e6:.1f} ms, "
          f"used after {after} MiB, trouble {slot.get('trouble')}, suspends {slot.get('suspends')}, exit {process.returncode}", flush=True)
    return 0 if same and ok else 1


sys.exit(main())
