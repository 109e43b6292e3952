"""A deterministic training whose weights end with the same hash however often it was suspended, moved or squeezed. Usage: train.py MODEL STEPS [graph|compile|workers|streams|expandable|pool ...]"""
import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
if "expandable" in sys.argv[3:]:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
if "pool" in sys.argv[3:]:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
import torch
import torch.nn as nn

torch.manual_seed(7)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.deterministic = True
# The faster ways to attention add up in another order every time.
torch.backends.cuda.enable_mem_efficient_sdp(False)
torch.backends.cuda.enable_flash_sdp(False)


def model_of(name):
    if name == "mlp":
        return nn.Sequential(*[m for _ in range(20) for m in (nn.Linear(256, 256), nn.ReLU())]), (lambda n: (torch.randn(64, 256), torch.randn(64, 256))), nn.MSELoss()
    if name == "resnet":
        import torchvision
        return torchvision.models.resnet50(), (lambda n: (torch.randn(64, 3, 224, 224), torch.randint(0, 1000, (64,)))), nn.CrossEntropyLoss()
    layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0.0)
    return nn.TransformerEncoder(layer, 6, enable_nested_tensor=False), (lambda n: (torch.randn(16, 256, 512), torch.randn(16, 256, 512))), nn.MSELoss()


class Samples(torch.utils.data.Dataset):
    def __init__(self, make):
        self.make = make

    def __len__(self):
        return 1 << 20

    def __getitem__(self, index):
        torch.manual_seed(index)
        return self.make(index)


def main():
    name, steps, options = sys.argv[1], int(sys.argv[2]), set(sys.argv[3:])
    device = torch.device("cuda")
    model, make, loss_of = model_of(name)
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    torch.manual_seed(11)
    fixed = [tuple(t.to(device) for t in make(i)) for i in range(4)]
    run = torch.compile(model) if "compile" in options else model
    side = torch.cuda.Stream()
    loader = None
    if "workers" in options:
        loader = iter(torch.utils.data.DataLoader(Samples(make), batch_size=None, num_workers=2, pin_memory=True))

    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss = loss_of(run(x), y)
        loss.backward()
        optimizer.step()
        return loss

    graph, held = None, None
    if "graph" in options:
        held = tuple(t.clone() for t in fixed[0])
        with torch.cuda.stream(side):
            for _ in range(3):
                step(*held)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step(*held)
    times = []
    for i in range(steps):
        begun = time.perf_counter()
        x, y = (t.to(device, non_blocking=True) for t in next(loader)) if loader else fixed[i % 4]
        if graph is not None:
            for into, new in zip(held, (x, y)):
                into.copy_(new)
            graph.replay()
        elif "streams" in options:
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                step(x, y)
            torch.cuda.current_stream().wait_stream(side)
        else:
            step(x, y)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
        if i == 2:
            print("warm", flush=True)
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    times.sort()
    print(f"hash {digest.hexdigest()[:16]} median_ms {times[len(times) // 2] * 1e3:.3f} peak_mib {torch.cuda.max_memory_reserved() >> 20}", flush=True)


main()
