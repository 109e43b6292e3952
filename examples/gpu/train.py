#!/usr/bin/env python3
"""The training job of train.c in Python, by ctypes alone: same network, same kernels, same hash of the weights.

    LD_LIBRARY_PATH=build/release/emu python3 examples/gpu/train.py --steps 200 --memory 64M --step-us 2000

Its kernels are in the text format of the emulated driver (emu/README.md); on a real one it says so and ends with status 77.
"""
import argparse
import ctypes
import sys
import time

KERNELS = b"""sharewell-emu 1
kernel random op=random
kernel forward op=matmul each=2ps
kernel backward_input op=matmul transpose=b each=2ps
kernel backward_weights op=matmul transpose=a each=2ps
kernel relu op=relu
kernel relu_grad op=relu_grad
kernel sub op=sub
kernel mul op=mul
kernel step op=axpy
kernel sum op=reduce
kernel hash op=hash
kernel touch op=stir type=u32 each=1ps
kernel spin op=spin
"""
INPUTS, HIDDEN, OUTPUTS, BATCH = 16, 64, 4, 64
NOT_FOR_THIS_DRIVER = (200, 209, 218)  # what a driver says to a module it cannot load
U32, U64, F32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_float


class Driver:
    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            print(f"train.py: no CUDA driver ({error})", file=sys.stderr)
            sys.exit(77)
        context, self.module, self.stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)
        result = self.library.cuModuleLoadData(ctypes.byref(self.module), KERNELS)
        if result in NOT_FOR_THIS_DRIVER:
            print("train.py: this is a real driver; the kernels of this program are for the emulated one (emu/README.md)", file=sys.stderr)
            sys.exit(77)
        self.check(result, "cuModuleLoadData")
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.functions = {}

    def check(self, result, what):
        if result != 0:
            name = ctypes.c_char_p()
            self.library.cuGetErrorName(result, ctypes.byref(name))
            print(f"train.py: {what}: {(name.value or b'error').decode()} ({result})", file=sys.stderr)
            sys.exit(1)

    def call(self, name, *arguments):
        self.check(getattr(self.library, name)(*arguments), name)

    def launch(self, name, *arguments):
        function = self.functions.get(name)
        if function is None:
            function = self.functions[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(function), self.module, name.encode())
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments))
        self.call("cuLaunchKernel", function, 1, 1, 1, 128, 1, 1, 0, self.stream, pointers, None)

    def allocate(self, floats):
        address = U64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(floats * 4))
        return address

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)

    def read(self, address, kind):
        value = kind()
        self.call("cuMemcpyDtoH_v2", ctypes.byref(value), address, ctypes.c_size_t(ctypes.sizeof(value)))
        return value.value


class Network:
    def __init__(self, driver):
        self.driver = driver
        self.teacher = driver.allocate(INPUTS * OUTPUTS)
        self.x, self.y = driver.allocate(BATCH * INPUTS), driver.allocate(BATCH * OUTPUTS)
        self.w1, self.w2 = driver.allocate(INPUTS * HIDDEN), driver.allocate(HIDDEN * OUTPUTS)
        self.h, self.r = driver.allocate(BATCH * HIDDEN), driver.allocate(BATCH * HIDDEN)
        self.out, self.diff = driver.allocate(BATCH * OUTPUTS), driver.allocate(BATCH * OUTPUTS)
        self.g1, self.g2 = driver.allocate(INPUTS * HIDDEN), driver.allocate(HIDDEN * OUTPUTS)
        self.dh = driver.allocate(BATCH * HIDDEN)
        self.square, self.loss = driver.allocate(BATCH * OUTPUTS), driver.allocate(1)
        self.randomize(self.teacher, 1, INPUTS * OUTPUTS)
        self.randomize(self.w1, 2, INPUTS * HIDDEN)
        self.randomize(self.w2, 3, HIDDEN * OUTPUTS)

    def randomize(self, x, seed, count):
        self.driver.launch("random", x, U64(seed), U64(count))

    def multiply(self, kernel, c, a, b, m, n, k):
        self.driver.launch(kernel, c, a, b, U32(m), U32(n), U32(k))

    def train(self, number):
        """One step: a new batch, forward, backward, descend."""
        launch, rate = self.driver.launch, F32(-0.0002)
        self.randomize(self.x, 1000 + number, BATCH * INPUTS)
        self.multiply("forward", self.y, self.x, self.teacher, BATCH, OUTPUTS, INPUTS)
        self.multiply("forward", self.h, self.x, self.w1, BATCH, HIDDEN, INPUTS)
        launch("relu", self.r, self.h, U64(BATCH * HIDDEN))
        self.multiply("forward", self.out, self.r, self.w2, BATCH, OUTPUTS, HIDDEN)
        launch("sub", self.diff, self.out, self.y, U64(BATCH * OUTPUTS))
        self.multiply("backward_weights", self.g2, self.r, self.diff, HIDDEN, OUTPUTS, BATCH)
        self.multiply("backward_input", self.dh, self.diff, self.w2, BATCH, HIDDEN, OUTPUTS)
        launch("relu_grad", self.dh, self.h, self.dh, U64(BATCH * HIDDEN))
        self.multiply("backward_weights", self.g1, self.x, self.dh, INPUTS, HIDDEN, BATCH)
        launch("step", self.w1, self.g1, rate, U64(INPUTS * HIDDEN))
        launch("step", self.w2, self.g2, rate, U64(HIDDEN * OUTPUTS))
        launch("mul", self.square, self.diff, self.diff, U64(BATCH * OUTPUTS))
        launch("sum", self.loss, self.square, U64(BATCH * OUTPUTS))

    def hash(self, x, count):
        place = self.driver.allocate(2)
        self.driver.launch("hash", place, x, U64(count))
        self.driver.wait()
        value = self.driver.read(place, U64)
        self.driver.call("cuMemFree_v2", place)
        return value


def size(text):
    units = {"K": 10, "M": 20, "G": 30}
    digits, shift = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 0)
    if not digits.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 64M or 1G")
    return int(digits) << shift


def main():
    parser = argparse.ArgumentParser(description="A small training job on the emulated GPU.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--memory", type=size, default=0, help="more memory, which every step changes; such as 64M")
    parser.add_argument("--step-us", type=int, default=0, help="time that every step takes beyond its own")
    options = parser.parse_args()
    driver = Driver()
    network = Network(driver)
    words = options.memory // 4
    if words > 0:
        extra = driver.allocate(words)
        driver.call("cuMemsetD8Async", extra, ctypes.c_ubyte(0), ctypes.c_size_t(words * 4), driver.stream)
    begin = time.monotonic()
    for number in range(options.steps):
        network.train(number)
        if words > 0:
            driver.launch("touch", extra, U64(words))
        if options.step_us > 0:
            driver.launch("spin", U64(options.step_us * 1000))
        driver.wait()
    took = time.monotonic() - begin
    loss = driver.read(network.loss, F32) / (BATCH * OUTPUTS)
    total = network.hash(network.w1, INPUTS * HIDDEN) * 31 + network.hash(network.w2, HIDDEN * OUTPUTS)
    if words > 0:
        total = total * 31 + network.hash(extra, words)
    each = took * 1000 / options.steps if options.steps > 0 else 0
    print(f"steps {options.steps} loss {loss:.6f} ms/step {each:.3f} hash {total % 2**64:016x}")


if __name__ == "__main__":
    main()
