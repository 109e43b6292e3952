"""A job for the benchmarks: does steps until it is stopped, and writes of each when it began and ended (seconds of the monotonic clock) and its time on the GPU (seconds) to a file.

    workload.py MODEL FILE [idle=MILLISECONDS] [graph] [compile] [pool] [batch=N]     idle: rests so long after each step; pool: gets memory in stream order
"""
import os
import struct
import sys
import time

if "pool" in sys.argv[3:]:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch
import torch.nn as nn
import torch.nn.functional as F

MODELS = ("resnet", "mobilenet", "transformer", "speech", "dlrm", "deepfm", "mlp", "matmul")


class Speech(nn.Module):
    """Convolutions over sound, then a Transformer, as data2vec has them."""

    def __init__(self):
        super().__init__()
        layers, before = [], 1
        for width, stride in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
            layers += [nn.Conv1d(before, 512, width, stride), nn.GELU()]
            before = 512
        self.hear = nn.Sequential(*layers)
        self.widen = nn.Linear(512, 768)
        self.think = nn.TransformerEncoder(nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, dropout=0.0), 12, enable_nested_tensor=False)

    def forward(self, sound):
        return self.think(self.widen(self.hear(sound).transpose(1, 2)))


class Recommender(nn.Module):
    """Embeddings of many features and dense layers over them; `factors` adds what DeepFM adds to that."""

    def __init__(self, tables, rows, width, dense, factors):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, sparse=True, mode="sum") for _ in range(tables))
        self.factors = factors
        self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        sizes = [(tables + 1) * width] + dense
        self.top = nn.Sequential(*[m for a, b in zip(sizes, sizes[1:]) for m in (nn.Linear(a, b), nn.ReLU())], nn.Linear(sizes[-1], 1))

    def forward(self, inputs):
        numbers, features = inputs
        found = torch.stack([table(features[i]) for i, table in enumerate(self.tables)] + [self.bottom(numbers)], 1)
        out = self.top(found.flatten(1))
        if self.factors:
            out = out + 0.5 * (found.sum(1).square() - found.square().sum(1)).sum(1, keepdim=True)
        return out


def recommender(batch, tables, rows, width, dense, factors):
    features = torch.randint(0, rows, (tables, batch, 4), device="cuda")
    return Recommender(tables, rows, width, dense, factors), (torch.randn(batch, 13, device="cuda"), features), torch.rand(batch, 1, device="cuda"), F.mse_loss


def model_of(name, batch):
    """(model, input, wanted output, loss)"""
    if name in ("resnet", "mobilenet"):
        import torchvision
        batch = batch or 64
        model = torchvision.models.resnet50() if name == "resnet" else torchvision.models.mobilenet_v2()
        return model, torch.randn(batch, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (batch,), device="cuda"), F.cross_entropy
    if name == "transformer":
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0), 12, enable_nested_tensor=False)
        return model, torch.randn(batch or 8, 512, 1024, device="cuda"), torch.randn(batch or 8, 512, 1024, device="cuda"), F.mse_loss
    if name == "speech":
        model, sound = Speech(), torch.randn(batch or 4, 1, 160000, device="cuda")
        return model, sound, torch.randn(batch or 4, 499, 768, device="cuda"), F.mse_loss
    if name == "dlrm":
        return recommender(batch or 8192, 26, 200000, 64, [1024, 1024, 512, 256], False)
    if name == "deepfm":
        return recommender(batch or 16384, 39, 100000, 16, [400, 400, 400], True)
    model = nn.Sequential(*[m for _ in range(20) for m in (nn.Linear(256, 256), nn.ReLU())])
    return model, torch.randn(batch or 64, 256, device="cuda"), torch.randn(batch or 64, 256, device="cuda"), F.mse_loss


def stepper(name, options, batch):
    torch.manual_seed(1)
    if name == "matmul":
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        into = torch.empty_like(a)
        return lambda: [torch.mm(a, b, out=into) for _ in range(4)]
    model, x, y, loss_of = model_of(name, batch)
    model = model.cuda()
    sparse = any(getattr(m, "sparse", False) for m in model.modules())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.0 if sparse else 0.9)
    run = torch.compile(model) if "compile" in options else model

    def step():
        optimizer.zero_grad()
        loss_of(run(x), y).backward()
        optimizer.step()
    if "graph" not in options:
        return step
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def main():
    name, path, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    values = dict(option.split("=") for option in options if "=" in option)
    idle = float(values.get("idle", 0)) / 1e3
    step = stepper(name, options, int(values.get("batch", 0)))
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    out = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    while True:
        begun = time.monotonic()
        first.record()
        step()
        last.record()
        torch.cuda.synchronize()
        os.write(out, struct.pack("<ddd", begun, time.monotonic(), first.elapsed_time(last) / 1e3))
        if idle:
            time.sleep(idle)


if __name__ == "__main__":
    main()
