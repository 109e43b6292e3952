#!/bin/sh
# Journals that a controller of an earlier version (commit a1b8f34a) wrote, killed once and stopped in good order once (old/make): this one knows all their jobs, and goes on with them.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

# differs <said>: jobs that are other than that controller said. Those that ran or waited may have gone on.
cat >"$scratch/differs.py" <<'END'
import json, sys
said, now = (({job["id"]: job for job in json.load(open(path))["jobs"]}) for path in sys.argv[1:3])
same = ("name", "user", "tenant", "gpus", "class", "submitted_at")
if_over = ("state", "ended_at", "started_at", "ran_s", "code", "node")
for number, job in said.items():
    keys = same + (if_over if job["ended_at"] is not None else ())
    other = [key for key in keys if key not in now.get(number, {}) or now[number][key] != job[key]]
    if other:
        print(number, [(key, job[key], now.get(number, {}).get(key)) for key in other])
print(len(said), "jobs were said")
END
same_jobs() {
	"$SHAREWELL" ps -a --json >"$scratch/now.json" && python3 "$scratch/differs.py" "$scratch/old/$1/said.json" "$scratch/now.json" >"$scratch/differs" && grep -qx '64 jobs were said' "$scratch/differs" &&
		[ "$(wc -l <"$scratch/differs")" -eq 1 ]
}

mkdir "$scratch/old"
for how in killed stopped; do
	tar -C "$scratch/old" -xJf "$SW_SOURCE_DIR/tests/e2e/old/$how.tar.xz"
	rm -rf "$SHAREWELL_STATE"
	mkdir -m 700 "$SHAREWELL_STATE"
	cp "$scratch/old/$how"/journal.db* "$SHAREWELL_STATE"
	works "the journal of one that was $how is whole" '' journal check
	# Without an agent, so that nothing happens yet.
	"$SHAREWELL" controller --state "$SHAREWELL_STATE" --port none >"$scratch/controller.out" 2>&1 &
	controller=$!
	holds 'it is opened' until_holds 60 "$SHAREWELL" ps
	same_jobs "$how"
	said $? 'all of its jobs are known, and those that have ended as they ended' differs controller.out
	kill "$controller"
	wait "$controller"

	# Only root may run jobs of root.
	[ "$(id -u)" -eq 0 ] || continue
	up --node there --unreachable-after 2s
	holds 'its node does not answer' until_holds 60 sh -c '"$0" nodes --noheader | grep "^here " | grep -q unreachable' "$SHAREWELL"
	run nodes remove here
	[ "$status" -eq 0 ] && out_has 'here is removed'
	said $? 'and is given up'
	for lost in 46 47 48; do
		holds 'a job that ran there is lost' until_holds 60 is_state "$lost" NF
	done
	holds 'one that needed it to end well never runs' until_holds 60 is_state 50 CA
	holds 'the array goes on' until_holds 60 is_state 55 R
	works 'it can be cancelled' '' cancel 54-61
	works 'what was held goes on' '' resume 49
	ends 'and finds its large environment' 49 0
	ends 'a job of all GPUs runs' 62 0
	ends 'and one with a pre-run' 64 0
	submit -- true
	said $((job != 65)) 'a new job has the next number' out err
	ends 'and ends' "$job" 0
	"$SHAREWELL" down >/dev/null
	wait "$up_pid"
done
end
