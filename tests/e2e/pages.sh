#!/bin/sh
# What README.md, docs/decisions.md and docs/policies.md show is what the program does.
# Usage: pages.sh [--update]   (--update writes what the program prints into the pages)
set -u
: "${SW_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}" "${SHAREWELL:=$SW_SOURCE_DIR/build/release/sharewell}"
export SW_SOURCE_DIR SHAREWELL
here=$SW_SOURCE_DIR/tests/e2e
status=0

python3 "$here/page.py" "$@" "$SW_SOURCE_DIR/README.md" "$SW_SOURCE_DIR/docs/decisions.md" || status=1
python3 "$here/tables.py" "$@" "$SW_SOURCE_DIR/docs/policies.md" || status=1

# The published numbers in README.md: its own commands, on the traces where they are.
shared=${SHAREWELL_SHARED:-$SW_SOURCE_DIR/../shared}
published() {
	aim="README.md: the published numbers of $1"
	trace=$shared/traces/$2
	[ -e "$trace" ] || { echo "ok - $aim # SKIP there is no $2 in SHAREWELL_SHARED or ../shared"; return; }
	arguments=$(sed -n "s|^sharewell sim \(.*\) --trace [^ ]*$3 --policy \(.*\)|\1 --policy \2|p" "$SW_SOURCE_DIR/README.md")
	# The arguments are words.
	# shellcheck disable=SC2086
	rows=$("$SHAREWELL" sim $arguments --trace "$trace" --json | python3 -c '
import json, sys
results = [json.loads(line) for line in sys.stdin]
print(" | ".join(sys.argv[1] % result["jct_avg_s"] for result in results))' "$4")
	count=$(grep -cF "$rows |" "$SW_SOURCE_DIR/README.md")
	if [ -n "$rows" ] && [ "$count" -eq 2 ]; then
		echo "ok - $aim"
	else
		printf 'not ok - %s\n# the program says %s, and %s rows of the table do\n' "$aim" "$rows" "$count"
		status=1
	fi
}
published Tiresias tiresias/60_job.csv 60_job.csv %.2f
published Muri muri/trace3.csv.xz trace3.csv %.3f
exit "$status"
