#!/bin/sh
# How callers reach the controller: TLS and tokens over TCP, and submits that are made once though the controller goes away in the middle.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
unset SHAREWELL_CA

refuses 1 'beyond this machine, TLS is needed' 'need TLS' controller --state "$scratch/state" --listen 0.0.0.0:0
err_has '--tls-self-signed'
said $? 'and the hint says how to get it'
refuses 2 'a certificate needs its key' 'needed both' controller --tls-cert x.pem
refuses 2 'one address at a time' 'these options do not go together' controller --port 1 --listen 127.0.0.1:2

for command in up controller; do
	refuses 2 "$command: a port that is none" "--port cannot be 'x'" $command --state "$scratch/none" --port x
	refuses 2 "$command: an address that is none" 'not of the form address:port' $command --state "$scratch/none" --listen here
	refuses 2 "$command: an operator that is none" "no user 'nobody-at-all'" $command --state "$scratch/none" --operators nobody-at-all
	refuses 2 "$command: a certificate that is not there" "'x.pem'" $command --state "$scratch/none" --tls-cert x.pem --tls-key y.pem
	refuses 2 "$command: a plugin that is not there" "x.so" $command --state "$scratch/none" --plugin ./x.so
done
refuses 2 'controller: failures that are not there' "'x.yaml'" controller --state "$scratch/none" --failures x.yaml
holds 'before anything is made' [ ! -e "$scratch/none" ]

# A controller for all machines, with a certificate of its own making. lib-live's up gives --port, which is one of 127.0.0.1.
"$SHAREWELL" up --gpus "$gpus" --node here --listen 0.0.0.0:0 --tls-self-signed >"$scratch/up.out" 2>&1 &
up_pid=$!
holds 'it starts' until_holds 30 sh -c '"$0" nodes --noheader | grep -q "^here "' "$SHAREWELL"
# The node may join before `up` has printed what it waited for.
until_holds 30 grep -q 'SHAREWELL_CA=sha256//' "$scratch/up.out" && grep -q 'https://0.0.0.0:' "$scratch/up.out"
said $? 'and prints the line for other machines' up.out up.out
port=$(sed -n 's|.* and https://0.0.0.0:\([0-9]*\).*|\1|p' "$scratch/up.out")
pin=$(sed -n 's/.*SHAREWELL_CA=\([^ ]*\).*/\1/p' "$scratch/up.out")
url=https://127.0.0.1:$port
holds 'its key can be read by its owner alone' sh -c '[ "$(stat -c %a "$0/tls.key")" = 600 ]' "$scratch/state"

# Elsewhere: another state folder, so that no token is found by itself.
elsewhere() {
	SHAREWELL_STATE=$scratch/elsewhere SHAREWELL_CONTROLLER=$url timeout 60 "$SHAREWELL" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}
expect() {
	[ "$status" -eq "$1" ] && { [ "$1" -eq 0 ] && out_has "$3" || err_has "$3"; }
	said $? "$2"
}
elsewhere ps
expect 1 'a certificate that no authority signed is not trusted' 'is not trusted'
export SHAREWELL_CA=sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
elsewhere ps
expect 1 'nor is one of another key' 'is not the controller that SHAREWELL_CA names'
export SHAREWELL_CA=$scratch/nothing.pem
elsewhere ps
expect 2 'a file that is not there is named' 'nothing.pem'
export SHAREWELL_CA=$pin
elsewhere ps
expect 1 'with its fingerprint it is trusted, and wants a token' 'this needs a token'
works 'a token is made' '' token create --name laptop
SHAREWELL_TOKEN=$(cat "$scratch/out")
export SHAREWELL_TOKEN
[ "${#SHAREWELL_TOKEN}" -eq 64 ] && ! grep -q "$SHAREWELL_TOKEN" "$scratch/state/tokens" && [ "$(stat -c %a "$scratch/state/tokens")" = 600 ]
said $? 'of which only the hash is kept, in a file for its owner alone'
works 'it is in the list' 'laptop' token list
refuses 2 'another of the same name' "there is a token 'laptop' already" token create --name laptop
elsewhere ps
expect 0 'and valid at once' 'JOBID'
cp "$scratch/state/tls.crt" "$scratch/ca.crt"
SHAREWELL_CA=$scratch/ca.crt
elsewhere ps
expect 0 'the certificate itself is as good as its fingerprint' 'JOBID'
SHAREWELL_CA=$pin
url=http://127.0.0.1:$port
elsewhere ps
expect 2 'a command that forgets the s hears of it' 'this port speaks TLS'
url=http://$(hostname):$port
elsewhere ps
expect 2 'and a token does not leave the machine in the clear' 'in the clear'
url=https://127.0.0.1:$port

# What is long or large, over TLS.
elsewhere run -- sh -c 'for i in 1 2 3; do echo line $i; sleep 0.2; done; exit 3'
[ "$status" -eq 3 ] && out_has 'line 3'
said $? 'a job is followed to its end'
elsewhere submit --parsable -- sh -c 'head -c 3000000 /dev/zero | tr "\0" x; echo; echo end'
job=$(cat "$scratch/out")
elsewhere wait "$job"
elsewhere logs "$job"
[ "$status" -eq 0 ] && [ "$(wc -c <"$scratch/out")" -eq 3000005 ]
said $? 'large logs come whole'
elsewhere submit --array 0-999 -H -- true
expect 0 'a thousand jobs in one request' 'array of 1000'
first=$(sed -n 's/.*batch job \([0-9]*\) .*/\1/p' "$scratch/out")
elsewhere cancel "$first-$((first + 999))"
expect 0 'and out again' ''
head -c 200000 /dev/zero | tr '\0' y >"$scratch/large"
elsewhere submit --parsable --env "LARGE=$(head -c 100000 "$scratch/large")" -- sh -c 'echo ${#LARGE}'
job=$(cat "$scratch/out")
elsewhere logs -f "$job"
expect 0 'a large environment arrives' '100000'

# An agent on another machine.
works 'an agent has a token of its own' '' token create --role agent --name other-agent
install -m 600 "$scratch/out" "$scratch/agent.token"
(unset SHAREWELL_TOKEN SHAREWELL_CA
 exec "$SHAREWELL" agent --controller "$url" --ca "$pin" --token-file "$scratch/agent.token" --gpus "$gpus" --node there --state "$scratch/there") >"$scratch/agent.out" 2>&1 &
agent_pid=$!
holds 'it joins over TLS' until_holds 30 sh -c '"$0" nodes --noheader | grep -q "^there  *idle"' "$SHAREWELL"
SHAREWELL_TOKEN=$(cat "$scratch/agent.token")
elsewhere submit -- true
expect 1 'an agent cannot submit' 'it needs the role of a user'
elsewhere logs "$job"
expect 1 'nor read logs' 'it needs the role of a user'
works 'the token of an agent is taken back' '' token revoke other-agent
holds 'and the agent is heard no more' until_holds 30 grep -q '401' "$scratch/agent.out"
kill "$agent_pid" && wait "$agent_pid"

# Revocation.
SHAREWELL_TOKEN=$("$SHAREWELL" token create --name phone)
elsewhere submit --parsable -- sh -c 'echo begun; sleep 60'
job=$(cat "$scratch/out")
SHAREWELL_STATE=$scratch/elsewhere SHAREWELL_CONTROLLER=$url "$SHAREWELL" logs -f "$job" >"$scratch/follow.out" 2>"$scratch/follow.err" &
follower=$!
holds 'a stream is open' until_holds 20 grep -q begun "$scratch/follow.out"
works 'a token is taken back' '' token revoke phone
elsewhere ps
expect 1 'and is refused at once' 'the one that came is not known'
wait "$follower"
[ $? -ne 0 ] && grep -q 'this needs a token' "$scratch/follow.err"
said $? 'what was opened with it ends' follow.out follow.err
refuses 2 'one that is not there' "no token 'phone'" token revoke phone
"$SHAREWELL" cancel "$job"
unset SHAREWELL_TOKEN SHAREWELL_CA

# An answer that was lost: the request is repeated, and makes no second job.
"$SHAREWELL" submit --parsable -- true >"$scratch/before"
python3 "$SW_SOURCE_DIR/tests/e2e/lose_answer.py" "$scratch/state/controller.sock" "$scratch/lossy.sock" &
lossy=$!
holds 'there is a way that loses answers' until_holds 20 test -S "$scratch/lossy.sock"
SHAREWELL_CONTROLLER=unix:$scratch/lossy.sock timeout 60 "$SHAREWELL" submit --parsable -- true >"$scratch/out" 2>"$scratch/err"
[ $? -eq 0 ] && err_has 'asking again' && [ "$(cat "$scratch/out")" -eq $(($(cat "$scratch/before") + 1)) ]
said $? 'the command asks again, says so, and hears the number of the job'
kill "$lossy" && wait "$lossy"
last=$(cat "$scratch/out")
works 'the next job has the next number' "$((last + 1))" submit --parsable -- true

# A request that the controller took to its grave: it was not stored, and is made by the next one.
# connected PID: whether its command has a connection (state 03), seen from its own side, so that no other command's counts.
connected() {
	for inode in $(ls -l "/proc/$(pgrep -P "$1")/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p'); do
		awk -v inode="$inode" '$6 == "03" && $7 == inode {found = 1} END {exit !found}' /proc/net/unix && return 0
	done
	return 1
}
kill -STOP "$(child controller)"
timeout 90 "$SHAREWELL" submit --parsable -- true >"$scratch/one" 2>"$scratch/one.err" &
submitter=$!
holds 'a submit is on its way to a controller that stands still' until_holds 60 connected "$submitter"
kill -KILL "$(child controller)"
wait "$submitter"
[ $? -eq 0 ] && grep -q 'asking again' "$scratch/one.err" && [ "$(cat "$scratch/one")" -eq $((last + 2)) ]
said $? 'a submit outlives the controller that it was sent to' one one.err

# Submits while the controller is killed again and again: each is made once.
cp "$scratch/one" "$scratch/before"
made=0
: >"$scratch/made"
# Once some have been made since the last time, however long that takes here. Not at once: `up` gives up a controller that ends three times as soon as it has started.
(i=0
 while [ "$i" -lt 3 ]; do
	had=$(wc -l <"$scratch/made")
	sleep 2.2
	until_holds 60 sh -c '[ "$(wc -l <"$0")" -ge "$1" ]' "$scratch/made" $((had + 4))
	kill -KILL "$(child controller)"
	i=$((i + 1))
 done) &
killer=$!
while kill -0 "$killer" 2>/dev/null; do
	# A command that hears that no controller is there has submitted nothing.
	if timeout 90 "$SHAREWELL" submit --parsable -- true >"$scratch/one" 2>"$scratch/one.err"; then
		cat "$scratch/one" >>"$scratch/made"
		made=$((made + 1))
	elif ! grep -q 'no controller answers' "$scratch/one.err"; then
		cat "$scratch/one.err" >>"$scratch/unknown"
	fi
done
wait "$killer"
holds 'the controller is back' until_holds 30 "$SHAREWELL" ps
before=$(cat "$scratch/before")
"$SHAREWELL" ps --all --noheader | awk -v before="$before" '$1 + 0 > before + 0 {print $1}' | sort -n >"$scratch/found"
sort -n "$scratch/made" >"$scratch/told"
[ ! -e "$scratch/unknown" ] && [ "$made" -gt 0 ] && cmp -s "$scratch/told" "$scratch/found"
said $? "all of $made jobs are there once, through three crashes" told found
end
