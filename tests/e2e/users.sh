#!/bin/sh
# Several users on one machine: what one may see and do of another's jobs, and as which user jobs run. Needs root, to be three users.
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

# Users are numbers: nothing is added to the system. Each has a home that is theirs alone.
alice=65531 bob=65532 carol=65530
chmod 711 "$scratch"
for user in $alice $bob $carol; do
	mkdir "$scratch/home-$user"
	chown "$user:$user" "$scratch/home-$user"
	chmod 700 "$scratch/home-$user"
done
cp "$SHAREWELL" "$scratch/sharewell" && chmod 755 "$scratch/sharewell"
# as <user> <command...>: with nothing of root's environment.
as() {
	user=$1
	shift
	(cd "$scratch/home-$user" && exec env -i PATH="$PATH" LC_ALL=C.UTF-8 HOME="$scratch/home-$user" SHAREWELL_CONTROLLER="$SHAREWELL_CONTROLLER" \
		timeout 60 setpriv --reuid "$user" --regid "$user" --clear-groups "$@")
}
# as_user <user> <arguments of sharewell...>: outcome in $status, $scratch/out, $scratch/err.
as_user() {
	user=$1
	shift
	as "$user" "$scratch/sharewell" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
	return "$status"
}
# denied <aim> <text> <user> <arguments...>
denied() {
	aim=$1 text=$2
	shift 2
	as_user "$@"
	[ "$status" -ne 0 ] && err_has "$text"
	said $? "$aim"
}
does() {
	aim=$1 text=$2
	shift 2
	as_user "$@"
	[ "$status" -eq 0 ] && out_has "$text"
	said $? "$aim"
}
# try_socket <user> <socket> [<method> <path> [<word>]]: connects as that user; sends a request as it is, and prints what comes until the end or the word.
try_socket() {
	timeout 60 python3 -c '
import os, socket, sys
user, path = int(sys.argv[1]), sys.argv[2]
os.setgroups([])
os.setgid(user)
os.setuid(user)
c = socket.socket(socket.AF_UNIX)
c.settimeout(10)
c.connect(path)
if len(sys.argv) > 3:
    c.sendall(("%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" % (sys.argv[3], sys.argv[4])).encode())
data = b""
while len(sys.argv) <= 5 or sys.argv[5].encode() not in data:
    piece = c.recv(65536)
    if not piece:
        break
    data += piece
print(data.decode())' "$@" >"$scratch/out" 2>"$scratch/err"
}
http() {
	user=$1
	shift
	try_socket "$user" "$socket" "$@"
}
gives() { head -n 1 "$scratch/out" | grep -q " $1 "; }
# Of jobs that are not his own: what he himself asked for, he may see.
lacks_secrets() { tr '}' '\n' <"$scratch/out" | grep -v "Permission denied" | grep -qE 'secret|home-|there-is|SECRET' && return 1 || return 0; }

export SECRET_OF_ROOT=secret-of-root
up --all-users --state "$scratch/state" --socket "$socket" --operators "$carol"
unset SECRET_OF_ROOT
[ "$(stat -c %a "$socket")" = 666 ] && [ "$(stat -c %a "$scratch/state")" = 700 ] && [ -z "$(find "$scratch/state" ! -type s -perm /077)" ]
said $? 'the socket is for all, the state folder and every file in it for root alone' up.out up.out
as_user $alice ps || { echo 'Bail out! users cannot reach the socket'; exit 1; }
as $alice "$scratch/sharewell" up --all-users --state "$scratch/home-$alice/state" >"$scratch/out" 2>"$scratch/err"
[ $? -ne 0 ] && err_has 'only root can start jobs of all users'
said $? 'only root can serve all users'

# As which user a job runs.
does 'a user submits' 'Submitted batch job 1' $alice submit -J identity -- sh -c 'id -u; id -g; id -G; pwd; echo $HOME; umask; touch here'
as_user $alice wait 1
does 'and reads the log' "$alice" $alice logs 1
[ "$(sed -n 1,3p "$scratch/out" | sort -u)" = "$alice" ] && grep -qx "$scratch/home-$alice" "$scratch/out"
said $? 'the job had her identity, her groups alone, and her folder'
[ "$(stat -c %u "$scratch/home-$alice/here")" = "$alice" ]
said $? 'what it makes is hers'
as $alice sh -c 'umask 0027; exec "$0" run -- sh -c "umask; touch private"' "$scratch/sharewell" >"$scratch/out" 2>"$scratch/err"
[ "$(cat "$scratch/out")" = 0027 ] && [ "$(stat -c %a "$scratch/home-$alice/private")" = 640 ]
said $? 'and has the umask of the submit'
does 'and what it inherits' '' $alice run -- sh -c 'for f in /proc/self/fd/*; do [ -e "$f" ] && echo "fd ${f##*/}"; done; env; cat /proc/self/status'
[ "$(grep -c '^fd ' "$scratch/out")" -le 3 ] && ! grep -qE '^fd ([3-9]|[0-9][0-9])' "$scratch/out" && ! grep -q SECRET_OF_ROOT "$scratch/out"
said $? 'is three streams, and nothing of the environment of root'
grep -qx 'CapEff:	0000000000000000' "$scratch/out" && grep -q '^Groups:	65531 *$' "$scratch/out"
said $? 'and no power'
does 'files that it names are opened as its user' '' $alice submit --parsable -o "$scratch/home-$alice/own.log" -- echo mine
as_user $alice wait "$(cat "$scratch/out")"
[ "$(stat -c %u "$scratch/home-$alice/own.log")" = "$alice" ]
said $? 'and belong to her'
as_user $bob submit --parsable -o "$scratch/home-$alice/own.log" -- echo not mine
job=$(cat "$scratch/out")
as_user $bob wait "$job"
[ "$status" -ne 0 ] && [ "$(cat "$scratch/home-$alice/own.log")" = mine ]
said $? 'another user cannot write there through a job'
as_user $bob submit --parsable -D "$scratch/home-$alice" -- cat own.log
job=$(cat "$scratch/out")
as_user $bob wait "$job"
[ "$status" -ne 0 ]
said $? 'nor work in a folder of hers'

# A job of alice's, and what bob sees of it.
as_user $alice submit --parsable -J secret-name --comment secret-comment --env SECRET=secret-value -- sh -c 'echo secret-output; sleep 300; : secret-argument'
hers=$(cat "$scratch/out")
holds 'a job runs' until_holds 20 sh -c '"$0" ps --noheader -j "$1" | grep -q " R "' "$SHAREWELL" "$hers"
does 'its owner sees all of it' 'secret-argument' $alice show "$hers"
for command in "ps --all" "ps --all --json" "show $hers" "show $hers --json" "history" "history --json" "top --once" "nodes --gpus"; do
	# shellcheck disable=SC2086
	as_user $bob $command
	lacks_secrets
	said $? "another user sees no secret in '$command'"
done
as_user $bob ps --json --all
python3 - "$scratch/out" "$hers" "$alice" <<'PY'
import json, sys
job = [j for j in json.load(open(sys.argv[1]))["jobs"] if j["id"] == int(sys.argv[2])][0]
assert sorted(job) == ["ended_at", "gpus", "id", "past", "started_at", "state", "state_long", "submitted_at", "uid", "user"], sorted(job)
assert job["state"] == "R" and job["gpus"] == 1 and job["uid"] == int(sys.argv[3])
PY
said $? 'but that it is there, whose it is, its state, its GPUs and its times'
as_user $bob ps --name secret-name --noheader
[ ! -s "$scratch/out" ]
said $? 'a filter by name finds nothing of hers'
http $bob GET '/v1/events?after=0' "\"id\":$hers,\"state\":\"R\""
lacks_secrets && out_has '"kind":"submit"' && grep -q "\"uid\":$alice" "$scratch/out" && ! grep "\"uid\":$alice" "$scratch/out" | grep -q '"node"'
said $? 'nor do the events tell, or where it runs'
denied 'why it waits is not for others' 'belongs to another user' $bob why "$hers"
for verb in cancel suspend resume requeue hold release; do
	denied "another user cannot $verb it" 'belongs to another user' $bob $verb "$hers"
done
denied 'nor read its log' 'belongs to another user' $bob logs "$hers"
denied 'nor follow it' 'belongs to another user' $bob logs -f "$hers"
is_state "$hers" R
said $? 'it runs on'

# Around the doors.
for path in "/v1/jobs/$hers/logs?run=1" "/v1/jobs/$hers/logs?offset=-1"; do
	http $bob GET "$path"
	gives 403 && lacks_secrets
	said $? "GET $path is refused"
done
for path in "/v1/jobs/../../state/tokens" "/v1/jobs/%2e%2e/logs" "/v1/jobs/$hers/../$hers/logs" "/v1/jobs/$hers%2f..%2f1/logs" "/v1/jobs/1.1/logs" \
	"/v1/jobs/99999999999999999999999999/logs" "/v1/jobs/0/logs" "/v1/jobs/-1/logs" "/v1/jobs/+$hers/logs" "/v1/jobs/0$hers/logs/"; do
	http $bob GET "$path"
	{ gives 404 || gives 400; } && lacks_secrets
	said $? "GET $path leads nowhere"
done
http $bob GET "/v1/jobs/000000$hers"
{ gives 404 || gives 200; } && lacks_secrets
said $? 'a number with noughts in front shows no more'
http $bob GET "/v1/jobs/4000000000"
gives 404
said $? 'a job that never was is not there'
http $bob POST /v1/agents/sync
gives 403
said $? 'a user cannot speak as an agent'
denied 'nor change the policy' "the caller's role does not allow this" $bob policy fifo
denied 'nor a quota' "the caller's role does not allow this" $bob quota "uid$alice" 0
denied 'nor make tokens' 'cannot' $bob token create --state "$scratch/state"
as $bob cat "$scratch/state/runs/$hers.1/out.log" >"$scratch/out" 2>"$scratch/err"
[ $? -ne 0 ] && lacks_secrets
said $? 'files of the run are out of reach'
try_socket $bob "$scratch/state/runs/$hers.1/supervisor.sock"
[ $? -ne 0 ] && grep -q 'Permission' "$scratch/err"
said $? 'and so is its supervisor'
pid=$(pgrep -u $alice -f 'secret-argument' | head -n 1)
as $bob kill -TERM "$pid" 2>/dev/null
[ $? -ne 0 ] && [ -n "$pid" ] && ! as $bob cat "/proc/$pid/environ" >/dev/null 2>&1
said $? 'the kernel keeps signals and environment of the process from others'
http $bob POST "/v1/jobs"
gives 400
said $? 'what is no job is none'

# Operators.
does 'an operator sees it' 'secret-name' $carol ps --all
does 'reads its log' 'secret-output' $carol logs "$hers"
does 'changes a quota' '' $carol quota "uid$bob" 3
http $carol POST /v1/agents/sync
gives 403
said $? 'but is no agent'
does 'and ends it' '' $carol cancel "$hers"
as_user $alice wait "$hers"
out_has CANCELLED
said $? 'as its owner learns'
does 'a user may end jobs of her own' 'Submitted' $alice submit -- sleep 300
own=$(sed 's/.* //' "$scratch/out")
does 'by herself' '' $alice cancel "$own"

# One forecast for all: what one may see of the jobs ahead changes nothing.
does 'a job with a limit runs' '' $alice submit --parsable -J secret-train -G 4 -t 60m -- sleep 300
ahead=$(cat "$scratch/out")
holds 'on all GPUs' until_holds 20 is_state "$ahead" R
does 'one of another user waits' '' $bob submit --parsable -J secret-evaluate -G 2 -t 10m -- true
waits=$(cat "$scratch/out")
# start_of: of the job that waits, as the last command told it.
start_of() { python3 -c 'import json, sys
print([job["estimated_start_at"] for job in json.load(open(sys.argv[1]))["jobs"] if job["id"] == int(sys.argv[2])][0])' "$scratch/out" "$waits"; }
run ps --start --json
told=$(start_of)
python3 -c 'import datetime, sys
left = datetime.datetime.fromisoformat(sys.argv[1][:19] + "+00:00") - datetime.datetime.now(datetime.timezone.utc)
assert datetime.timedelta(minutes=30) < left <= datetime.timedelta(minutes=60), left' "$told"
said $? 'root hears that it starts within the hour that the other may run'
for user in $alice $bob $carol; do
	as_user "$user" ps --start --json && [ "$(start_of)" = "$told" ]
	said $? "user $user hears the same moment"
done
as_user $alice ps --start --json
! grep -q secret-evaluate "$scratch/out"
said $? 'and nothing else of it'
as_user $bob why --json "$waits" && grep -q "\"estimated_start_at\":\"$told\"" "$scratch/out" && grep -q '"limits":1' "$scratch/out" && ! grep -q secret-train "$scratch/out"
said $? 'its owner hears what that rests on, and nothing of the job ahead'
http $alice GET "/v1/forecast?job=$waits"
gives 200 && out_has "$told"
said $? 'and so does a script of another user'
run submit --test-only --json -G 4 -- true
tried=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["jobs"][0]["estimated_start_at"])' "$scratch/out")
as_user $carol submit --test-only --json -G 4 -- true
[ "$tried" != null ] && grep -q "\"estimated_start_at\":\"$tried\"" "$scratch/out"
said $? 'a job that is tried would start at the same moment, whichever user tries it'
as_user $alice cancel "$ahead"
as_user $bob cancel "$waits"
end
