#!/usr/bin/env python3
"""Instructions that the GPU runtime adds to a launch, a fill and a copy when nothing is throttled. Needs valgrind and no GPU: the count is the same on every machine.

    bench/gpu/instructions.py [build/release]

Counted with the job's page, on the emulated driver: what is executed in libsharewell-gpu.so between the call and its end, the driver's own left out.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "gpu"))
UUID = "5ba7e001-0000-4000-8000-000000000001"
FEW, MANY = 256, 1280


def instructions_in(path, library):
    """{function: instructions} of one library in a file of callgrind's, each function without what it calls."""
    names, found, inside, function, skip = {}, {}, False, None, False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = re.match(r"(ob|fn)=\((\d+)\)(?: (.*))?$", line)
            if match:
                key = (match[1], match[2])
                names.setdefault(key, match[3])
                if match[1] == "ob":
                    inside = os.path.basename(names[key] or "") == library
                else:
                    function = names[key]
                continue
            other = re.match(r"c(ob|fn)=\((\d+)\)(?: (.*))?$", line)
            if other:
                names.setdefault((other[1], other[2]), other[3])
            elif line.startswith("calls="):
                skip = True
            elif re.match(r"[+*\d-]", line) and not skip:
                if inside:
                    found[function] = found.get(function, 0) + int(line.split()[1])
            else:
                skip = False
    return found


def count(program, build, folder, *calls):
    import page
    paths = [os.path.join(folder, name) for name in ("page", "state", "out")]
    for path in paths:
        if os.path.exists(path):
            os.unlink(path)
    page.Page(paths[0], [bytes.fromhex(UUID.replace("-", ""))])
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(build, "emu"), SHAREWELL_GPU=paths[0], SHAREWELL_EMU_STATE=paths[1],
               SHAREWELL_EMU=f"gpus=1;memory=1G;context=16M;launch_us=0;gpu.0.uuid=GPU-{UUID}")
    # Preloaded into the program alone, and not into valgrind.
    command = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={paths[2]}", "--", "env",
               f"LD_PRELOAD={os.path.join(build, 'libsharewell-gpu.so')}", program, *map(str, calls)]
    done = subprocess.run(command[:3] + ["--trace-children=yes"] + command[3:], env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the program failed under valgrind: {done.stderr[-500:]}")
    return instructions_in(paths[2], "libsharewell-gpu.so")


def difference(many, few):
    """Of the hooks alone: the attendant's looks, in a thread of its own, come and go."""
    return sum(many[name] - few.get(name, 0) for name in many if name and re.match(r"cu[A-Z]|sw_track|sw_gate|note_of|own|of_config", name)) / (MANY - FEW)


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "launches")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-o", program, os.path.join(HERE, "launches.c"), "-ldl"], check=True)
        few = count(program, build, folder, FEW, FEW, FEW)
        launch, fill, copy = (difference(count(program, build, folder, *(MANY if i == which else FEW for i in range(3))), few) for which in range(3))
    print(f"instructions of the runtime: {launch:.1f} for a launch, {fill:.1f} for a fill, {copy:.1f} for a copy that does not say where from and to")


if __name__ == "__main__":
    main()
