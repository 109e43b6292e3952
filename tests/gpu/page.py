"""The job page of include/sharewell/runtime.h, for tests and benchmarks: makes one, states wishes, reads figures."""
import ctypes
import mmap
import os
import struct
import time

GPUS, SLOTS = 16, 1024
NO_LIMIT = 2**64 - 1
RUN, SUSPEND = 0, 1
UNUSED, RUNNING, SUSPENDING, SUSPENDED, RESUMING = range(5)
TROUBLES = ["fine", "not drained", "capturing", "no host memory", "no gpu memory", "driver error"]
NEIGHBOURS_AT, PATH = 72, 256
LEDGER_AT = NEIGHBOURS_AT + 8 * PATH
GPU_AT, GPU_SIZE = LEDGER_AT + PATH, 64
SLOT_AT, USE_AT = GPU_AT + GPUS * GPU_SIZE, 304
SLOT_SIZE = USE_AT + GPUS * 32
SIZE = SLOT_AT + SLOTS * SLOT_SIZE
FUTEX = 202  # the system call, on x86-64
libc = ctypes.CDLL(None, use_errno=True)


class Page:
    def __init__(self, path, uuids, limit=NO_LIMIT, host_budget=64 << 30):
        with open(path, "wb") as file:
            file.truncate(SIZE)
        self.path = path
        self.fd = os.open(path, os.O_RDWR)
        self.map = mmap.mmap(self.fd, SIZE)
        struct.pack_into("<QIIIIQIIII", self.map, 0, 0x6567615077536877, 3, len(uuids), 0, RUN, host_budget, 0, 0, 0, 0)
        for i, uuid in enumerate(uuids):
            struct.pack_into("<16sQ", self.map, GPU_AT + i * GPU_SIZE, uuid, limit)

    def wish(self, want=None, limit=None, gpu=0, share=None, yields=None, watched=None, neighbours=None):
        for value, at in ((want, 20), (share, 36), (yields, 40), (watched, 44)):
            if value is not None:
                struct.pack_into("<I", self.map, at, value)
        for i, path in enumerate(neighbours or []):
            struct.pack_into(f"<{PATH}s", self.map, NEIGHBOURS_AT + i * PATH, path.encode())
        if limit is not None:
            struct.pack_into("<Q", self.map, GPU_AT + gpu * GPU_SIZE + 16, limit)
        serial = struct.unpack_from("<I", self.map, 16)[0] + 1
        struct.pack_into("<I", self.map, 16, serial)
        word = (ctypes.c_char * SIZE).from_buffer(self.map)
        libc.syscall(FUTEX, ctypes.c_void_p(ctypes.addressof(word) + 16), 1, 2**31 - 1, None, None, 0)
        return serial

    def slots(self):
        found = []
        for i in range(SLOTS):
            at = SLOT_AT + i * SLOT_SIZE
            pid, state, trouble, done = struct.unpack_from("<iIII", self.map, at)
            if pid == 0:
                continue
            figures = struct.unpack_from("<QQQQqqQQ", self.map, at + 16)
            names = ("launches", "copies", "waits", "moved_bytes", "drain_ns", "move_ns", "suspends", "resumes")
            slot = dict(zip(names, figures), pid=pid, state=state, trouble=TROUBLES[trouble], done=done)
            slot["gpus"] = [dict(zip(("charged", "fixed", "host", "peak"), struct.unpack_from("<QQQQ", self.map, at + USE_AT + g * 32)))
                            for g in range(struct.unpack_from("<I", self.map, 12)[0])]
            found.append(slot)
        return found

    def wait(self, serial, timeout=30.0):
        """Until every process has dealt with the wish; False: one has not."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            slots = self.slots()
            if slots and all(slot["done"] >= serial for slot in slots):
                return True
            time.sleep(0.0005)
        return False
