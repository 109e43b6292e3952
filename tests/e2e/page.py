#!/usr/bin/env python3
"""Runs what a documentation page tells its reader to do. Usage: page.py [--update] PAGE...

    ```c NAME        is written to the file NAME
    ```console       lines that begin with "$ " are run by sh; the lines below each must be what it prints

All blocks of a page run in order in one empty folder, with `sharewell` on the path and <sharewell/policy.h> where the compiler looks.
The folder is SW_PAGE_FOLDER where that is set, and stays.
In expected output, "..." stands for any text within a line, and alone on a line for any lines. --update writes what was printed into
the page, except below commands whose expected output has such dots. The last column of a table that ends in "cpu s" is measured, and
not compared.

Environment: SHAREWELL, the program; SW_SOURCE_DIR, the root of the source.
"""
import os
import re
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^(`{3,})\s*(\S*)\s*(\S*)\s*$")


class Command:
    """One command of a console block: its text, the expected lines, and where those stand in the page."""

    def __init__(self, text, line):
        self.text, self.line, self.expected, self.first = text, line, [], None

    def name(self):
        return self.text.split("\n")[0]


def blocks(lines):
    """(first word, second word, number of the first line inside, lines) of each fenced block."""
    inside = None
    for number, line in enumerate(lines):
        match = FENCE.match(line)
        if inside is None and match:
            inside = (match.group(1), match.group(2), match.group(3), number + 1)
        elif inside is not None and line.rstrip() == inside[0]:
            yield inside[1], inside[2], inside[3], lines[inside[3] : number]
            inside = None
    if inside is not None:
        raise SystemExit(f"line {inside[3]}: this block never ends")


def commands(first, lines):
    """Takes a console block apart. A command that ends in a backslash or opens a here-document goes on in the next lines."""
    current, until = None, None
    for offset, line in enumerate(lines):
        if until is not None:
            current.text += "\n" + line
            if line == until:
                until = None
        elif current is not None and current.first is None and current.text.endswith("\\"):
            current.text += "\n" + line
        elif line.startswith("$ "):
            if current is not None:
                yield current
            current = Command(line[2:], first + offset)
        elif current is not None:
            if current.first is None:
                current.first = first + offset
            current.expected.append(line)
        if current is not None and until is None and current.first is None:
            match = re.search(r"<<\s*'?(\w+)'?", current.text.split("\n")[-1])
            until = match.group(1) if match and "\n" not in current.text else None
    if current is not None:
        yield current


def unmeasured(lines):
    """Without the CPU seconds at the end of the rows of a table."""
    return [re.sub(r"\d+\.\d\d(?= *[|│]$)", "#", line) for line in lines] if any("cpu s" in line for line in lines) else lines


def matches(expected, printed):
    expected, printed = unmeasured(expected), unmeasured(printed)
    pattern = ""
    for line in expected:
        if line == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += r"[^\n]*".join(re.escape(piece) for piece in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


class Page:
    def __init__(self, path, update):
        self.path, self.update = path, update
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.replace = []
        self.failed = 0
        self.count = 0

    def say(self, good, text, detail=()):
        self.count += 1
        print(f"{'ok' if good else 'not ok'} - {os.path.basename(self.path)}: {text}")
        for line in detail:
            print(f"# {line}")
        self.failed += not good

    def run_command(self, command, folder, environment):
        done = subprocess.run(["sh", "-c", command.text], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, universal_newlines=True, encoding="utf-8", errors="replace")
        printed = [line.rstrip() for line in done.stdout.split("\n")]
        while printed and printed[-1] == "":
            printed.pop()
        expected = [line.rstrip() for line in command.expected]
        while expected and expected[-1] == "":
            expected.pop()
        good = matches(expected, printed)
        if not good and self.update and not any("..." in line for line in expected):
            self.replace.append((command, printed))
            good = True
        detail = [f"{self.path}:{command.line + 1}, exit status {done.returncode}; expected:", *expected, "printed:", *printed]
        self.say(good, command.name(), [] if good else detail)

    def run(self):
        environment = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", CPATH=os.path.join(os.environ["SW_SOURCE_DIR"], "include"))
        with tempfile.TemporaryDirectory() as scratch:
            tools = os.path.join(scratch, "bin")
            folder = os.environ.get("SW_PAGE_FOLDER", os.path.join(scratch, "work"))
            os.mkdir(tools)
            os.makedirs(folder, exist_ok=True)
            os.symlink(os.path.abspath(os.environ["SHAREWELL"]), os.path.join(tools, "sharewell"))
            environment["PATH"] = tools + os.pathsep + environment["PATH"]
            for kind, name, first, lines in blocks(self.lines):
                if kind == "c" and name:
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write("\n".join(lines) + "\n")
                elif kind == "console":
                    for command in commands(first, lines):
                        self.run_command(command, folder, environment)
        if self.count == 0:
            self.say(False, "there is nothing in it to run")
        self.write_back()

    def write_back(self):
        for command, printed in reversed(self.replace):
            first = command.first if command.first is not None else command.line + 1 + command.text.count("\n")
            self.lines[first : first + len(command.expected)] = printed
        if self.replace:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines))


def main():
    arguments = [a for a in sys.argv[1:] if a != "--update"]
    pages = [Page(path, "--update" in sys.argv) for path in arguments]
    for page in pages:
        page.run()
    sys.exit(1 if not pages or any(page.failed for page in pages) else 0)


main()
