#!/usr/bin/env python3
"""Attacks a live cluster on this machine. Usage: attacks.py [--full] [--list] [--only WORD...]

The attacks are in the files of their kind: network.py (a client without a token), users.py (another user on the socket), jobs.py (a job of another user), agents.py (the token of an agent). They
are sent over loopback and are bounded in number and time. After each one: the innocent user's jobs run in their first epoch and count on; a submit is answered, all that was
acknowledged is listed; controller and agent are the processes that they were; the controller's memory is within a bound. At the end the controller is killed, and the next one knows it all.

Without --full the attacks are small, as `make test` has them, and times are printed only. With it they have their full size, and a loop that was held for over 100 ms has failed.
Prints TAP, then a table. Needs root, to be several users; exits with 77 where it cannot be.
"""
import os
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import arena as place
import network, users, jobs, agents  # noqa: F401 E402, I001: they fill the table, in this order
import wire

HOLD_MS = 100
RSS_MB = 300
RSS_CHECKED_MB = 1500  # with sanitizers


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(77)


def needs():
    if os.getuid() != 0:
        skip("needs root, to be several users")
    if shutil.which("python3", path=place.PATH) is None:
        skip("needs python3 where every user can run it")
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(1_000_000_000)
            os.setuid(1_000_000_000)
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        skip("cannot become another user here")


def run_one(arena, function):
    """Outcome, what it broke or None, and the figures."""
    before = arena.figures()
    fault, outcome, answered = None, "", 0.0
    try:
        outcome = function(arena)
        answered = arena.innocent_goes_on()
        arena.same_processes()
    except place.Broken as error:
        fault = str(error)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        fault = f"{type(error).__name__}: {error}"
    after = clean_up(arena)
    if fault is None and after is None:
        fault = "nothing answers when it is over"
    return outcome, fault, before, after or before, answered


def clean_up(arena):
    """What the attack holds is let go, so that the next one finds the cluster as this one did."""
    arena.drop()
    try:
        arena.cancel_all(arena.mallory, by=0)
        wire.wait_until(lambda: not arena.active(arena.mallory, by=0), 20)
        arena.end_processes(arena.mallory)
        return arena.figures()
    except (place.Broken, OSError):
        return None


def chosen():
    words = sys.argv[sys.argv.index("--only") + 1 :] if "--only" in sys.argv else []
    return [row for row in place.ATTACKS if not words or any(word in f"{row[0]}/{row[1]}" for word in words)]


def main():
    if "--list" in sys.argv:
        for kind, name, aim, _ in place.ATTACKS:
            print(f"{kind}/{name}: {aim}")
        return 0
    needs()
    # What ends this early does not leave the cluster behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    full = "--full" in sys.argv
    arena = place.Arena(os.environ["SHAREWELL"], full)
    bound = RSS_CHECKED_MB if arena.checked else RSS_MB
    rows, failed, held = [], 0, 0
    began = time.monotonic()
    try:
        arena.start()
        for number, (kind, name, aim, function) in enumerate(chosen(), 1):
            at = time.monotonic()
            outcome, fault, before, after, answered = run_one(arena, function)
            ms, hold = arena.hold(before, after)
            rss = after["rss"].get("controller", 0)
            if fault is None and rss > bound:
                fault = f"the controller has {rss:.0f} MB, over {bound}"
            if ms > HOLD_MS:
                held += 1
                print(f"# THE LOOP WAS HELD FOR {ms:.0f} ms")
                if fault is None and full:
                    fault = f"the loop was held for {ms:.0f} ms"
            failed += fault is not None
            print(f"{'ok' if fault is None else 'not ok'} {number} - {kind}/{name}: {aim}", flush=True)
            print(f"# {outcome}; loop {hold}, controller {rss:.0f} MB, agent {after['rss'].get('agent', 0):.0f} MB, journal {after['disk']:.1f} MB, submit {answered * 1000:.0f} ms,"
                  f" {time.monotonic() - at:.1f} s" + (f"\n# FAULT: {fault}" if fault else ""), flush=True)
            rows.append((f"{kind}/{name}", fault or outcome, hold, f"{rss:.0f} MB"))
        fault = None
        try:
            arena.restart()
            arena.innocent_goes_on()
        except (place.Broken, OSError) as error:
            fault = str(error)
        failed += fault is not None
        print(f"{'ok' if fault is None else 'not ok'} {len(rows) + 1} - the controller is killed, and the next one has all {len(arena.acknowledged)} jobs" + (f"\n# FAULT: {fault}" if fault else ""))
        print(f"1..{len(rows) + 1}")
        if failed:
            print("".join(f"# up: {line}\n" for line in arena.said().splitlines()[-40:]))
    finally:
        arena.stop()
    if full:
        print_table(rows)
    print(f"# {len(rows)} attacks in {time.monotonic() - began:.0f} s, {failed} failed, {held} held the loop for over {HOLD_MS} ms")
    return 1 if failed else 0


def print_table(rows):
    print("\n| attack | outcome | longest hold of the loop | controller |\n|---|---|---|---|")
    for name, outcome, hold, rss in rows:
        print(f"| {name} | {outcome[:110].replace('|', '/')} | {hold} | {rss} |")


sys.exit(main())
