#!/bin/sh
# Programs that get at the driver past the runtime are seen by what the driver's management library tells, and named; others are not.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-live.sh"
. "$(dirname "$0")/lib-emu.sh"
emulate 2 8G
source=$SW_SOURCE_DIR/tests/e2e/escape.c
${CC:-cc} -O2 -D_GNU_SOURCE -I "$SW_SOURCE_DIR/src" -o "$scratch/escape" "$source" -ldl || exit 1
${CC:-cc} -O2 -D_GNU_SOURCE -I "$SW_SOURCE_DIR/src" -DLIBRARY -fPIC -shared -o "$scratch/deep.so" "$source" -L "$LD_LIBRARY_PATH" -l:libcuda.so.1 || exit 1
shares=''
trap 'touch end; kill $shares 2>/dev/null; finish' EXIT

# begin <name> <words of escape...>: a share that holds memory, and goes on until there is a file "end".
begin() {
	name=$1
	shift
	"$SHAREWELL" share --name "$name" --memory 64M -- "$@" "$name.ready" end 2>"$name.err" &
	shares="$shares $!"
	until_holds 60 test -e "$name.ready"
}
# listed <name> <words of python about g, what --list says of it on GPU 0>
listed() {
	"$SHAREWELL" share --list --json | python3 -c "
import json, sys
g = [s['gpus'][0] for s in json.load(sys.stdin) if s['name'] == '$1'][0]
sys.exit(not ($2))"
}

holds 'a program stays within the runtime' begin inside "$scratch/escape" inside 2000000
# A share within a share has a page of its own. (The program under test may be built with a sanitizer, which cannot be preloaded into.)
holds 'so does one in a share within another one' begin outer env -u LD_PRELOAD "$SHAREWELL" share --name inner -- "$scratch/escape" inside 2000000
holds 'one binds its library to the driver behind it' begin deep "$scratch/escape" deepbind "$scratch/deep.so" 100000000
holds 'which is seen' until_holds 60 listed deep "g['outside_processes'] == 1 and g['outside_bytes'] >= 100000000 and g['used_bytes'] == 0"
holds 'and said where it runs' until_holds 60 grep -q 'note: process [0-9]* uses GPU 0 outside the runtime' deep.err
run share --list
[ "$status" -eq 0 ] && out_has inside && err_has 'deep: 1 of its processes (one is '
said $? 'and by the list'
holds 'one has a driver of its own' begin apart "$scratch/escape" namespace 100000000
holds 'which is seen as well' until_holds 60 listed apart "g['outside_processes'] == 1"
holds 'so is a child without the library' begin child env -u LD_PRELOAD "$scratch/escape" inside 100000000
holds 'by what it holds' until_holds 60 listed child "g['outside_processes'] == 1 and g['outside_bytes'] >= 100000000"
holds 'even where its environment tells nothing' begin bare env -i LD_LIBRARY_PATH="$LD_LIBRARY_PATH" SHAREWELL_EMU="$SHAREWELL_EMU" SHAREWELL_EMU_STATE="$SHAREWELL_EMU_STATE" "$scratch/escape" inside 100000000
holds 'it is one of those that the share started' until_holds 60 listed bare "g['outside_processes'] == 1"
holds 'one hides most of its memory' begin both "$scratch/escape" both 3000000000
holds 'which is far more than is charged' until_holds 60 listed both "g['outside_processes'] == 1 and g['outside_bytes'] >= 3000000000 and g['used_bytes'] == 16 << 20"
holds 'a process that keeps to the runtime is not named' listed inside "g['outside_processes'] == 0 and g['used_bytes'] >= 2000000"
holds 'nor told of' sh -c 'test ! -s inside.err && test ! -s outer.err'
holds 'nor in the share within' listed inner "g['outside_processes'] == 0 and g['used_bytes'] >= 2000000"
holds 'nor in the one around it' listed outer "g['outside_processes'] == 0"
touch end
holds 'all of them end' until_holds 60 sh -c '! ls "$SHAREWELL_STATE"/shares | grep .'

# In a cluster.
rm -f end
gpus=auto
up
submit_here --env LD_LIBRARY_PATH="$LD_LIBRARY_PATH" -- \
	"$scratch/escape" deepbind "$scratch/deep.so" 100000000 "$PWD/job.ready" "$PWD/end"
holds 'a job goes around the runtime' until_holds 60 test -e job.ready
says() { "$SHAREWELL" show --json "$job" | python3 -c "import json, sys; g = json.load(sys.stdin)['gpu'] or {}; sys.exit(not ($1))"; }
holds 'which the cluster knows' until_holds 60 says "g.get('outside_processes') == 1"
works 'and shows' 'outside the runtime' show "$job"
touch end
ends 'it ends' "$job" 0
end
