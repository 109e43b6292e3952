"""A job of another user, on the node where the innocent jobs run. Jobs do not run as root, and what they take is bounded here as well."""
import time

import wire
from arena import attack, check

READY = """
def ready(name, text=""):
    with open(FOLDER + "/" + name + ".part", "w") as file: file.write(str(text))
    os.rename(FOLDER + "/" + name + ".part", FOLDER + "/" + name)
"""


def run(arena, name, source, **fields):
    return arena.program_of_job(name, "import os, signal, socket, sys, time, resource, fcntl, glob, errno\n" + READY + source, **fields)


def is_gone(arena, job):
    """After a cancel nothing of the job is left."""
    arena.ask(arena.mallory, "POST", f"/v1/jobs/{job}/cancel")
    arena.reaches(job, "CA", "CD", "F", "TO")


def left_over(arena):
    return wire.wait_until(lambda: not arena.processes(arena.mallory), 60)


@attack("as many processes as it may have, each asleep")
def many_processes(arena):
    job = run(arena, "many", f"""
resource.setrlimit(resource.RLIMIT_NPROC, ({arena.size(400, 60)}, {arena.size(400, 60)}))
made = 0
while made < 500:
    try:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    except OSError:
        break
    made += 1
ready("many", made)
time.sleep(600)
""", grace=1)
    made = arena.mine("many")
    is_gone(arena, job)
    check(left_over(arena), "processes of a cancelled job are left")
    return f"{made} processes, none is left"


@attack("daemons: two forks, a session of their own, all descriptors closed, signals ignored")
def daemons(arena):
    job = run(arena, "daemons", f"""
for i in range({arena.size(50, 8)}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0: os._exit(0)
        for number in range(1, 64):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.closerange(0, 1024)
        os.chdir("/")
        time.sleep(600)
        os._exit(0)
ready("daemons")
""")
    arena.mine("daemons")
    arena.reaches(job, "CD", "F")
    check(left_over(arena), f"{len(arena.processes(arena.mallory))} daemons of a job that has ended are left")
    return "none is left"


@attack("a log that is written as fast as it goes, without an end of line")
def log_flood(arena):
    job = run(arena, "logflood", f"""
for i in range({arena.size(4000, 300)}):
    os.write(1 + i % 2, b"\\x00\\xff" * 32768)
ready("logflood")
""")
    arena.mine("logflood")
    arena.reaches(job, "CD", "F")
    return "ended"


@attack("a log of escapes, false TAP, false logs of the controller and binary")
def odd_log(arena):
    job = run(arena, "oddlog", """
text = b"\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\nok 1 - all is well\\nnot ok 2 - nothing is\\n1..0 # SKIP\\nBail out!\\nHTTP/1.1 200 OK\\r\\n\\r\\n\\r\\x08\\x08sharewell: job 1 ended\\nslurmstepd: error: *** JOB 1 CANCELLED\\n"
text += b"RuntimeError: CUDA out of memory. Tried to allocate 99999999999999999999 GiB\\nTraceback (most recent call last):\\nModuleNotFoundError: No module named '%s'\\n" % (b"x" * 100000)
text += b"FileNotFoundError: [Errno 2] No such file or directory: '" + b"../" * 5000 + b"'\\n"
for i in range(200): os.write(1, text[:60000]); os.write(2, text)
ready("oddlog")
sys.exit(1)
""")
    arena.mine("oddlog")
    view = arena.reaches(job, "CD", "F")
    for command in (["why", str(job)], ["show", str(job)], ["history"]):
        shown = arena.command(*command, uid=arena.mallory)
        check(shown.returncode == 0 and b"\x1b" not in shown.stdout, f"{command} fails or prints escapes")
    return f"it is {view['state']}, said to be {(view['failure'] or {}).get('kind', (view['failure'] or {}).get('name', '-'))}"


@attack("its own folders are removed, and replaced by links")
def removed_folders(arena):
    job = run(arena, "removed", """
import shutil
os.makedirs(FOLDER + "/work/below", exist_ok=True)
os.chdir(FOLDER + "/work/below")
shutil.rmtree(FOLDER + "/work")
os.symlink("/etc", FOLDER + "/work")
for place in os.environ.values():
    if place.startswith("/") and FOLDER not in place:
        try: os.unlink(place)
        except OSError: pass
print("after all")
ready("removed")
""", stdout=f"{arena.homes[arena.mallory]}/work-out")
    arena.mine("removed")
    return f"it is {arena.reaches(job, 'CD', 'F')['state']}"


@attack("its supervisor: signals to it, to its group, to every process that it may signal")
def kills_above(arena):
    job = run(arena, "above", """
said = []
for pid in (os.getppid(), -os.getppid(), 1, -1):
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        if pid == -1 and number != signal.SIGTERM: continue
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            os.kill(pid, number)
            said.append("%d: yes" % pid)
        except OSError as error:
            said.append("%d: %s" % (pid, errno.errorcode[error.errno]))
ready("above", " ".join(said))
os.kill(0, signal.SIGKILL)
""")
    said = arena.mine("above")
    arena.reaches(job, "CD", "F")
    check("1: yes" not in said.replace("-1: yes", ""), f"it could signal init: {said}")
    return said[:60]


@attack("sockets of supervisors, files of other runs, memory and descriptors of the innocent processes")
def looks_around(arena):
    job = run(arena, "around", f"""
got = []
def attempt(what, action):
    try:
        action()
        got.append(what)
    except (OSError, ValueError): pass
for path in glob.glob("/run/sharewell/**", recursive=True) + glob.glob({str(arena.state)!r} + "/**", recursive=True):
    attempt("open " + path, lambda: open(path, "r+b").close())
def dial(path):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(path); s.sendall(b"x" * 1000)
for number in {[job for job, _ in arena.counters]}:
    attempt("dial", lambda: dial({str(arena.state)!r} + "/runs/%d.1/supervisor.sock" % number))
    attempt("log", lambda: open({str(arena.state)!r} + "/runs/%d.1/out.log" % number))
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for entry in os.listdir("/proc"):
    if not entry.isdigit(): continue
    try:
        if os.stat("/proc/" + entry).st_uid != INNOCENT: continue
    except OSError: continue
    for name in ("mem", "environ", "fd/0", "cwd/x", "root/x", "maps"):
        attempt("proc " + name, lambda: open("/proc/%s/%s" % (entry, name), "rb").read(1))
    if libc.ptrace(16, int(entry), None, None) == 0: got.append("ptrace")
    for number in (signal.SIGSTOP, signal.SIGKILL): attempt("kill", lambda: os.kill(int(entry), number))
    attempt("renice", lambda: os.setpriority(os.PRIO_PROCESS, int(entry), 19))
    attempt("affinity", lambda: os.sched_setaffinity(int(entry), {{0}}))
    attempt("limits", lambda: resource.prlimit(int(entry), resource.RLIMIT_CPU, (1, 1)))
ready("around", " ".join(got))
""")
    got = arena.mine("around")
    arena.reaches(job, "CD", "F")
    check(got == "", f"it reached: {got[:500]}")
    return "nothing is in reach"


@attack("its control group: limits lifted, itself moved out, others moved in and frozen")
def control_groups(arena):
    job = run(arena, "groups", """
got = []
for line in open("/proc/self/cgroup"):
    path = line.rstrip().split(":", 2)[2]
    for root in glob.glob("/sys/fs/cgroup") + glob.glob("/sys/fs/cgroup/*"):
        for place in {root + path, root, os.path.dirname(root + path)}:
            for name, text in (("cgroup.procs", str(os.getpid())), ("tasks", "0"), ("memory.max", "max"), ("memory.limit_in_bytes", "-1"), ("cgroup.freeze", "1"), ("freezer.state", "FROZEN"), ("cgroup.kill", "1"),
                               ("pids.max", "max"), ("devices.allow", "a")):
                try:
                    with open(place + "/" + name, "w") as file: file.write(text)
                    got.append(place + "/" + name)
                except OSError: pass
ready("groups", " ".join(got))
""")
    got = arena.mine("groups")
    arena.reaches(job, "CD", "F")
    check(got == "", f"it wrote to {got[:300]}")
    return "nothing is writable"


@attack("all descriptors, all of its connections to the controller, and inherited ones")
def descriptors(arena):
    job = run(arena, "descriptors", f"""
kept = []
inherited = [entry for entry in os.listdir("/proc/self/fd") if int(entry) > 3]
try:
    for i in range(2000):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(2)
        s.connect({arena.socket!r})
        s.send(b"G")
        kept.append(s)
except OSError: pass
dialed = len(kept)
try:
    while len(kept) < 5000: kept.append(open("/dev/null"))
except OSError: pass
del kept[-3:]
ready("descriptors", "%d connections, %d in all, %d inherited" % (dialed, len(kept), len(inherited)))
time.sleep(600)
""", grace=1)
    said = arena.mine("descriptors")
    return said


@attack("every signal ignored, and the job cancelled")
def ignores_signals(arena):
    job = run(arena, "ignores", """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
ready("ignores")
while True: time.sleep(600)
""", grace=1)
    arena.mine("ignores")
    is_gone(arena, job)
    check(left_over(arena), "it is still there")
    return "ended"


@attack("processes that stop themselves and each other, and are cancelled")
def stopped(arena):
    job = run(arena, "stopped", """
for i in range(10):
    if os.fork() == 0:
        os.setpgid(0, 0)
        while True: os.kill(os.getpid(), signal.SIGSTOP)
ready("stopped")
os.kill(os.getpid(), signal.SIGSTOP)
""", grace=1)
    arena.mine("stopped")
    is_gone(arena, job)
    check(left_over(arena), "they are still there")
    return "ended"


@attack("thousands of files and a large one in every folder that it can write")
def fills_folders(arena):
    job = run(arena, "fills", f"""
resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
os.makedirs(FOLDER + "/deep", exist_ok=True)
for i in range({arena.size(5000, 300)}): open(FOLDER + "/deep/%d" % i, "w").close()
place = FOLDER + "/deep"
for i in range(200):
    place += "/" + "d" * 15
    try: os.mkdir(place)
    except OSError: break
with open(FOLDER + "/large", "wb") as file: file.truncate(32 << 20); file.write(b"x" * (8 << 20))
ready("fills")
""")
    arena.mine("fills")
    return f"it is {arena.reaches(job, 'CD', 'F')['state']}"


@attack("a file of its GPUs that it locks, shortens and fills")
def gpu_page(arena):
    job = run(arena, "page", """
done = []
for name, value in sorted(os.environ.items()):
    for path in glob.glob(value + "*") if value.startswith("/") else []:
        if not os.path.isfile(path) or "sharewell" not in path: continue
        for action in (lambda f: fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB), lambda f: f.truncate(0), lambda f: f.write(b"\\xff" * 100000)):
            try:
                with open(path, "r+b") as file: action(file)
                done.append(name)
            except OSError: pass
ready("page", " ".join(done) or "no such file")
time.sleep(1)
""")
    said = arena.mine("page")
    arena.reaches(job, "CD", "F")
    return said[:60]


@attack("jobs that submit jobs that submit jobs")
def submits_itself(arena):
    most = arena.size(200, 15)
    job = run(arena, "breeds", f"""
import json
path = FOLDER + "/breeds.count"
with open(path, "a+") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    file.write("x"); file.flush()
    count = os.path.getsize(path)
if count < {most}:
    for i in range(2):
        body = json.dumps({{"command": ["python3", "-S", FOLDER + "/breeds.py"], "workdir": FOLDER, "env": dict(PATH=os.environ.get("PATH", ""))}}).encode()
        s = socket.socket(socket.AF_UNIX)
        s.connect({arena.socket!r})
        s.sendall(b"POST /v1/jobs HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
        s.recv(1000)
else:
    ready("breeds")
""")
    arena.mine("breeds")
    count = len((arena.homes[arena.mallory] / "breeds.count").read_text())
    time.sleep(0.2)
    return f"{count} generations and more; the first is {arena.view(arena.mallory, job)['state']}"


@attack("exits of every kind: codes, signals, cores, at once, in numbers")
def exits(arena):
    commands = [f"exit {code}" for code in (0, 1, 2, 125, 126, 127, 128, 137, 143, 255)] + [f"kill -{number} $$" for number in (1, 2, 3, 6, 9, 11, 15, 31)]
    status, body = arena.ask(arena.mallory, "POST", "/v1/jobs", [{"command": command, "workdir": "/", "retries": 0} for command in commands] * arena.size(5, 1))
    check(status == 201, f"answered with {status}: {body}")
    views = [arena.reaches(job, "CD", "F", "NF", "TO", "OOM", "CA") for job in body["ids"]]
    codes = [(view["code"], view["signal"]) for view in views[: len(commands)]]
    check([code for code, _ in codes[:10]] == [0, 1, 2, 125, 126, 127, 128, 137, 143, 255], f"exit codes are told as {codes}")
    return f"{len(views)} ends, all codes right"
