#!/bin/sh
# A job that says nothing of --preempt, on the emulated driver: it is suspended for others where its GPU memory can leave the GPU, and loses nothing; else it runs to its end.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-emu.sh"
emulate 1 512M
prepare_training
gpus=auto
up --host-memory 4G --policy srtf

# once <name>: it was started once.
once() { [ "$(wc -l <"$scratch/$1.pids")" -eq 1 ]; }

submit_here -J long --expected 5h -- "$scratch/repeat.sh" "$scratch" a
long=$job
holds 'a training runs' until_holds 60 computed a
submit_here -J short --expected 1m -- "$scratch/repeat.sh" "$scratch" b
short=$job
holds 'a shorter one takes the whole GPU' until_holds 60 computed b
holds 'the other is suspended' is_state "$long" S
works 'which is said' "for job $short" why "$long"
touch "$scratch/b.end"
ends 'the shorter one ends' "$short" 0
holds 'the other goes on' until_holds 60 is_state "$long" R
: >"$scratch/a"
holds 'and computes' until_holds 60 computed a
holds 'in its first run' once a
touch "$scratch/a.end"
ends 'it ends' "$long" 0
[ "$(hash_of "$scratch/a")" = "$(hash_of plain)" ] && [ "$(hash_of "$scratch/b")" = "$(hash_of plain)" ]
said $? 'both have computed what one alone does, bit for bit' a b

submit_here -J bare --gpu-runtime off --expected 5h -- "$scratch/repeat.sh" "$scratch" c
bare=$job
holds 'one without the runtime runs' until_holds 60 computed c
submit_here -J waits --expected 1m -- "$scratch/repeat.sh" "$scratch" d
holds 'and a shorter one waits for it' is_state "$job" PD
works 'it is not stopped' 'it is not stopped for others' why "$bare"
refuses 2 'nor suspended by its user, unless by force' 'its GPU memory would stay on the GPUs' suspend "$bare"
touch "$scratch/c.end" "$scratch/d.end"
ends 'it ends' "$bare" 0
ends 'then the other' "$job" 0
holds 'it was started once' once c
end
