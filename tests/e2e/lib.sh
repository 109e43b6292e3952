# What the scripts around the program share. Sourced: gives a scratch folder as the present one, $SHAREWELL, and the checks below.
set -u
: "${SW_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
: "${SHAREWELL:=$SW_SOURCE_DIR/build/release/sharewell}"
export LC_ALL=C.UTF-8
unset NO_COLOR COLUMNS
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Not the machine's: scripts run side by side.
export SHAREWELL_HOST_LEDGER="$scratch/host-ledger"
mkdir "$scratch/work" && cd "$scratch/work" || exit 1
count=0
failed=0

# said <outcome 0|1> <aim> [<files>]: one line of the protocol, with what the program printed where it failed.
said() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
		return
	fi
	echo "not ok $count - $2"
	sed 's/^/# out: /' "$scratch/${3:-out}" | head -n 20
	sed 's/^/# err: /' "$scratch/${4:-err}" | head -n 20
	failed=1
}

# run <arguments...>: the program; its exit status is $status, its output lies in $scratch/out and $scratch/err. It has little time once something has failed.
run() {
	timeout $((failed == 0 ? 300 : 20)) "$SHAREWELL" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}
out_has() { [ -z "$1" ] || grep -qF -- "$1" "$scratch/out"; }
err_has() { grep -qF -- "$1" "$scratch/err"; }

# works <aim> <text on standard output> <arguments...>: ends well, and says nothing on standard error.
works() {
	aim=$1 text=$2
	shift 2
	run "$@"
	[ "$status" -eq 0 ] && out_has "$text" && [ ! -s "$scratch/err" ]
	said $? "$aim"
}

# refuses <status> <aim> <text on standard error> <arguments...>: fails with that status and that text, prints no result, and leaves no file behind.
refuses() {
	wanted=$1 aim=$2 text=$3
	shift 3
	ls -A >"$scratch/before"
	run "$@"
	ls -A >"$scratch/after"
	[ "$status" -eq "$wanted" ] && err_has "$text" && head -n 1 "$scratch/err" | grep -q '^sharewell: ' && [ ! -s "$scratch/out" ] &&
		cmp -s "$scratch/before" "$scratch/after"
	said $? "$aim"
}

# holds <aim> <command...>: the command succeeds.
holds() {
	aim=$1
	shift
	"$@" >"$scratch/held.out" 2>"$scratch/held.err"
	said $? "$aim" held.out held.err
}

end() {
	echo "1..$count"
	exit "$failed"
}
