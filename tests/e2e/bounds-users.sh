#!/bin/sh
# One user takes all that a user can take of the socket; the others, root and the agent go on. Needs root, to be several users.
. "$(dirname "$0")/lib.sh"
if [ "$(id -u)" -ne 0 ]; then
	echo '1..0 # SKIP needs root, to be several users'
	exit 77
fi
if ! setpriv --reuid 65531 --regid 65531 --clear-groups true 2>/dev/null; then
	echo '1..0 # SKIP setpriv cannot become another user here'
	exit 77
fi
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
socket="$scratch/door/controller.sock"
export SHAREWELL_CONTROLLER="unix:$socket"
mallory=65531 bob=65532
chmod 711 "$scratch"
mkdir "$scratch/home" && chmod 777 "$scratch/home"
cp "$SHAREWELL" "$scratch/sharewell" && chmod 755 "$scratch/sharewell"
up --all-users --state "$scratch/state" --socket "$socket" --bounds connections=40,heads=8,streams=4,bodies=20M,requests=50

# as_user <user> <arguments of sharewell...>
as_user() {
	user=$1
	shift
	(cd "$scratch/home" && exec env -i PATH="$PATH" LC_ALL=C.UTF-8 HOME="$scratch/home" SHAREWELL_CONTROLLER="$SHAREWELL_CONTROLLER" \
		timeout 60 setpriv --reuid "$user" --regid "$user" --clear-groups "$scratch/sharewell" "$@") >"$scratch/out" 2>"$scratch/err"
}
works 'a job runs' '' submit --parsable -- sh -c 'sleep 600'
job=$(cat "$scratch/out")
holds 'it does' until_holds 30 sh -c '"$0" ps --noheader -j "$1" | grep -q " R "' "$SHAREWELL" "$job"

# What mallory opens stays open until her process is told to end. Each line: what, how often it was taken, how often refused.
timeout 120 python3 - "$mallory" "$socket" "$scratch/home/said" <<'PY' &
import os, socket, sys, time
mallory, path, said = int(sys.argv[1]), sys.argv[2], sys.argv[3]
os.setgroups([])
os.setgid(mallory)
os.setuid(mallory)
kept, counts = [], {}
def dial():
    c = socket.socket(socket.AF_UNIX)
    c.settimeout(20)
    c.connect(path)
    kept.append(c)
    return c
def status(c):
    try:
        data = c.recv(65536)
    except OSError:
        return 0
    return int(data.split()[1]) if data.startswith(b"HTTP/1.1 ") else 0
def count(what, got):
    counts.setdefault(what, {}).setdefault(got, 0)
    counts[what][got] += 1
for i in range(12):
    c = dial()
    c.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    count("streams", status(c))
for i in range(6):
    c = dial()
    c.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 16000000\r\n\r\n")
    count("bodies", status(c))
c = dial()
c.sendall(b"GET /v1/cluster HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
data = b""
while data.count(b"HTTP/1.1 ") < 2000:
    piece = c.recv(65536)
    if not piece:
        break
    data += piece
for got in (200, 429):
    counts.setdefault("requests", {})[got] = data.count(b"HTTP/1.1 %d" % got)
for i in range(80):
    try:
        dial().sendall(b"G")
    except OSError:
        pass
open(said + ".part", "w").write(repr(counts))
os.rename(said + ".part", said)
time.sleep(100)
PY
attack=$!
holds 'mallory has taken what she can' until_holds 60 test -s "$scratch/home/said"
python3 - "$scratch/home/said" <<'PY'
import sys
counts = eval(open(sys.argv[1]).read())
assert counts["streams"].get(200) == 4 and counts["streams"].get(429) == 8, counts
assert counts["bodies"].get(100) == 1 and counts["bodies"].get(429) == 5, counts
assert counts["requests"][200] >= 100 and counts["requests"][429] > 0, counts
PY
said $? 'which is her share, and 429 beyond it' home/said home/said
as_user $bob ps
said $? 'bob sees the queue'
as_user $bob submit --parsable -- echo hello
said $? 'and submits'
hers=$(cat "$scratch/out")
as_user $bob logs -f "$hers"
[ $? -eq 0 ] && out_has hello
said $? 'his job runs, and he follows its log'
works 'root sees the queue' '' ps
"$SHAREWELL" nodes --noheader | grep -q '^here '
said $? 'the node is there'
"$SHAREWELL" show "$job" --json | grep -q '"state": *"R"'
said $? 'and what ran runs'
kill "$attack" 2>/dev/null
wait "$attack"
as_user $mallory ps
said $? 'once she has let go, mallory is served again'
end
