#!/bin/sh
# One live agent for each name of a node: the second one hears why, and starts nothing.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up
socket=$(find "$SHAREWELL_STATE" "$scratch" -name '*.sock' | head -n 1)

second=''
start_second() {
	"$SHAREWELL" agent --controller "unix:$socket" --gpus "$gpus" --node here --state "$scratch/$1" >"$scratch/$1.out" 2>&1 &
	second=$!
}
end_second() { kill "$second" && wait "$second"; } 2>/dev/null
hears() { grep -qF -- "$2" "$scratch/$1.out"; }

submit -- sh -c 'echo x >>starts; exec sleep 600'
quiet=$job
holds 'a job runs' until_holds 20 is_state "$quiet" R
start_second other
holds 'a second agent of the same name hears why' until_holds 20 hears other "node 'here' has an agent already"
holds 'with what to do' hears other 'Give this agent another name with --node'
# What is submitted meanwhile is started once, by the first.
submit -- sh -c 'echo y >>starts'
ends 'a job that comes now' "$job" 0
holds 'started once' sh -c '[ "$(wc -l <starts)" -eq 2 ]'
holds 'the second has started nothing' sh -c '[ -z "$(ls "$0/other/runs")" ]' "$scratch"
holds 'the first job is as it was' is_state "$quiet" R
end_second

# The first is killed: started again in its folder it goes on at once; a stranger does not get its runs.
holds 'its agent is killed' kill -KILL "$(child agent)"
start_second stranger
has_agent() { [ -n "$(child agent)" ]; }
holds 'the agent is back' until_holds 60 has_agent
submit -- true
ends 'and works' "$job" 0
holds 'the job of before runs on' is_state "$quiet" R
holds 'it was started once' sh -c '[ "$(grep -c x starts)" -eq 1 ]'
holds 'the stranger has started nothing' sh -c '[ -z "$(ls "$0/stranger/runs" 2>/dev/null)" ]' "$scratch"
end_second
"$SHAREWELL" cancel "$quiet" >/dev/null

end
