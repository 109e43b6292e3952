"""Everything that must hold on a real GPU, one after the other; says of each whether it does. Needs PyTorch; nvcc, CuPy, JAX where they are. Usage: run.py LIBRARY [PART ...]

Each part compares hashes of a program's results bare, under the runtime, and under the runtime while it is moved.
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CYCLES = {
    "graph": ("mlp", "6000", "20", "suspend", "graph"),
    "graph-squeezed": ("mlp", "6000", "20", "squeeze", "graph"),
    "resnet": ("resnet", "200", "20", "suspend"),
    "workers": ("resnet", "120", "20", "suspend", "workers"),
    "streams-squeezed": ("resnet", "150", "20", "squeeze", "streams"),
    # Memory that PyTorch maps by hand.
    "expandable": ("resnet", "200", "20", "suspend", "expandable"),
    "expandable-squeezed": ("resnet", "150", "20", "squeeze", "expandable"),
    "expandable-graph": ("mlp", "6000", "20", "suspend", "graph", "expandable"),
    # Memory that PyTorch gets in stream order, for every tensor anew.
    "pool": ("resnet", "150", "20", "suspend", "pool"),
    "pool-squeezed": ("resnet", "150", "20", "squeeze", "pool", "streams"),
    "pool-graph": ("mlp", "6000", "20", "suspend", "graph", "pool"),
    "compile": ("transformer", "300", "20", "suspend", "compile"),
    "compile-squeezed": ("transformer", "600", "20", "squeeze", "compile"),
}
PROGRAMS = ("cupy", "jax", "triton", "numba")


def run(script, *arguments):
    """Whether it holds; None: it does not run here."""
    code = subprocess.run([sys.executable, os.path.join(HERE, script), *arguments], timeout=500).returncode
    return None if code == 77 else code == 0


def once(library, *command):
    return run("once.py", library, "0", *command)


def plain(library):
    if shutil.which("nvcc") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "plain")
        subprocess.run(["nvcc", "-O2", "-o", program, os.path.join(HERE, "plain.cu")], check=True)
        return once(library, program, "4")


def main():
    library, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:]
    parts = {name: lambda words=words: run("cycles.py", library, *words) for name, words in CYCLES.items()}
    parts["plain"] = lambda: plain(library)
    parts["shared"] = lambda: once(library, sys.executable, os.path.join(HERE, "shared.py"), "8")
    parts["deep"] = lambda: run("deep.py", f"checkpoint:{library}", "2", sys.executable, os.path.join(HERE, "train.py"), "resnet", "400")
    for name in PROGRAMS:
        found = importlib.util.find_spec(name) is not None
        parts[name] = (lambda name=name: once(library, sys.executable, os.path.join(HERE, "programs.py"), name, "4")) if found else lambda: None
    answers = {name: parts[name]() for name in wanted or parts}
    for name, held in answers.items():
        print(f"{name}: {'skipped, it does not run here' if held is None else 'holds' if held else 'DOES NOT HOLD'}")
    return 0 if all(held is not False for held in answers.values()) else 1


sys.exit(main())
