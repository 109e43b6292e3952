#!/bin/sh
# From version 0.1 with jobs running: its supervisors kill their job at the end of a lease unless they are told otherwise, which `sharewell upgrade` and every agent of later versions do.
# SW_OLD_SHAREWELL=PATH: a program of version 0.1 (commit aaf6291), to go the whole way with; else a stand-in for its supervisors.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# old_run <folder> <seconds of its lease> <job>: a run of version 0.1 that has lost its agent; the command of the job writes on until it is killed.
old_run() {
	mkdir -p "$1/runs/$3.1"
	cat >"$1/runs/$3.1/spec.json" <<-END
		{"node": "here", "lease_boot_ns": 1, "job": $3, "epoch": 1, "want": "run", "gpus": [], "grace_ms": -1,
		 "spec": {"argv": ["sleep", "1000"], "workdir": "/", "uid": $(id -u), "gid": $(id -g)}}
	END
	OLD_LEASE_S=$2 python3 "$SW_SOURCE_DIR/tests/e2e/old_supervisor.py" "$1/runs/$3.1" sleep 1000 &
	supervisors="$supervisors $!"
	until_holds 30 test -e "$1/runs/$3.1/${4:-supervisor.sock}"
}
supervisors=''
trap 'for pid in $supervisors; do pkill -P "$pid"; kill "$pid"; done 2>/dev/null; finish' EXIT

refuses 2 'where nothing runs that is said' 'there are no runs' upgrade --state "$scratch/nowhere"
old_run "$scratch/told" 8 7
# One that has only just begun, and does not listen yet.
OLD_SILENT_S=1 old_run "$scratch/told" 8 8 status.json
old_run "$scratch/untold" 8 7
works 'supervisors of 0.1 are told' '2 jobs will go on while Sharewell is stopped' upgrade --state "$scratch/told"
old_run "$scratch/found" 20 7
# Its controller is not there, and never will be.
"$SHAREWELL" agent --controller "unix:$scratch/none.sock" --gpus none --node here --state "$scratch/found" >"$scratch/agent.log" 2>&1 &
agent=$!
holds 'a job that is not told is killed at the end of its lease' until_holds 60 grep -q '"reason": "lease"' "$scratch/untold/runs/7.1/exit.json"
sleep 20
holds 'a job that is told goes on' sh -c '! ls "$0"/told/runs/*/exit.json' "$scratch"
holds 'and so does one that an agent of this version finds, without a word from a controller' sh -c '! ls "$0"/found/runs/*/exit.json' "$scratch"
kill "$agent"
wait "$agent" 2>/dev/null

[ -n "${SW_OLD_SHAREWELL:-}" ] || end
# The whole way: jobs of 0.1 run, the old program is stopped, and the new one comes much later.
new=$SHAREWELL
SHAREWELL=$SW_OLD_SHAREWELL
up
submit -- sh -c 'echo $$ >>"$0/starts"; until [ -e "$0/end" ]; do sleep 0.1; done; exit 5' "$scratch"
holds 'a job of 0.1 runs' until_holds 30 is_state "$job" R
SHAREWELL=$new
works 'it may go on' '1 job will go on' upgrade
kill "$up_pid"
wait "$up_pid" 2>/dev/null
sleep "${SW_OLD_AWAY_S:-45}"
up
holds 'the new program finds it' until_holds 60 is_state "$job" R
works 'in its first run' '1, restarts 0' show "$job"
# And it is stopped once more, as any job.
kill "$up_pid"
wait "$up_pid" 2>/dev/null
sleep "${SW_OLD_AWAY_S:-45}"
up
: >"$scratch/end"
ends 'its exit code arrives' "$job" 5
holds 'it ran once' sh -c '[ "$(wc -l <"$0/starts")" -eq 1 ]' "$scratch"
end
