#!/bin/sh
# `sharewell profile`: measures programs with and without a GPU, keeps what it measured, and loses nothing of it; others find it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
store=$SHAREWELL_STATE/profiles.yaml
# is <name> <words of python about p, the profile, m, its medians, and r, its last run>
is() { "$SHAREWELL" profile --show "$1" --json | python3 -c "import json, sys; p = json.load(sys.stdin); m, r = p['profile'], p['runs'][-1]; sys.exit(not ($2))"; }

# Without a driver: what the host gave, and what is missing is said.
works 'nothing was measured yet' 'NAME' profile --list
works 'without a driver the program runs all the same' 'not measured        SM, L2 and DRAM use (no counters), GPU memory, its floor, iteration time, busy time and copies: cannot find the NVIDIA GPUs' \
	profile -- sh -c 'exit 0'
holds 'and what the host gave is kept' is sh "p['samples'] == 1 and m['wall_ns'] > 0 and m['host_memory_bytes'] > 0 and m['busy_milli'] is None and m['gpu_memory_peak_bytes'] is None"
printf 'echo here >"$1"\n' >task.sh
works 'a script gives its name' 'task: the figures of 1 run' profile -- sh ./task.sh one
works 'and the same command its runs' 'task: the medians of 2 runs' profile -- sh ./task.sh one
works 'another command is another profile' 'task-2: the figures of 1 run' profile -- sh ./task.sh two
works 'unless it is given a name' 'task: the medians of 3 runs' profile --name task -- sh ./task.sh two
holds 'the program ran' grep -q here two
run profile -- sh -c 'exit 7'
[ "$status" -eq 7 ] && err_has 'status 7: nothing was stored'
said $? 'of a program that failed nothing is kept, and its status is passed on'
run profile -- "$scratch/there-is-none"
[ "$status" -eq 127 ] && err_has 'cannot run'
said $? 'nor of one that is not there'
run profile --json -- sh -c 'echo noise'
python3 -c "import json; p = json.load(open('$scratch/out')); assert 'libnvidia-ml' in p['not_measured_because'] and p['measured']['wall_ns'] > 0" && err_has noise
said $? 'as JSON, with what the program prints out of the way'
"$SHAREWELL" profile --seconds 1 --name endless -- sh -c 'while :; do sleep 0.05; done' >long 2>long.err
[ $? -eq 0 ] && is endless "m['wall_ns'] >= 1000000000"
said $? 'a program without an end is ended after its time, and kept' long long.err
for n in 1 2 3 4; do "$SHAREWELL" profile --name together -- true >/dev/null 2>&1 & done
wait
holds 'of several at once no run is lost' is together "p['samples'] == 4"

# Bad input.
refuses 2 'nothing to do' 'there is nothing to measure' profile
refuses 2 'two things at once' 'these do not go together' profile --list -- true
refuses 2 'a name without a command' 'go with a command' profile --list --name x
refuses 2 'a name that cannot be' 'a profile cannot be called' profile --name "$(printf 'a\nb')" -- touch started
refuses 2 'one that is not there' "there is no measured profile 'absent'" profile --show absent
refuses 2 'nor to be forgotten' "there is no measured profile 'absent'" profile --remove absent
refuses 2 'nor where nothing ever was' "there is no measured profile 'absent'" profile --remove absent --state "$scratch/nowhere"
works 'one that is there is forgotten' '' profile --remove endless
refuses 2 'and gone' "there is no measured profile 'endless'" profile --show endless
cp "$store" kept
for line in 'busy: nan' 'busy: 1.5' 'peak: -1' 'floor: 2G, peak: 1G' 'iteration_time: 5s'; do
	printf 'profiles:\n  - name: a\n    runs:\n      - {wall: 1s, %s}\n' "$line" >"$store"
	cp "$store" broken
	refuses 2 "a store with '$line' is refused" 'line 4' profile -- touch started
	refuses 2 '  by commands that read it, too' 'line 4' contention a b
	holds '  and left as it is' cmp -s broken "$store"
done
printf 'profiles:\n  - name: a\n    runs:\n      - {busy: 0.5}\n' >"$store"
refuses 2 'a run without its time' "wall" profile --list
printf 'garbage' >"$store"
refuses 2 'a store that is none' 'Correct that line, or move the file away' profile -- touch started
holds 'no program was started for nothing' test ! -e started
cp kept "$store"

# On a GPU.
compile train examples/gpu/train.c
emulate 1 512M
train() { "$SHAREWELL" profile --name gpu-train -- "$scratch/train" --steps 300 --memory 12M --step-us 6000 >"$scratch/out" 2>"$scratch/err"; }
# A short program on a busy machine may be over before a window is: then the next run is.
measured() { train && is gpu-train "r['busy_milli'] is not None and r['iteration_ns'] is not None"; }
until_holds 120 measured
said $? 'on a GPU, iterations and busy time are measured'
holds 'an iteration is as long as its kernels' is gpu-train "r['iteration_ns'] >= 6000000 and 0 < r['busy_milli'] <= 1000"
holds 'and memory is what the program holds' is gpu-train "r['gpu_memory_peak_bytes'] == 30 << 20 and 0 < r['gpu_memory_floor_bytes'] <= 30 << 20"
holds 'the share that it ran in is gone' sh -c '! ls "$SHAREWELL_STATE"/shares | grep .'

# Found by jobs that are submitted: by name, by command, and what they say themselves stays.
up
# asked <job> <words of python about a, what it asked for>
asked() { "$SHAREWELL" show --json "$1" | python3 -c "import json, sys; a = json.load(sys.stdin)['request']; sys.exit(not ($2))"; }
submit -J gpu-train -- true
holds 'a job finds its profile by its name' asked "$job" "a['model'] == 'gpu-train' and float(a['gpu_use']) > 0 and 'gpu_memory' not in a"
submit -- "$scratch/train" --steps 300 --memory 12M --step-us 6000
holds 'and by its command' asked "$job" "a['model'] == 'gpu-train'"
submit --wrap "$scratch/train --steps 300 --memory 12M --step-us 6000"
holds 'also by a line for the shell' asked "$job" "a['model'] == 'gpu-train'"
submit -J gpu-train --model GPU-train -- true
holds 'a job that names it has its memory from it, and an eighth more' asked "$job" "a['gpu_memory'] == (30 << 20) * 9 // 8"
submit -J gpu-train --model gpu-train --gpu-memory 100M -- true
holds 'unless it says so itself' asked "$job" "a['gpu_memory'] == 100 << 20"
submit -J gpu-train --model resnet50 -- true
holds 'and the profile that it names stays' asked "$job" "a['model'] == 'resnet50' and a['gpu_use'] == '0.54'"
submit -J not-known -- echo none
holds 'a job that was not measured has none' asked "$job" "'model' not in a and 'gpu_use' not in a"
cp "$store" kept
echo garbage >"$store"
submit -J gpu-train -- true
holds 'a file that cannot be read changes nothing' asked "$job" "a['model'] == 'gpu-train'"
holds 'and the operator is told' grep -q 'the profiles read before stay' "$scratch/up.out"
cp kept "$store"
works 'and a new one counts at once' '' profile --remove gpu-train
submit -J gpu-train -- echo none
holds '  for those that are to come' asked "$job" "'model' not in a"
cp kept "$store"

run submit --model resnt50 -- true
[ "$status" -eq 0 ] && err_has "there is no profile of the model 'resnt50': did you mean 'resnet50'?"
said $? 'a model that is not known is said, with the nearest one, and the job is taken'
works 'one that is known is not' 'Submitted' submit --model ResNet-50 -- true

# What was measured reaches the policy: a job of a model that is known to idle goes beside another one; where that is not known, it waits. Each asks for all GPUs.
cancel_all() {
	"$SHAREWELL" ps --noheader | while read -r one _; do "$SHAREWELL" cancel "$one" >"$scratch/out" 2>&1; done
	until_holds 120 sh -c '[ -z "$("$0" ps --noheader)" ]' "$SHAREWELL"
}
says() { "$SHAREWELL" why "$1" | grep -q "$2"; }
# two <name>: jobs of that name, one after the other.
two() {
	cancel_all
	submit -J "$1" --gpus "$all" --gpu-memory 1G -- tail -f /dev/null
	first=$job
	until_holds 120 is_state "$first" R
	submit -J "$1" --gpus "$all" --gpu-memory 1G -- tail -f /dev/null
}
all=$("$SHAREWELL" nodes --json | python3 -c 'import json, sys; print(sum(node["gpus"] for node in json.load(sys.stdin)["nodes"]))')
printf '  - name: "idles"\n    runs:\n      - {wall: 9s, busy: 0.1, floor: 1G, peak: 1G}\n' >>"$store"
two idles
until_holds 120 says "$job" "shares .* with job $first: predicted 1\\.0"
said $? 'policies pack a model by what its user measured'
# waits_unknown <aim>: the policy has looked at the job, and did not put it beside the other one.
waits_unknown() { holds "$1" until_holds 120 says "$job" '(PD): .* it has no profile yet: it shares a GPU only after'; }
two not-known
waits_unknown 'and do not, where no user did'
works 'what was measured is forgotten' '' profile --remove idles
two idles
waits_unknown '  by policies, too'
cancel_all

# Found by others.
works 'contention finds it by name' 'a profile that was measured here' contention gpu-train resnet50
works 'and by its command' 'a profile that was measured here' contention "$scratch/train --steps 300 --memory 12M --step-us 6000" resnet50
refuses 2 'contention: a file that is not there' 'no.yaml' contention a b --profiles no.yaml
printf 'job_id,submit_s,duration_s,gpus,model\n1,0,100,1,gpu-train\n2,0,100,1,resnet50\n' >jobs.csv
works 'a simulation takes it where it is told to' '"finished": 2' sim --json --trace jobs.csv --cluster 1x1 --policy fifo --profiles "$store"
refuses 2 'sim: a file that is not there' 'no.yaml' sim --trace jobs.csv --cluster 1x1 --policy fifo --profiles no.yaml
end
