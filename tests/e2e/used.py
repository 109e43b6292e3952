"""Prints what the driver says is in use on each GPU, in MiB, between blanks."""

import ctypes


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


nvml, count, device, memory = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint(), ctypes.c_void_p(), Memory()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
used = []
for i in range(count.value):
    assert nvml.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(device)) == 0
    assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    used.append(memory.used >> 20)
print(*used)
