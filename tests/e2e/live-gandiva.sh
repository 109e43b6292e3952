#!/bin/sh
# Turns of a live cluster: four trainings on two emulated GPUs under the policy gandiva are suspended and resumed by the GPU runtime again and again, and each computes
# what it computes alone.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 2 512M
prepare_training 150 10000
# all <words of python about jobs, what the cluster knows of the four>
all() {
	for j in $jobs; do "$SHAREWELL" show --json "$j"; done | python3 -c "
import json, sys
decoder, text, jobs = json.JSONDecoder(), sys.stdin.read().strip(), []
while text:
    job, end = decoder.raw_decode(text)
    jobs.append(job)
    text = text[end:].strip()
sys.exit(not (len(jobs) == 4 and ($1)))"
}

gpus=auto
up
works 'turns of a second' '' policy gandiva --set quantum=1s
jobs=''
for name in a b c d; do
	submit_here -J "$name" --preempt suspend --gpu-memory 100M -- "$scratch/repeat.sh" "$scratch" "$name"
	jobs="$jobs $job"
done
holds 'all four are suspended several times before any of them ends' until_holds 240 all 'min(j["preemptions"] for j in jobs) >= 4'
holds 'each has run for its share, more or less' all 'min(j["ran_s"] for j in jobs) * 3 >= max(j["ran_s"] for j in jobs) > 0'
holds 'and in one run' all 'max(j["restarts"] for j in jobs) == 0'
until_holds 60 sh -c '"$0" why "$1" | grep -q "takes turns of 1 s with others"' "$SHAREWELL" "$job"
said $? 'one that waits says that it takes turns'
holds 'each has computed something' until_holds 120 sh -c 'for name in a b c d; do grep -q hash "$0/$name" || exit 1; done' "$scratch"
touch "$scratch/a.end" "$scratch/b.end" "$scratch/c.end" "$scratch/d.end"
for j in $jobs; do
	ends "job $j ends well" "$j" 0
done
for name in a b c d; do
	[ "$(hash_of "$scratch/$name")" = "$(hash_of plain)" ] && [ "$(wc -l <"$scratch/$name.pids")" -eq 1 ]
	said $? "training $name computed in one process what it computes undisturbed, bit for bit" "$name"
done
end
