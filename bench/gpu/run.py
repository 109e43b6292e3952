"""All figures of docs/gpu-results.md, in one run on a machine with a GPU, nvcc and PyTorch. Usage: run.py LIBRARY [PART ...]"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))
PARTS = {
    "moves": ["moves.py", "LIBRARY", "16"],
    "hooks": ["hooks.py", "LIBRARY"],
    "protect": ["protect.py", "LIBRARY", "peers", "shares"],
    "shares": ["shares.py", "LIBRARY"],
    "spill": ["spill.py", "LIBRARY"],
    "bigbrain": ["bigbrain.py"],
}


def launches(library):
    """Nanoseconds that the runtime adds to an empty launch; and, to know what such a figure is worth, what is found where there is none."""
    import page
    from gpus import uuids
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        program = os.path.join(folder, "launches")
        subprocess.run(["nvcc", "-O2", "-o", program, os.path.join(HERE, "launches.cu"), "-ldl"], check=True)
        env = dict(os.environ, LD_PRELOAD=library, SHAREWELL_GPU=page.Page(os.path.join(folder, "page"), uuids()).path)
        for way, around in (("without the runtime", None), ("under the runtime", env)) * 3:
            own, found, more = subprocess.run([program], env=around, capture_output=True, text=True, check=True).stdout.split()
            print(f"empty launch, {way}: {own} ns by the driver's own function, {found} ns by the one that programs find: {more} ns more", flush=True)


def main():
    library, parts = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["launches", *PARTS]
    for part in parts:
        print(f"\n## {part}\n", flush=True)
        if part == "launches":
            launches(library)
        else:
            script, *arguments = PARTS[part]
            subprocess.run([sys.executable, os.path.join(HERE, script)] + [library if word == "LIBRARY" else word for word in arguments], check=True)


main()
