#!/bin/sh
# A node loses GPUs, and gets others, while its agent is away.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
cp "$gpus" "$scratch/gpus.yaml"
gpus=$scratch/gpus.yaml
has_gpus() { "$SHAREWELL" submit --test-only -- true | grep -q "the cluster has $1 GPU"; }
# refit <number>: so many GPUs are there when the agent is back; whether they are known.
refit() {
	sed -i "s/count: .*/count: $1/" "$gpus"
	kill -KILL "$(child agent)"
	until_holds 30 has_gpus "$1"
}
restarts() { "$SHAREWELL" show "$1" --json | grep -o '"restarts":[0-9]*'; }

up
submit -- sleep 600
small=$job
holds 'a job runs on the first GPU' until_holds 20 is_state "$small" R
submit -G 3 -- sleep 600
large=$job
holds 'and one on the others' until_holds 20 is_state "$large" R

holds 'a node that is back with fewer GPUs has fewer' refit 2
works 'also in the list of them' '' nodes --gpus --noheader
[ "$(wc -l <"$scratch/out")" -eq 2 ]
said $? 'one by one'
holds 'the job on those that are gone waits' until_holds 20 is_state "$large" PD
works 'and it is known for what' 'it needs 3 GPUs and only 2 are up' why "$large"
is_state "$small" R && [ "$(restarts "$small")" = '"restarts":0' ]
said $? 'the job on another goes on'

kill -KILL "$(child controller)"
holds 'a controller that comes back' until_holds 20 "$SHAREWELL" ps
holds 'knows of it' has_gpus 2

holds 'a node that is back with more has more' refit 5
holds 'and the job that waited runs' until_holds 20 is_state "$large" R
is_state "$small" R && [ "$(restarts "$small")" = '"restarts":0' ] && [ "$(restarts "$large")" = '"restarts":1' ]
said $? 'the one anew, the other as ever'
end
