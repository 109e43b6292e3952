#!/bin/sh
# `sharewell profile --counters`: a second run under what stands for Nsight Compute gives what a program uses of the GPU; every way in which that can fail is told, and costs nothing else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
# is <name> <words of python about m, its medians, and r, its last run>
is() { "$SHAREWELL" profile --show "$1" --json | python3 -c "import json, sys; p = json.load(sys.stdin); m, r = p['profile'], p['runs'][-1]; sys.exit(not ($2))"; }

refuses 2 'counters go with a command' 'go with a command' profile --list --counters
refuses 2 'patience goes with counters' 'goes with --counters' profile --patience 5 -- true
if ! command -v ncu >/dev/null && [ ! -e /usr/local/cuda/bin/ncu ]; then
	refuses 2 'no Nsight Compute is said before the program runs' "there is no 'ncu' in PATH" profile --counters -- touch started
fi

# It notes how it was called, and does what $scratch/does says. Else it prints two kernels, of which the longer uses 10 % of everything and the other, a quarter as long, 60 %: 20 % in all.
mkdir "$scratch/bin"
cat >"$scratch/bin/ncu" <<'END'
#!/bin/sh
here=$(dirname "$0")/..
echo "$@" >"$here/called"
metrics=$(echo "$@" | tr ' ' '\n' | grep gpu__time_duration.sum | tr , ' ')
while [ "$1" != --log-file ]; do shift; done
log=$2
[ ! -e "$here/does" ] || . "$here/does"
kernel() {
	for metric in $metrics; do
		unit=% value=$3
		[ "$metric" != gpu__time_duration.sum ] || unit=usecond value=$2
		printf '"%s","4711","python3","127.0.0.1","void f<(int)4, float>(T1 *, T2)","1","7","(128, 1, 1)","(64, 1, 1)","0","9.0","Command line profiler metrics","%s","%s","%s"\n' "$1" "$metric" "$unit" "$value"
	done
}
{
	echo '==PROF== Connected to process 4711 (/usr/bin/python3)'
	echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
	kernel 0 80.00 10.00
	kernel 1 20.00 60.00
	echo '==PROF== Disconnected from process 4711'
} >"$log"
END
chmod +x "$scratch/bin/ncu"
PATH=$scratch/bin:$PATH
compile train examples/gpu/train.c
emulate 1 512M

# profile <options...>: of a training; again where it was over before it could be measured how busy the GPU is.
profile() {
	for attempt in 1 2 3 4 5 6 7 8 9 10; do
		run profile --name training "$@" -- "$scratch/train" --steps 300 --memory 12M --step-us 6000
		err_has 'without how busy the GPU is' || break
	done
}
profile --counters
[ "$status" -eq 0 ] && out_has 'by its counters     SM ' && ! out_has 'not measured        SM'
said $? 'counters are read in a second run, and shown'
holds '  as parts of all the time: of that in which kernels run, times busy' is training \
	"all(abs(r[part + '_milli'] - r['busy_milli'] / 5) <= 1 for part in ('sm', 'mem_pipe', 'l2', 'dram_read', 'dram_write'))"
holds '  of a bounded window of the same program, with clocks and caches left alone' \
	grep -Eq -- '--clock-control none --cache-control none --launch-skip [1-9][0-9]* --launch-count [1-9][0-9]* --kill yes .*/train --steps 300' "$scratch/called"
holds '  and no file is left' sh -c '! ls "$SHAREWELL_STATE" | grep counters-'
profile
holds 'a run without them leaves them as they are' is training "m['sm_milli'] and r['sm_milli'] is None"
run profile --show training
out_has 'by its counters     SM '
said $? '  and they are still shown'
profile --counters --json
holds 'as JSON' python3 -c "import json; assert json.load(open('$scratch/out'))['measured']['sm_milli'] > 0"

# uncounted <aim> <text on standard error> <what it does>: fails, and what else was measured is kept.
uncounted() {
	aim=$1 text=$2
	echo "$3" >"$scratch/does"
	"$SHAREWELL" profile --remove training
	profile --counters
	[ "$status" -ne 0 ] && err_has "$text" && is training "m['busy_milli'] and m['sm_milli'] is None"
	said $? "$aim"
}
uncounted 'it is not permitted' 'An administrator may' 'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" >"$log"; exit 1'
uncounted 'no kernel was seen' 'has measured no kernel' 'echo "==WARNING== No kernels were profiled." >"$log"; exit 0'
uncounted 'it says why it cannot' 'it says: Failed to profile' 'echo "==ERROR== Failed to profile f in process 1" >"$log"; exit 9'
uncounted 'it says nothing' 'it wrote nothing, and ended with status 3' 'exit 3'
cat >"$scratch/garbage" <<'END'
"ID","Metric Name","Metric Unit","Metric Value"
"0","sm__throughput.avg.pct_of_peak_sustained_elapsed","%","many"
END
uncounted 'it says what cannot be read' "is 'many' in '%'" 'cp "$here/garbage" "$log"; exit 0'
echo 'sleep 1000' >"$scratch/does"
profile --counters --patience 2
[ "$status" -ne 0 ] && err_has 'did not come to an end within 2 s' && ! err_has 'sleep'
said $? 'one that does not end is ended'
# The program's own seconds are over long before.
echo 'sleep 6' >"$scratch/does"
profile --counters --seconds 4
[ "$status" -eq 0 ] && out_has 'by its counters     SM '
said $? 'one that takes longer than the program may is not'
rm "$scratch/does" "$scratch/called"
run profile --name idle --counters -- true
[ "$status" -ne 0 ] && err_has 'without how busy the GPU is' && is idle "m['wall_ns'] > 0" && [ ! -e "$scratch/called" ]
said $? 'of a program that launches nothing there are none'
end
