#!/bin/sh
# The journal does not grow for ever: the controller takes a snapshot every 10,000 records, is killed, and comes back with every job from the last one and what came after.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

journal="$SHAREWELL_STATE/journal.db"
# figure <name>: one of the controller's.
figure() {
	python3 - "$SHAREWELL_STATE/controller.sock" "$1" <<-'END'
		import socket, sys
		with socket.socket(socket.AF_UNIX) as s:
		    s.connect(sys.argv[1])
		    s.sendall(b"GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n")
		    text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
		print(*[int(float(line.split()[1])) for line in text.splitlines() if line.startswith(sys.argv[2] + " ")])
	END
}
has_snapshots() { [ "$(figure sharewell_snapshots_total)" -ge "$1" ]; }
# asked <SQL>: of the journal, while no process holds it.
asked() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$journal" "$1"; }
# many <times>: 3,500 jobs each.
many() {
	for _ in $(seq "$1"); do
		timeout 120 "$SHAREWELL" submit --parsable --hold --array 1-3500 -- true || return 1
	done
}
is_held() { is_state "$1" PD && "$SHAREWELL" why "$1" | grep -q 'on hold'; }

up --keep-events 1000
submit -- sh -c 'sleep 600; exit 5'
running=$job
submit --dependency "afterok:$running" -- true
waiting=$job
holds 'a job runs' until_holds 20 is_state "$running" R
holds 'ten thousand jobs are taken' many 3
holds 'and a snapshot with them' until_holds 60 has_snapshots 1
submit --hold -- true
last=$job

kill -KILL "$(child controller)"
holds 'the killed controller comes back' until_holds 20 "$SHAREWELL" ps --jobs "$last"
holds 'with the job that runs' is_state "$running" R
holds 'and the one that waits for it' sh -c '"$0" why "$1" | grep -q "waits for job $2 "' "$SHAREWELL" "$waiting" "$running"
holds 'and the first of the many' is_held $((waiting + 1))
holds 'and the last one before it was killed' is_held "$last"
[ "$(figure sharewell_snapshot_seq)" -ge 10000 ]
said $? 'it began with the snapshot'
submit --hold -- true
[ "$job" -eq $((last + 1)) ]
said $? 'jobs go on being numbered'

run cancel "$running"
holds 'the job that ran can be ended' until_holds 20 sh -c '"$0" ps --all --noheader -j "$1" | grep -q " CA "' "$SHAREWELL" "$running"
kill "$up_pid" && wait "$up_pid"
[ "$(asked 'SELECT min(seq) FROM records')" -gt 2000 ]
said $? 'records that two snapshots cover are gone'
[ "$(wc -c <"$journal")" -lt $((4 * $(asked 'SELECT sum(size) FROM snapshots'))) ]
said $? 'and the file is about as large as what is left'
up_pid=''

# A record that a start does not read: behind it are 8,192 and a snapshot.
up
holds 'more jobs are taken' many 1
kill "$up_pid" && wait "$up_pid"
damaged=$(asked 'SELECT min(seq) + 1 FROM records')
python3 - "$journal" "$damaged" <<-'END'
	import sqlite3, sys
	with sqlite3.connect(sys.argv[1]) as journal:
	    journal.execute("UPDATE records SET at = at + 1 WHERE seq = ?", (sys.argv[2],))
END
up
holds 'the controller starts with an old record that is damaged' until_holds 20 "$SHAREWELL" ps --jobs "$last"
run sim --journal
[ "$status" -ne 0 ] && grep -q "record $damaged does not match" "$scratch/err"
said $? 'a replay of the history names the record'
run journal backup "$scratch/copy.db"
[ "$status" -ne 0 ] && grep -q "record $damaged" "$scratch/err" && [ ! -e "$scratch/copy.db" ]
said $? 'a backup names it as well, and is none'
kill "$up_pid" && wait "$up_pid"
up_pid=''
end
