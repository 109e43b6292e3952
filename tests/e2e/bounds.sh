#!/bin/sh
# Bounds of one user, and how the commands get along with them; where the controller listens.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"

for command in up controller; do
	refuses 2 "$command: a bound that is none" "'beds=7' is no bound" $command --state "$scratch/none" --bounds jobs=5,beds=7
	refuses 2 "$command: a bound of nothing" "'jobs=0' is no bound" $command --state "$scratch/none" --bounds jobs=0
done

# Without --port there is the socket, and nothing else.
"$SHAREWELL" up --gpus "$gpus" --node here --bounds held=150K,jobs=50 >"$scratch/up.out" 2>&1 &
up_pid=$!
holds 'it starts' until_holds 30 sh -c '"$0" nodes --noheader | grep -q "^here "' "$SHAREWELL"
grep -q '^Listening on' "$scratch/up.out" && ! grep -q 'http' "$scratch/up.out"
said $? 'nothing says that it listens on TCP' up.out up.out
controller=$(child controller)
inodes=$(ls -l "/proc/$controller/fd" | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p')
listens=$(for inode in $inodes; do awk -v inode="$inode" '$10 == inode && $4 == "0A"' /proc/net/tcp /proc/net/tcp6 2>/dev/null; done)
[ -n "$inodes" ] && [ -z "$listens" ]
said $? 'nor does it'

# Over a bound a command says so, waits, and goes on once there is room.
LARGE=$(head -c 100000 /dev/zero | tr '\0' y)
works 'a job with a large environment' '' submit --parsable -H --env "LARGE=$LARGE" -- true
first=$(cat "$scratch/out")
timeout 90 "$SHAREWELL" submit --parsable -H --env "LARGE=$LARGE" -- true >"$scratch/second" 2>"$scratch/second.err" &
second=$!
holds 'the second one waits, and says why' until_holds 30 grep -q 'environments.*asking again' "$scratch/second.err"
works 'small ones go on' '' submit -H -- true
works 'the first leaves' '' cancel "$first"
wait "$second"
[ $? -eq 0 ] && [ -s "$scratch/second" ]
said $? 'and the second is taken' second second.err
end
