#!/bin/sh
# Ctrl-C ends long work soon, with the status that shells know, and leaves no file behind.
. "$(dirname "$0")/lib.sh"
"$SHAREWELL" trace generate jobs.csv --jobs 20000 --gpus 32 --load 3 || exit 1

# Sends a signal once the program says that it is at work (its progress bar, or its temporary file), and tells how it ended. Shells ignore SIGINT in the background,
# and so does what they start: the script itself may have been.
cat >"$scratch/interrupt.py" <<'END'
import os, signal, subprocess, sys, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
number, sign, command = getattr(signal, sys.argv[1]), sys.argv[2], sys.argv[3:]
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
os.set_blocking(process.stderr.fileno(), False)
said = b""
deadline = time.monotonic() + 120
while process.poll() is None and time.monotonic() < deadline:
    said += process.stderr.read() or b""
    if (b"jobs" in said) if sign == "bar" else any(name.endswith(".tmp") for name in os.listdir(".")):
        process.send_signal(number)
        break
    time.sleep(0.002)
process.wait(120)
said += process.stderr.read() or b""
sys.stderr.write(said.decode(errors="replace").split("\r")[-1])
print("status", process.returncode)
END
# interrupted <signal> <status> <sign> <aim> <arguments...>
interrupted() {
	signal=$1 wanted=$2 sign=$3 aim=$4
	shift 4
	ls -A >"$scratch/before"
	python3 "$scratch/interrupt.py" "$signal" "$sign" "$SHAREWELL" "$@" >"$scratch/out" 2>"$scratch/err"
	ls -A >"$scratch/after"
	out_has "status $wanted" && err_has 'sharewell: interrupted' && cmp -s "$scratch/before" "$scratch/after"
	said $? "$aim"
}
set -- sim --trace jobs.csv --cluster 4x8 --policy all --validate --progress=always --report report.html --jobs-out out.csv
interrupted SIGINT 130 bar 'Ctrl-C in a simulation' "$@"
interrupted SIGTERM 143 bar 'the same when it is asked to terminate' "$@"
interrupted SIGINT 130 file 'Ctrl-C while a trace is written' trace generate big.csv.xz --jobs 400000
end
