# A live cluster of emulated GPUs for the scripts that need one. Sourced after lib.sh: `up` starts it, and it is gone when the script ends.
unset SHAREWELL_CONTROLLER SHAREWELL_TOKEN XDG_STATE_HOME XDG_RUNTIME_DIR
export SHAREWELL_STATE="$scratch/state"
gpus="$SW_SOURCE_DIR/examples/gpus.yaml"
up_pid=''

finish() {
	"$SHAREWELL" ps --noheader 2>/dev/null | while read -r job _; do
		"$SHAREWELL" cancel "$job" 2>/dev/null
	done
	[ -z "$up_pid" ] || { kill "$up_pid" && wait "$up_pid"; } 2>/dev/null
	# What a failed test left behind must not outlive it.
	for file in "$scratch"/state/runs/*/pid; do
		[ ! -f "$file" ] || kill -KILL "$(head -c 20 "$file" | tr -cd '0-9 \n' | cut -d' ' -f1)" 2>/dev/null
	done
	rm -rf "$scratch"
}
trap finish EXIT

# The controllers that `up` started derived their whole state anew after every record.
end() {
	[ ! -f "$scratch/up.out" ] || holds 'the state was sound all the time' sh -c '! cat "$0"/up.* | grep "THE STATE IS NOT SOUND"' "$scratch"
	echo "1..$count"
	exit "$failed"
}

# until_holds <seconds> <command...>: tries again and again. A machine that is too busy for twenty tries a second has more time, but not without end; once something has failed, what
# follows from it gets a moment only, so that the script comes to its end.
until_holds() {
	tries=$((failed == 0 ? $1 * 20 : 10)) patience=$(($(date +%s) + $1 * 5))
	shift
	while ! "$@" >/dev/null 2>&1; do
		tries=$((tries - 1))
		[ "$tries" -gt 0 ] && [ "$(date +%s)" -lt "$patience" ] || return 1
		sleep 0.05
	done
}

# up [options]: controller and agent under $world, ready when this returns.
world=$SW_SOURCE_DIR/tests/e2e/quick.yaml
up() {
	[ ! -f "$scratch/up.out" ] || cat "$scratch/up.out" >>"$scratch/up.before"
	"$SHAREWELL" up --gpus "$gpus" --port 0 --node here --world "$world" --validate-every 1 "$@" >"$scratch/up.out" 2>&1 &
	up_pid=$!
	until_holds 30 sh -c '"$0" nodes --noheader | grep -q "^here "' "$SHAREWELL" || {
		cat "$scratch/up.out"
		echo 'Bail out! the cluster does not start'
		exit 1
	}
}

# interruptible <command...>: a shell ignores SIGINT for what it starts in the background; this does not.
interruptible() {
	exec python3 -c 'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])' "$@"
}

# todo <aim> <command...>: what does not work yet, and is told without failing.
todo() {
	aim=$1
	shift
	count=$((count + 1))
	if "$@" >/dev/null 2>&1; then
		echo "ok $count - $aim"
	else
		echo "not ok $count - $aim # TODO"
	fi
}

# child <controller|agent>: its process id.
child() { pgrep -P "$up_pid" -f "sharewell $1" | head -n 1; }

# submit <options...>: the number of the new job is $job.
submit() { job=$(timeout 60 "$SHAREWELL" submit --parsable "$@"); }

state_of() { timeout 60 "$SHAREWELL" ps --noheader -j "$1" | awk '{print $5}'; }
is_state() { [ "$(state_of "$1")" = "$2" ]; }

# folder <job>: of its last run.
folder() { ls -d "$SHAREWELL_STATE/runs/$1".* | tail -n 1; }
# told <job> <text>: what its supervisor says of it.
told() { grep -qF -- "$2" "$(folder "$1")"/status.json; }

# ends <aim> <job> <exit status of wait>
ends() {
	run wait "$2"
	[ "$status" -eq "$3" ]
	said $? "$1"
}
