"""Memory goes with its context: contexts are made, filled and destroyed, with and without another one, and the GPU has all of its memory again each time.
Usage: contexts.py [ROUNDS]     Prints SAME if memory in the contexts that stay is as it was."""
import ctypes
import sys

MIB = 1 << 20


class Driver:
    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)

    def __call__(self, name, *arguments):
        result = getattr(self.cuda, name)(*arguments)
        if result != 0:
            raise SystemExit(f"{name}: CUDA error {result}")


def fill(driver, mib):
    address = ctypes.c_uint64()
    driver("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(mib * MIB))
    driver("cuMemsetD8Async", address, 7, ctypes.c_size_t(mib * MIB), None)
    return address


def free_mib(driver):
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
    return free.value // MIB


def come_and_go(driver, mib):
    context = ctypes.c_void_p()
    driver("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
    fill(driver, mib)
    driver("cuCtxDestroy_v2", context)


def main():
    rounds, mib, driver, context = int(sys.argv[1]) if len(sys.argv) > 1 else 3, 2048, Driver(), ctypes.c_void_p()
    for _ in range(rounds):
        come_and_go(driver, mib)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    driver("cuCtxSetCurrent", context)
    address, before = fill(driver, 64), free_mib(driver)
    for _ in range(rounds):
        come_and_go(driver, mib)
    driver("cuCtxSetCurrent", context)
    after, found = free_mib(driver), (ctypes.c_ubyte * MIB)()
    driver("cuMemcpyDtoH_v2", found, address, ctypes.c_size_t(MIB))
    good = bytes(found) == b"\7" * MIB and before - after < mib // 2
    print(f"contexts: {'SAME' if good else 'DIFFERENT'}, {before} MiB free, and {after} MiB after {rounds} contexts with {mib} MiB each")
    return 0 if good else 1


sys.exit(main())
