#!/bin/sh
# One order, one fate: whatever a request may say reaches its node, or is refused at submit; a job that runs beside it is not touched.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up

# The job that must not be disturbed.
submit -- sh -c 'echo $$ >pid; exec sleep 600'
quiet=$job
holds 'a job runs' until_holds 20 is_state "$quiet" R
holds 'and says which process it is' until_holds 20 test -s pid
undisturbed() {
	run show --json "$quiet"
	[ "$status" -eq 0 ] && grep -q '"epoch":1,' "$scratch/out" && is_state "$quiet" R && kill -0 "$(cat pid)"
	said $? "$1"
}

# Durations above ten years.
submit -t 4000-0 -- true
ends 'a time limit above ten years' "$job" 0
undisturbed 'beside it all is well'
submit --grace 4000-0 -- true
ends 'a grace above ten years' "$job" 0
submit -t 36000-0 --grace 36000-0 -- true
ends 'both of almost a hundred' "$job" 0
submit -G 2 --prerun 4000-0 -- true
ends 'a pre-run above ten years' "$job" 0
refuses 2 'above a hundred years' 'time' submit -t 40000-0 -- true
undisturbed 'beside them all is well'

# Paths that grow when their patterns are filled in.
name=$(printf '%0255d' 0)
pattern=$(printf '%%x%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)
refuses 2 'a path that would be too long' 'once its patterns are filled in' submit -J "$name" -o "$pattern" -- true
refuses 2 'also for errors' "field 'stderr'" submit -J "$name" -e "$pattern" -- true
refuses 2 'also with the name of a node' "field 'stdout'" submit -o "$(echo "$pattern" | tr x N)" -- true
submit -J short -o "/dev/null" -e "$(echo "$pattern" | tr x %)" -- true
ends 'many patterns that stay short' "$job" 0
submit -J "$name" -o "$scratch/%x%x" -- true
"$SHAREWELL" wait "$job" >/dev/null
works 'a name that no file system has fails its job alone' 'FAILED' show "$job"
undisturbed 'beside them all is well'

# As many variables as a request may have; the controller adds its own.
variables() { seq -f '--env V%g=1' 1 "$1"; }
# shellcheck disable=SC2046 # each word is one
submit --export NONE $(variables 4096) --slurm-env -a 3-3 -- sh -c 'test "$SHAREWELL_ARRAY_INDEX" = 3 && test "$V4096" = 1'
ends 'an array with 4,096 variables' "$job" 0
# shellcheck disable=SC2046
submit --export NONE $(variables 4096) -G 2 --prerun 5m -- sh -c 'test "$V4096" = 1 && echo pre-run: "$SHAREWELL_PRERUN"'
ends 'a pre-run with 4,096 variables' "$job" 0
works 'which knows that it is one' 'pre-run: 1' logs "$((job - 1))"
# shellcheck disable=SC2046
refuses 2 'one more' 'at most 4096' submit --export NONE $(variables 4097) -- true
undisturbed 'beside them all is well'

# Words: as many, and as long, as a request may have.
{
	printf 'command:\n- "true"\n'
	seq -f '- "%g"' 1 4095
} >words.yaml
submit --export NONE words.yaml
ends 'a command of 4,096 words' "$job" 0
long=$(printf '%0131064d' 0)
printf 'command: ["true"]\nenv:\n  LONG: "%s"\n' "$long" >long.yaml
submit --export NONE long.yaml
ends 'a variable as long as the kernel takes it' "$job" 0
printf 'command: ["true", "%s"]\n' "$long" >long.yaml
submit --export NONE long.yaml
ends 'a word, too' "$job" 0
printf 'command: ["true"]\nworkdir: "/%s"\n' "$(printf '%04094d' 0)" >deep.yaml
submit --export NONE deep.yaml
"$SHAREWELL" wait "$job" >/dev/null
works 'a folder that cannot be fails its job alone' 'FAILED' show "$job"
undisturbed 'beside them all is well'

# Many large orders at once travel in parts.
printf 'command: ["true"]\narray: "0-39"\nenv:\n  A: "%s"\n  B: "%0100000d"\n' "$(printf '%0120000d' 0)" 0 >large.yaml
submit --export NONE large.yaml
ends 'forty orders of 220 KB' "$job-$((job + 39))" 0
undisturbed 'beside them all is well'

"$SHAREWELL" cancel "$quiet"
end
