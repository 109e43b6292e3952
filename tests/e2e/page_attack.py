"""What a hostile job tries against the GPU runtime of its neighbours. Runs as a job that gives way: page_attack.py FOLDER UID-OF-THE-OTHER. Says what it could do, one word a line. What
it does to files of its own comes last. Stays until FOLDER/attack.end is there, with all that it holds."""
import fcntl
import os
import struct
import sys
import time

folder, other = sys.argv[1], sys.argv[2]
page = os.environ["SHAREWELL_GPU"]
report = open(folder + "/attack.out", "w", buffering=1)
held = []


def tries(word, call):
    try:
        held.append(call())
        report.write(word + "\n")
    except OSError:
        pass


def lock_all(path):
    """A lock on every byte that its owner has not locked, which needs no more than the right to read."""
    file = open(path, "rb")
    for byte in range(5000):
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            pass
    return file


def write_over(path, size):
    with open(path, "r+b") as file:
        file.write(b"\xff" * size)


def text_at(place):
    with open(page, "rb") as file:
        file.seek(place)
        return file.read(256).split(b"\0")[0].decode()


while not text_at(72):  # it gives way to the other from here on
    time.sleep(0.05)
told, ledger = text_at(72), text_at(2120)
theirs = told.replace("+told", "")
tries("locks-told", lambda: lock_all(told))  # which does no harm
for name, path in (("page", theirs), ("told", told), ("ledger", ledger.replace(str(os.getuid()), other)), ("root-ledger", ledger.rpartition("-")[0] or ledger)):
    if name != "told":
        tries("locks-" + name, lambda: lock_all(path))
    tries("writes-" + name, lambda: write_over(path, 64))
    tries("shortens-" + name, lambda: os.truncate(path, 0))
    tries("opens-up-" + name, lambda: os.chmod(path, 0o666))
    tries("replaces-" + name, lambda: os.rename(page, path))
    tries("removes-" + name, lambda: os.unlink(path))
place = os.path.dirname(page)
tries("lists", lambda: os.listdir(place))
tries("makes-file", lambda: open(place + "/mine", "w"))
tries("makes-link", lambda: os.symlink("/etc/passwd", place + "/link"))
tries("makes-fifo", lambda: os.mkfifo(place + "/fifo"))
tries("removes-folder", lambda: os.rename(place, place + "-away"))
# Its own.
for path in (page, page + "+told", ledger):
    for spoil in (lock_all, lambda p: write_over(p, 838984), lambda p: os.truncate(p, 64 << 20), lambda p: os.truncate(p, 1000), lambda p: os.chmod(p, 0)):
        try:
            held.append(spoil(path))
        except OSError:
            pass
report.write("over\n")
while not os.path.exists(folder + "/attack.end"):
    time.sleep(0.05)
