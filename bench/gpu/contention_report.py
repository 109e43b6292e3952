"""What contention.py measured, beside what Sharewell predicted before it saw that, and how well it learns from half of it.

    contention_report.py FILE... [--sharewell PROGRAM] [--docs PAGE.md] [--svg PICTURE.svg] [--draws 20] [--seed 1]

FILE is the output of contention.py; of several the medians count, and all are learned from. A FILE that ends in .json is the output of profiles.py, which becomes a table too, and
another start for predictions.
Prints markdown. --docs also puts it between the two marks in that page, --svg draws the slowdowns.

Predictions are those of `sharewell contention`, which is also what learns: this program only gives it files and compares. The error of a prediction is |predicted - measured| / measured,
of each job of each pair. A job that did no step, or one of more than STILL times its length alone, stands still: more than that cannot be told apart in a window of seconds, so
predictions, too, count as STILL at most. Of a job that did no step the learner is told the bound, as of one single step: STILL, or the prediction where that is more.
"""
import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

from profiles import store_of

WAYS = {"slices": "time slices", "mps": "MPS", "gate": "the runtime's gate"}
MODELS = {"resnet": "resnet50", "mobilenet": "mobilenet_v2", "transformer": "transformer", "speech": "data2vec", "dlrm": "dlrm", "deepfm": "deepfm"}
SHOWN = {"resnet": "ResNet-50", "mobilenet": "MobileNetV2", "transformer": "Transformer", "speech": "speech", "dlrm": "DLRM", "deepfm": "DeepFM"}
STILL = 20.0
LEARNED_MOST, REPEATS_MOST = 1000.0, 8
GOAL = 0.10
BEGIN, END = "<!-- contention: begin -->", "<!-- contention: end -->"
HERE = os.path.dirname(os.path.abspath(__file__))


def read_text(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"cannot read {path}: {error}") from None


# ---- what was measured

class Side:
    """One job of a pair: the `which`-th of `pair`, under `way`, as often as it was measured."""

    def __init__(self, way, pair, which):
        self.way, self.pair, self.which = way, pair, which
        self.slowdowns, self.steps = [], []

    @property
    def measured(self):
        return min(statistics.median(self.slowdowns), STILL)

    @property
    def lessons(self):
        """What the learner is told: (slowdown, steps) of the latest measurements."""
        bound = max(STILL, min(self.prior, LEARNED_MOST))
        return [(min(slow, LEARNED_MOST), steps) if steps > 0 else (bound, 1) for slow, steps in zip(self.slowdowns, self.steps)][-REPEATS_MOST:]

    def name(self):
        job, other = SHOWN[self.pair[self.which]], SHOWN[self.pair[1 - self.which]]
        role = (", guaranteed" if self.which == 0 else ", giving way") if self.way == "gate" else ""
        return f"{job} beside {other} ({WAYS[self.way]}{role})"


def parse(path, number, cells):
    """(way, first, second, slowdowns, steps), or nothing: what a job takes alone, and lines of others."""
    if not cells or cells[0] not in WAYS:
        return None
    try:
        way, first, second, *figures, steps = cells
        slowdowns, counts = [float(cell) for cell in figures], [int(count) for count in steps.split("/")]
        if len(slowdowns) != 2 or len(counts) != 2 or min(counts) < 0 or not all(math.isfinite(slow) and slow > 0 for slow in slowdowns):
            raise ValueError
    except ValueError:
        raise SystemExit(f"{path}, line {number}: expected way,first,second,slowdown,slowdown,steps/steps, found {','.join(cells)!r}") from None
    for model in (first, second):
        if model not in MODELS:
            raise SystemExit(f"{path}, line {number}: there is no model {model!r}")
    return way, first, second, slowdowns, counts


def read(paths):
    """Sides by (way, first, second), both of a pair."""
    pairs = {}
    for path in paths:
        for number, cells in enumerate(csv.reader(read_text(path).splitlines()), 1):
            row = parse(path, number, cells)
            if row is None:
                continue
            way, first, second, slowdowns, counts = row
            sides = pairs.setdefault((way, first, second), [Side(way, (first, second), which) for which in (0, 1)])
            for side, slow, count in zip(sides, slowdowns, counts):
                side.slowdowns.append(slow)
                side.steps.append(count)
    if not pairs:
        raise SystemExit(f"there is nothing measured in {' '.join(paths)}")
    return pairs


# ---- what Sharewell says

class Oracle:
    """`sharewell contention`, with these measured profiles over the built-in ones, and no others."""

    def __init__(self, program, folder, profiles="profiles: []\n"):
        self.program, self.folder = program, folder
        self.profiles = self.write("profiles.yaml", profiles)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def ask(self, pair, learned=None):
        """By way: what it says of the first and of the second."""
        command = [self.program, "contention", *(MODELS[model] for model in pair), "--json", "--profiles", self.profiles] + (["--learned", learned] if learned else [])
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except OSError as error:
            raise SystemExit(f"cannot run {self.program}: {error.strerror}") from None
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"{' '.join(command)} failed: {error.stderr.strip()}") from None
        return {answer["way"]: [job["slowdown"] for job in answer["jobs"]] for answer in json.loads(done.stdout)}

    def teach(self, sides):
        """A file of what was measured of these. Both jobs of a pair with itself are the same observation, but for the gate, where they differ."""
        seen = {}
        for side in sides:
            alike = side.way != "gate" and side.pair[0] == side.pair[1]
            seen.setdefault((side.way, side.pair, 0 if alike else side.which), []).extend(side.lessons)
        observations = [{"way": way, "jobs": [MODELS[model] for model in pair], "which": which, "slowdowns": [round(max(slow, 0.5), 3) for slow, _ in lessons[-REPEATS_MOST:]],
                         "samples": [steps for _, steps in lessons[-REPEATS_MOST:]]} for (way, pair, which), lessons in seen.items()]
        return self.write("learned.json", json.dumps({"format": 1, "observations": observations}))


def error_of(side, predicted):
    return abs(min(predicted, STILL) - side.measured) / side.measured


def predict(oracle, pairs):
    answers = {pair: oracle.ask(pair) for pair in sorted({key[1:] for key in pairs})}
    for (way, *pair), sides in pairs.items():
        for side in sides:
            side.prior = answers[tuple(pair)][way][side.which]


# ---- held out

def held_out(oracle, pairs, draws, seed):
    """Of each draw: what was held out, as (side, error of the learned prediction, error of the profiles alone). A pair of models is held out under all ways at once."""
    chance = random.Random(seed)
    couples = sorted({tuple(sorted(key[1:])) for key in pairs})
    results = []
    for _ in range(draws):
        known = set(chance.sample(couples, len(couples) // 2))
        is_known = {key: tuple(sorted(key[1:])) in known for key in pairs}
        learned = oracle.teach([side for key, sides in pairs.items() if is_known[key] for side in sides])
        answers = {pair: oracle.ask(pair, learned) for pair in sorted({key[1:] for key in pairs if not is_known[key]})}
        results.append([(side, error_of(side, answers[key[1:]][key[0]][side.which]), error_of(side, side.prior))
                        for key, sides in pairs.items() if not is_known[key] for side in sides])
    return results


def summary_row(name, results, way=None):
    draws = [[row for row in draw if way is None or row[0].way == way] for draw in results]
    draws = [draw for draw in draws if draw]
    medians = [statistics.median(error for _, error, _ in draw) for draw in draws]
    before = [statistics.median(error for _, _, error in draw) for draw in draws]
    worst, off, _ = max((row for draw in draws for row in draw), key=lambda row: row[1])
    middle = statistics.median(medians)
    text = f"{middle * 100:.1f} %"
    return (f"| {name} | {text if middle <= GOAL else f'**{text}**'} | {min(medians) * 100:.1f}-{max(medians) * 100:.1f} % | {sum(m <= GOAL for m in medians)} of {len(medians)} "
            f"| {statistics.median(before) * 100:.1f} % | {worst.name()}: {off * 100:.0f} % |")


# ---- markdown

def said(slow):
    return "stands still" if slow >= STILL else f"{slow:.2f}"


def percent(error):
    text = f"{error * 100:.0f} %"
    return f"**{text}**" if error > GOAL else text


def ways_in(pairs):
    return [way for way in WAYS if any(key[0] == way for key in pairs)]


def tables(pairs):
    for way in ways_in(pairs):
        second = "the other, giving way" if way == "gate" else "the second"
        first = "the first, guaranteed" if way == "gate" else "the first"
        yield f"\nUnder {WAYS[way]}: slowdown of {first}, and of {second}.\n"
        yield "| first | second | measured | predicted | error |"
        yield "|---|---|---|---|---|"
        for key, sides in pairs.items():
            if key[0] != way:
                continue
            measured, prior = (", ".join(said(value) for value in values) for values in ([s.measured for s in sides], [s.prior for s in sides]))
            yield f"| {SHOWN[key[1]]} | {SHOWN[key[2]]} | {measured} | {prior} | {', '.join(percent(error_of(s, s.prior)) for s in sides)} |"


def error_table(pairs, by):
    yield f"\nHow far off the predictions were, by {by}, before a pair was seen:\n"
    yield "| way | jobs in pairs | median error | worst |"
    yield "|---|---|---|---|"
    for way in [*ways_in(pairs), None]:
        sides = [side for key, both in pairs.items() if way in (None, key[0]) for side in both]
        worst = max(sides, key=lambda side: error_of(side, side.prior))
        median = statistics.median(error_of(side, side.prior) for side in sides)
        yield f"| {WAYS.get(way, 'all')} | {len(sides)} | {median * 100:.1f} % | {worst.name()}: {error_of(worst, worst.prior) * 100:.0f} % |"


def held_out_table(pairs, results, seed):
    couples = len({tuple(sorted(key[1:])) for key in pairs})
    yield (f"\nHeld out: a random half of the {couples} pairs ({couples // 2}) is learned from, the others are predicted; {len(results)} draws (seed {seed}). Goal: a median error of at most "
           f"{GOAL * 100:.0f} %. The worst is that of any draw.\n")
    yield "| way | median of the medians | medians | within the goal | by the profiles alone | worst pair |"
    yield "|---|---|---|---|---|---|"
    for way in ways_in(pairs):
        yield summary_row(WAYS[way], results, way)
    yield summary_row("all together", results)


PROFILE_COLUMNS = (("host_cpu", "host CPU"), ("host_mem", "host memory"), ("sm", "SM"), ("mem_pipe", "memory pipe"), ("l2", "L2"), ("dram_read", "DRAM read"), ("dram_write", "DRAM write"), ("busy", "busy"))


def read_profiles(path):
    """Of the output of profiles.py: parts of the whole, or null where they could not be measured."""
    try:
        found = json.loads(read_text(path))["profiles"]
        found.items()
        return found
    except (ValueError, KeyError, TypeError, AttributeError):
        raise SystemExit(f"{path} is not what profiles.py prints") from None


def profile_table(profiles):
    yield "\nWhat each model uses alone, in percent of one GPU and of the 10 cores and 40 GiB of the host that go with it:\n"
    yield "| model | " + " | ".join(title for _, title in PROFILE_COLUMNS) + " |"
    yield "|---|" + "---|" * len(PROFILE_COLUMNS)
    for model, figures in profiles.items():
        cells = ("-" if figures.get(key) is None else f"{figures[key] * 100:.0f}" for key, _ in PROFILE_COLUMNS)
        yield f"| {SHOWN.get(model, model)} | " + " | ".join(cells) + " |"


def once_or_more(pairs):
    counts = [len(side.slowdowns) for sides in pairs.values() for side in sides]
    times = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return "Each pair was measured once." if max(counts) == 1 else f"Each pair was measured {times} times; the medians are shown."


# ---- the picture

CELL, MARGIN, TOP, GAP = 62, 110, 60, 40
SCALE = (("#f7fbff", 0), ("#c6dbef", 0.25), ("#6baed6", 0.5), ("#2171b5", 0.75), ("#08306b", 1))


def shade(slow):
    """From light to dark, one hue: 1 to 4 on a logarithmic scale. Also the colour of figures upon it."""
    part = min(max(math.log(max(slow, 1)) / math.log(4), 0), 1)
    for (low, at), (high, to) in zip(SCALE, SCALE[1:]):
        if part <= to:
            mix = (part - at) / (to - at)
            channels = [round(int(low[i:i + 2], 16) * (1 - mix) + int(high[i:i + 2], 16) * mix) for i in (1, 3, 5)]
            return "#" + "".join(f"{channel:02x}" for channel in channels), "white" if part > 0.65 else "black"
    raise AssertionError(slow)


def panels(pairs):
    """(title, {(row, column): slowdown of the row's job})."""
    for way in ways_in(pairs):
        cells = [{}, {}]
        for (kind, first, second), sides in pairs.items():
            if kind != way:
                continue
            if way == "gate":
                cells[0][first, second], cells[1][second, first] = sides[0].measured, sides[1].measured
            elif first == second:
                cells[0][first, first] = statistics.mean(side.measured for side in sides)
            else:
                cells[0][first, second], cells[0][second, first] = sides[0].measured, sides[1].measured
        if way == "gate":
            yield "Gate: the row's job guaranteed", cells[0]
            yield "Gate: the row's job gives way", cells[1]
        else:
            yield f"{WAYS[way][0].upper()}{WAYS[way][1:]}", cells[0]


def draw_panel(title, cells, x, y):
    yield f'<text x="{x}" y="{y - 34}" font-size="15" font-weight="bold">{title}</text>'
    for i, model in enumerate(MODELS):
        yield f'<text x="{x + (i + 0.5) * CELL}" y="{y - 8}" text-anchor="middle" font-size="10">{SHOWN[model]}</text>'
        yield f'<text x="{x - 8}" y="{y + (i + 0.5) * CELL + 4}" text-anchor="end">{SHOWN[model]}</text>'
    for r, row in enumerate(MODELS):
        for c, column in enumerate(MODELS):
            slow = cells.get((row, column))
            fill, ink = shade(slow) if slow is not None else ("#eeeeee", "#777")
            text = "-" if slow is None else "still" if slow >= STILL else f"{slow:.2f}"
            yield (f'<rect class="cell" x="{x + c * CELL}" y="{y + r * CELL}" width="{CELL - 2}" height="{CELL - 2}" fill="{fill}"/>'
                   f'<text x="{x + (c + 0.5) * CELL - 1}" y="{y + (r + 0.5) * CELL + 4}" text-anchor="middle" fill="{ink}">{text}</text>')


def draw(pairs):
    all_panels = list(panels(pairs))
    across, down = MARGIN + len(MODELS) * CELL + GAP, TOP + len(MODELS) * CELL + GAP
    width, height = across * min(2, len(all_panels)), down * ((len(all_panels) + 1) // 2) + 70
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">'
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    yield '<text x="20" y="26" font-size="16">How many times as long as alone the row\'s job takes beside the column\'s</text>'
    for i, (title, cells) in enumerate(all_panels):
        yield from draw_panel(title, cells, MARGIN + i % 2 * across, 30 + TOP + i // 2 * down)
    for i, slow in enumerate((1, 1.25, 1.5, 2, 3, 4)):
        fill, ink = shade(slow)
        yield f'<rect x="{MARGIN + i * 60}" y="{height - 40}" width="60" height="22" fill="{fill}"/>'
        yield f'<text x="{MARGIN + i * 60 + 30}" y="{height - 25}" text-anchor="middle" fill="{ink}">{slow:g}{"+" if slow == 4 else ""}</text>'
    yield "</svg>"


# ---- where it goes

def replace(path, text):
    """Puts the text between the two marks."""
    page = read_text(path)
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise SystemExit(f"{path}: expected the line {BEGIN} once, and {END} once behind it")
    before, rest = page.split(BEGIN)
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{text.strip()}\n{END}{rest.split(END)[1]}")


def write_picture(pairs, path):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(draw(pairs)) + "\n")


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--sharewell", default=os.path.join(HERE, "..", "..", "build", "release", "sharewell"))
    parser.add_argument("--docs")
    parser.add_argument("--svg")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.draws < 1:
        parser.error("--draws is at least 1")
    return options


def study(oracle, pairs, options, by):
    """How good the predictions are that start from these profiles. The sides keep them."""
    predict(oracle, pairs)
    results = held_out(oracle, pairs, options.draws, options.seed)
    return [*error_table(pairs, by), *held_out_table(pairs, results, options.seed)]


def main():
    options = options_of(sys.argv[1:])
    measured = [path for path in options.files if path.endswith(".json")]
    pairs = read([path for path in options.files if path not in measured])
    own = {model: figures for path in measured for model, figures in read_profiles(path).items()}
    lines = [*profile_table(own)] if own else []
    if options.svg:
        write_picture(pairs, options.svg)
        start = os.path.dirname(os.path.abspath(options.docs)) if options.docs else "."
        lines.append(f"\n![How many times as long as alone each job takes beside each other]({os.path.relpath(options.svg, start)})")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.abspath(options.sharewell)
        lines += study(Oracle(program, folder), pairs, options, "the built-in profiles")
        lines += [f"\n{once_or_more(pairs)} Bold: off by more than {GOAL * 100:.0f} %. Predictions in these tables are by the built-in profiles.", *tables(pairs)]
        if store_of(own).count("name:"):
            lines += study(Oracle(program, folder, store_of(own)), pairs, options, "the profiles measured here")
    text = "\n".join(lines).strip() + "\n"
    if options.docs:
        replace(options.docs, text)
    print(text, end="")


if __name__ == "__main__":
    main()
