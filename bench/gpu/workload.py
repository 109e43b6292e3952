"""A training or a loop of matmuls that writes the end of each step (seconds, as 8 bytes) to a file until it is stopped. Usage: workload.py NAME FILE [idle milliseconds a step]"""
import os
import struct
import sys
import time

import torch
import torch.nn as nn


def maker(name):
    torch.manual_seed(1)
    if name == "matmul":
        a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
        b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

        def step():
            for _ in range(4):
                torch.mm(a, b)
        return step
    if name == "resnet":
        import torchvision
        model = torchvision.models.resnet50().cuda()
        x, y = torch.randn(64, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (64,), device="cuda")
        loss_of = nn.CrossEntropyLoss()
    elif name == "transformer":
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0), 12, enable_nested_tensor=False).cuda()
        x = torch.randn(8, 512, 1024, device="cuda")
        y = torch.randn(8, 512, 1024, device="cuda")
        loss_of = nn.MSELoss()
    else:
        model = nn.Sequential(*[m for _ in range(20) for m in (nn.Linear(256, 256), nn.ReLU())]).cuda()
        x, y = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
        loss_of = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss_of(model(x), y).backward()
        optimizer.step()
    return step


def main():
    name, path = sys.argv[1], sys.argv[2]
    idle = float(sys.argv[3]) / 1e3 if len(sys.argv) > 3 else 0.0
    step = maker(name)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        begun = time.monotonic()
        step()
        torch.cuda.synchronize()
        os.write(out, struct.pack("<dd", begun, time.monotonic()))
        if idle:
            time.sleep(idle)


main()
