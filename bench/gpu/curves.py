"""Draws what a guaranteed job loses against what its neighbour gets, from the table of protect.py. Usage: curves.py FILE > PICTURE.svg"""
import math
import sys

WIDTH, HEIGHT, LEFT, TOP = 860, 460, 70, 40
COLOURS = {"gives way": "#0a7d4f", "time slices": "#b3261e", "MPS": "#7b5ea7", "MPS, priority": "#a58bd0", "MPS, 20 % and priority": "#c9a227", "share": "#5b8def"}
SHOWN = {"resnet:0:resnet": "circle", "transformer:0:matmul": "square", "resnet:35:matmul": "triangle", "resnet:35:resnet": "diamond"}


def rows(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 7 and cells[0] in SHOWN:
                yield cells[0], cells[1], float(cells[2].strip("*")), float(cells[4])


def colour(way):
    return COLOURS.get(way) or COLOURS["share" if way.startswith("share") else "gives way"]


def mark(shape, x, y, fill):
    if shape == "circle":
        return f'<circle cx="{x}" cy="{y}" r="6" fill="{fill}"/>'
    points = {"square": ((-5, -5), (5, -5), (5, 5), (-5, 5)), "triangle": ((0, -7), (7, 5), (-7, 5)), "diamond": ((0, -8), (7, 0), (0, 8), (-7, 0))}[shape]
    return f'<polygon points="{" ".join(f"{x + dx},{y + dy}" for dx, dy in points)}" fill="{fill}"/>'


def across(part):
    return round(LEFT + part * (WIDTH - LEFT - 230), 1)


def up(slowdown):
    return round(TOP + (HEIGHT - TOP - 60) * (1 - math.log(max(slowdown, 0.97) / 0.97) / math.log(6 / 0.97)), 1)


def draw(path):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>', f'<text x="{LEFT}" y="22" font-size="15">What a guaranteed job loses, and what its neighbour gets</text>']
    for slowdown in (1, 1.2, 1.5, 2, 3, 5):
        out.append(f'<line x1="{LEFT}" x2="{across(1)}" y1="{up(slowdown)}" y2="{up(slowdown)}" stroke="#ddd"/><text x="{LEFT - 8}" y="{up(slowdown) + 4}" text-anchor="end">{slowdown}x</text>')
    for part in (0, 0.25, 0.5, 0.75, 1):
        out.append(f'<line x1="{across(part)}" x2="{across(part)}" y1="{TOP}" y2="{HEIGHT - 60}" stroke="#eee"/><text x="{across(part)}" y="{HEIGHT - 40}" text-anchor="middle">{part}</text>')
    out.append(f'<text x="{across(0.5)}" y="{HEIGHT - 18}" text-anchor="middle">speed of the neighbour against alone</text>')
    out.append(f'<text transform="translate(18 {HEIGHT // 2}) rotate(-90)" text-anchor="middle">step of the guaranteed job against alone</text>')
    out += [mark(SHOWN[pair], across(part), up(slowdown), colour(way)) for pair, way, slowdown, part in rows(path)]
    y = TOP + 10
    for name, fill in COLOURS.items():
        out.append(f'<rect x="{WIDTH - 210}" y="{y - 9}" width="12" height="10" fill="{fill}"/><text x="{WIDTH - 190}" y="{y}">{name}</text>')
        y += 20
    for pair, shape in SHOWN.items():
        first, idle, other = pair.split(":")
        y += 20
        out.append(mark(shape, WIDTH - 204, y - 4, "#555") + f'<text x="{WIDTH - 190}" y="{y}">{first}{", half idle" if idle != "0" else ""} + {other}</text>')
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    print(draw(sys.argv[1]), end="")
