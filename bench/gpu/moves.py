"""How fast memory leaves a GPU and comes back: suspend and resume, shrink and grow, beside the plain pinned copy, in one run.

    moves.py LIBRARY [GIB]      LIBRARY: libsharewell-gpu.so. Needs a driver and nothing else; runs on the emulated one too (LD_LIBRARY_PATH)

Of each move: GB/s of the part in which the program stands still, and of all from the wish to its end; the first time and the best of the rest.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))
ROUNDS, PIECE = 4, 1 << 30


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def __call__(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise SystemExit(f"{name}: CUDA error {result}")

    def open(self):
        context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def allocate(self, size):
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self("cuMemsetD8_v2", address, 1, ctypes.c_size_t(size))
        return address


def job(gib):
    """Holds memory and works a little on all of it, until it is killed."""
    driver = Driver()
    driver.open()
    pieces = [driver.allocate(PIECE) for _ in range(gib)]
    print("ready", flush=True)
    while True:
        for piece in pieces:
            driver("cuMemsetD8Async", piece, 1, ctypes.c_size_t(4096), None)
        driver("cuCtxSynchronize")
        time.sleep(0.001)


def pinned(uuid_path):
    """GB/s of a copy from and to pinned memory, which no move can be faster than. Leaves the GPU's UUID in a file."""
    driver = Driver()
    driver.open()
    uuid = (ctypes.c_ubyte * 16)()
    driver("cuDeviceGetUuid_v2", uuid, 0)
    with open(uuid_path, "wb") as file:
        file.write(bytes(uuid))
    host = ctypes.c_void_p()
    device = driver.allocate(PIECE)
    driver("cuMemAllocHost_v2", ctypes.byref(host), ctypes.c_size_t(PIECE))
    for name, arguments in (("from", ("cuMemcpyDtoH_v2", host, device)), ("to", ("cuMemcpyHtoD_v2", device, host))):
        best = 0.0
        for _ in range(4):
            begun = time.monotonic()
            driver(*arguments, ctypes.c_size_t(PIECE))
            best = max(best, PIECE / (time.monotonic() - begun) / 1e9)
        print(f"pinned copy {name} the GPU: {best:.1f} GB/s", flush=True)


def move(page, **wish):
    """(bytes, GB/s while the program stood still, GB/s in all)"""
    begun = time.monotonic()
    serial = page.wish(**wish)
    while True:
        slots = page.slots()
        if slots and all(slot["done"] >= serial for slot in slots):
            break
        if time.monotonic() - begun > 120:
            raise SystemExit(f"the wish was not met: {slots}")
        time.sleep(0.0002)
    took = time.monotonic() - begun
    moved, still = slots[0]["moved_bytes"], slots[0]["move_ns"] / 1e9
    return moved, moved / max(still, 1e-9) / 1e9, moved / took / 1e9


def main():
    import page as pages
    library, gib = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        # Others than this process use the driver: a child of one that did could not.
        subprocess.run([sys.executable, os.path.abspath(__file__), "--pinned", os.path.join(folder, "uuid")], check=True)
        with open(os.path.join(folder, "uuid"), "rb") as file:
            page = pages.Page(os.path.join(folder, "page"), [file.read()])
        env = dict(os.environ, LD_PRELOAD=library, SHAREWELL_GPU=page.path)
        process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--job", str(gib)], env=env, stdout=subprocess.PIPE)
        process.stdout.readline()
        # Pinned memory for a suspension is made ahead of it, in the background.
        time.sleep(2 + gib * 0.4)
        small = (1 << 30) + (256 << 20)
        figures = {}
        try:
            for _ in range(ROUNDS):
                for name, wish in (("suspend", {"want": pages.SUSPEND}), ("resume", {"want": pages.RUN}), ("shrink", {"limit": small}),
                                   ("grow", {"limit": pages.NO_LIMIT})):
                    figures.setdefault(name, []).append(move(page, **wish))
                    time.sleep(0.3)
        finally:
            process.kill()
            process.wait()
        for name, moves in figures.items():
            still = max(figure[1] for figure in moves[1:])
            whole = max(figure[2] for figure in moves[1:])
            print(f"{name} {moves[0][0] / 2**30:.1f} GiB: {moves[0][1]:.1f} GB/s standing still, {moves[0][2]:.1f} in all; "
                  f"later {still:.1f} and {whole:.1f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        job(int(sys.argv[2]))
    elif sys.argv[1:2] == ["--pinned"]:
        pinned(sys.argv[2])
    else:
        main()
