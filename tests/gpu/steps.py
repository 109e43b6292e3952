"""A job that needs the CUDA driver and nothing else: fills its memory over and over, and writes of each step when it began and ended (seconds of the monotonic clock) to a file.
Usage: steps.py FILE MEMORY_MIB [FILLS [GROW_MIB AT_STEP]]     FILLS of all its memory make a step (0: it only holds it); at a step it takes more memory, and works on that too"""
import ctypes
import os
import struct
import sys
import time

PIECES = 8


class Driver:
    def __init__(self):
        self.cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise SystemExit(f"{name}: CUDA error {result}")

    def allocate(self, size):
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address, size


def main():
    path, mib, fills, grow, at = sys.argv[1], *(int(word) for word in (sys.argv[2:] + ["1", "0", "0"][len(sys.argv) - 3:]))
    driver = Driver()
    pieces = [driver.allocate((mib << 20) // PIECES) for _ in range(PIECES)]
    out, step = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 0
    while True:
        begun = time.monotonic()
        if grow and step == at:
            pieces += [driver.allocate((grow << 20) // PIECES) for _ in range(PIECES)]
        for _ in range(fills):
            for address, size in pieces:
                driver("cuMemsetD8Async", address, step % 251, ctypes.c_size_t(size), None)
        driver("cuCtxSynchronize")
        os.write(out, struct.pack("<dd", begun, time.monotonic()))
        step += 1
        if not fills:
            time.sleep(0.2)


main()
