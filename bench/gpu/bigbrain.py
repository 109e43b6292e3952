"""What more whole jobs on one GPU do to each of them: the concurrency factor of Big Brain, 1 to 6, under time slices.

    bigbrain.py [--seconds 20] [--most 6] [--device cuda|cpu|python]      prints JSON

A job is a fixed number of training steps of a model of linear layers, as long as `--job` seconds alone. Jobs come as a Poisson process,
at twice the rate that could be served if they did not slow each other down, and wait in one line; as many as the concurrency factor run
at once, each in a process of its own. Starting an interpreter takes longer than a job: the processes are there from the beginning, with
their contexts, and one that has no job waits for the next. `python` computes without PyTorch, to try this program where there is none.
"""
import argparse
import json
import multiprocessing
import multiprocessing.connection
import random
import statistics
import sys
import time

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 420, 70, 40, 60


# ---- jobs

def linear_layers(device, width, batch):
    """One training step of a small model, and a way to wait until it is done."""
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(batch, width, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()

    return step, torch.cuda.synchronize if device == "cuda" else lambda: None


def make_step(options):
    if options.device == "python":
        return (lambda: sum(i * i for i in range(2000))), (lambda: None)
    return linear_layers(options.device, options.width, options.batch)


def run(step, wait, steps):
    begun = time.monotonic()
    for _ in range(steps):
        step()
    wait()
    return begun, time.monotonic()


def process(options, pipe):
    """Runs a job for each number of steps that it is sent, and answers when it began and ended; 0 ends it."""
    step, wait = make_step(options)
    run(step, wait, 20)
    pipe.send("ready")
    while steps := pipe.recv():
        pipe.send(run(step, wait, steps))


class Worker:
    def __init__(self, options):
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=process, args=(options, far), daemon=True)
        self.process.start()
        far.close()

    def run(self, steps):
        self.pipe.send(steps)
        return self.pipe.recv()

    def end(self):
        self.pipe.send(0)
        self.process.join(30)


def steps_of_a_job(worker, seconds):
    """So many that a job alone takes this long: the best of some tries, each long enough to be measured."""
    steps = 50
    while True:
        took = min(end - begun for begun, end in (worker.run(steps) for _ in range(3)))
        if took > seconds / 4 or steps > 10 ** 7:
            return max(1, round(steps * seconds / took))
        steps *= 4


# ---- one concurrency factor

def measure(workers, k, steps, alone, seconds, draw):
    """Jobs that began and ended within so many seconds of a full line."""
    idle, busy, done, begun = workers[:k], [], [], time.monotonic()
    arrival, waiting, longest = begun, [], 0
    rate = 2 * k / alone
    while (now := time.monotonic()) < begun + seconds:
        while arrival <= now:
            waiting.append(arrival)
            arrival += draw.expovariate(rate)
        longest = max(longest, len(waiting))
        while idle and waiting:
            worker = idle.pop(0)
            worker.pipe.send(steps)
            busy.append((worker, waiting.pop(0)))
        patience = min(begun + seconds, arrival if idle else begun + seconds) - time.monotonic()
        for pipe in multiprocessing.connection.wait([worker.pipe for worker, _ in busy], max(0, patience)):
            worker, came = next(pair for pair in busy if pair[0].pipe is pipe)
            started, ended = pipe.recv()
            busy.remove((worker, came))
            idle.append(worker)
            done.append((ended - started, started - came))
    for worker, _ in busy:
        worker.pipe.recv()
    times = [took for took, _ in done]
    if not times:
        sys.exit(f"no job ended within {seconds} s: give it more --seconds, or a shorter --job")
    return {"k": k, "jobs": len(times), "mean_s": statistics.mean(times), "max_s": max(times), "min_s": min(times), "stdev_s": statistics.pstdev(times),
            "jobs_per_30_s": len(times) * 30 / seconds, "waited_mean_s": statistics.mean(waited for _, waited in done), "longest_line": longest}


def fit(rows, name):
    """The straight line through a figure against k."""
    if len(rows) < 2:
        return None
    x, y = [row["k"] for row in rows], [row[name] for row in rows]
    xm, ym = statistics.mean(x), statistics.mean(y)
    xx, xy, yy = sum((a - xm) ** 2 for a in x), sum((a - xm) * (b - ym) for a, b in zip(x, y)), sum((b - ym) ** 2 for b in y)
    return {"slope_s": xy / xx, "at_0_s": ym - xy / xx * xm, "r_squared": xy * xy / (xx * yy) if yy > 0 else 1.0}


# ---- the picture

def draw(result):
    rows, line = result["rows"], result["line"]
    highest, most = max(row["max_s"] for row in rows) * 1.1, max(row["k"] for row in rows)

    def across(k):
        return round(LEFT + (k - 0.5) / most * (WIDTH - LEFT - 150), 1)

    def up(seconds):
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - seconds / highest), 1)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="22" font-size="15">Process time against the number of jobs on one GPU ({result["device"]})</text>']
    for mark in range(6):
        seconds = highest * mark / 5
        out.append(f'<line x1="{LEFT}" x2="{across(most + 0.5)}" y1="{up(seconds)}" y2="{up(seconds)}" stroke="#ddd"/><text x="{LEFT - 8}" y="{up(seconds) + 4}" text-anchor="end">{seconds:.1f} s</text>')
    out += [f'<text x="{across(row["k"])}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{row["k"]}</text>' for row in rows]
    out.append(f'<text x="{across(most / 2 + 0.5)}" y="{HEIGHT - 18}" text-anchor="middle">concurrency factor k</text>')
    if line:
        first, last = rows[0]["k"], rows[-1]["k"]
        ends = [(across(k), up(line["at_0_s"] + line["slope_s"] * k)) for k in (first, last)]
        out.append(f'<line x1="{ends[0][0]}" y1="{ends[0][1]}" x2="{ends[1][0]}" y2="{ends[1][1]}" stroke="#0a7d4f" stroke-dasharray="5 4"/>')
    y = TOP + 10
    for name, colour, label in (("mean_s", "#0a7d4f", "mean"), ("max_s", "#b3261e", "longest")):
        points = " ".join(f'{across(row["k"])},{up(row[name])}' for row in rows)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{across(row["k"])}" cy="{up(row[name])}" r="4" fill="{colour}"/>' for row in rows]
        out.append(f'<rect x="{WIDTH - 130}" y="{y - 9}" width="12" height="10" fill="{colour}"/><text x="{WIDTH - 112}" y="{y}">{label}</text>')
        y += 20
    if line:
        out.append(f'<text x="{WIDTH - 130}" y="{y}">line: R² {line["r_squared"]:.3f}</text>')
    return "\n".join(out + ["</svg>", ""])


# ---- all of it

def device_name(device):
    if device != "cuda":
        return device
    import torch
    return torch.cuda.get_device_name()


def parse():
    parser = argparse.ArgumentParser(description="Big Brain's experiment: process time against the concurrency factor.")
    parser.add_argument("--seconds", type=float, default=20, help="of each concurrency factor")
    parser.add_argument("--most", type=int, default=6, help="the largest concurrency factor")
    parser.add_argument("--device", choices=("cuda", "cpu", "python"), help="default: cuda where PyTorch finds a GPU, else cpu")
    parser.add_argument("--job", type=float, default=0.5, help="seconds of a job alone")
    parser.add_argument("--width", type=int, default=1024, help="of the layers")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--seed", type=int, default=1, help="of the arrivals")
    options = parser.parse_args()
    if options.most < 1 or not options.seconds > 0 or not options.job > 0:
        parser.error("--most, --seconds and --job must be above 0")
    if options.device is None:
        import torch
        options.device = "cuda" if torch.cuda.is_available() else "cpu"
    return options


def main():
    options = parse()
    workers = [Worker(options) for _ in range(options.most)]
    for worker in workers:
        if worker.pipe.recv() != "ready":
            sys.exit("a process did not start")
    steps = steps_of_a_job(workers[0], options.job)
    alone = statistics.median(end - begun for begun, end in (workers[0].run(steps) for _ in range(3)))
    draws, rows = random.Random(options.seed), []
    for k in range(1, options.most + 1):
        rows.append(measure(workers, k, steps, alone, options.seconds, draws))
        print(f"k {k}: {rows[-1]['jobs']} jobs, mean {rows[-1]['mean_s']:.3f} s, longest {rows[-1]['max_s']:.3f} s", file=sys.stderr, flush=True)
    for worker in workers:
        worker.end()
    result = {"device": device_name(options.device), "seconds": options.seconds, "steps_of_a_job": steps, "alone_s": alone, "width": options.width, "batch": options.batch,
              "rows": rows, "line": fit(rows, "mean_s")}
    json.dump(result, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
