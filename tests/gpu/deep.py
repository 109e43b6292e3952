"""A training is suspended by the runtime, then taken off its GPU whole by the driver, and brought back; its hash must be that of an undisturbed one. Prints times and what is left on the GPU.
Usage: deep.py SHAREWELL ROUNDS COMMAND...   as in: deep.py build/release/sharewell 2 python3 tests/gpu/train.py resnet 300
With two GPUs of a kind (and driver 580) it also moves to the second one and back. SHAREWELL_GPU_LIBRARY names the library where it does not lie beside the program.

SHAREWELL may be 'checkpoint:LIBRARY' on a machine where the program does not run: then the page is written, and the driver called, from here, as src/share/deep.c does it."""
import json
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page as pages
from gpus import uuids, used_mib

STATE_AT = 4  # in a slot
CHECKPOINTED = 5


def hash_of(out):
    lines = [line.split()[1] for line in out.splitlines() if line.startswith("hash")]
    return lines[0] if lines else "none"


class ByProgram:
    """sharewell share."""

    def __init__(self, program, command):
        self.program = os.path.abspath(program)
        state = tempfile.mkdtemp(prefix="deep-")
        os.environ["SHAREWELL_STATE"] = state
        self.process = subprocess.Popen([self.program, "share", "--name", "deep", "--", *command], stdout=subprocess.PIPE, text=True)

    def say(self, *words):
        begun = time.monotonic()
        done = subprocess.run([self.program, "share", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
        return done.returncode == 0, (time.monotonic() - begun) * 1e3, " / ".join(done.stdout.split("\n")).strip(" /")

    def suspend(self):
        return self.say("--suspend", "deep")

    def take_off(self):
        return self.say("--suspend", "deep", "--deep")

    def resume(self, gpu=None):
        return self.say("--resume", "deep", *(["--gpu", str(gpu)] if gpu is not None else []))

    def state(self):
        shares = json.loads(subprocess.run([self.program, "share", "--list", "--json"], stdout=subprocess.PIPE, text=True).stdout)
        return shares[0]["state"] if shares else "gone"


class ByHand:
    """The page from here, and the driver from a process of its own."""

    def __init__(self, library, command):
        self.path = tempfile.mktemp(prefix="page-", dir="/dev/shm")
        self.page = pages.Page(self.path, uuids())
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, LD_PRELOAD=library, SHAREWELL_GPU=self.path))

    def wish(self, want):
        begun = time.monotonic()
        return self.page.wait(self.page.wish(want=want), 60), (time.monotonic() - begun) * 1e3, ""

    def mark(self, before, after):
        for i in range(pages.SLOTS):
            at = pages.SLOT_AT + i * pages.SLOT_SIZE + STATE_AT
            if self.page.map[at] == before:
                self.page.map[at] = after

    def checkpoint(self, *steps):
        pids = [str(slot["pid"]) for slot in self.page.slots()]
        code = """
import ctypes, sys, time
cuda, lock = ctypes.CDLL("libcuda.so.1"), (ctypes.c_uint64 * 8)(10000)
assert cuda.cuInit(0) == 0
for step in sys.argv[1].split(","):
    for pid in sys.argv[2:]:
        begun = time.monotonic()
        code = getattr(cuda, "cuCheckpointProcess" + step)(int(pid), ctypes.byref(lock) if step == "Lock" else None)
        print(step, pid, "code", code, "%.0f ms" % ((time.monotonic() - begun) * 1e3))
        if code: sys.exit(1)
"""
        begun = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code, ",".join(steps), *pids], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=400)
        return done.returncode == 0, (time.monotonic() - begun) * 1e3, " / ".join(done.stdout.split("\n")).strip(" /")

    def suspend(self):
        return self.wish(pages.SUSPEND)

    def take_off(self):
        self.mark(pages.SUSPENDED, CHECKPOINTED)
        return self.checkpoint("Lock", "Checkpoint")

    def resume(self, gpu=None):
        ok, ms, words = self.checkpoint("Restore", "Unlock")
        self.mark(CHECKPOINTED, pages.SUSPENDED)
        again = self.wish(pages.RUN)
        return ok and again[0], ms + again[1], words + f" / own resume {again[1]:.0f} ms"

    def state(self):
        return str([slot["state"] for slot in self.page.slots()])


def used_of_all():
    out = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True).stdout
    return out.split()


def main():
    program, rounds, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    idle = used_mib()
    bare = hash_of(subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300).stdout)
    share = ByHand(program.split(":", 1)[1], command) if program.startswith("checkpoint:") else ByProgram(program, command)
    while not (share.process.stdout.readline() or "warm").startswith("warm"):
        pass
    print(f"GPU used idle {idle} MiB, running {used_mib()} MiB", flush=True)
    good = True
    moves = [None] * rounds
    if len(uuids()) > 1 and isinstance(share, ByProgram):
        moves += [1, 0]
    for number, gpu in enumerate(moves):
        time.sleep(0.2)
        for what, act in (("suspend", share.suspend), ("take off", share.take_off), ("resume", lambda: share.resume(gpu))):
            ok, ms, words = act()
            good = good and ok
            print(f"round {number}{'' if gpu is None else f' to GPU {gpu}'}: {what:8} {'ok' if ok else 'FAILED'} {ms:7.0f} ms, GPUs used {used_of_all()} MiB, state {share.state()}; {words}", flush=True)
    out, _ = share.process.communicate(timeout=300)
    same = hash_of(out) == bare
    print(f"{' '.join(os.path.basename(word) for word in command)}: {'SAME' if same and good else 'DIFFERENT'} {bare} {hash_of(out)}, exit {share.process.returncode}", flush=True)
    return 0 if same and good else 1


sys.exit(main())
