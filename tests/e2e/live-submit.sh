#!/bin/sh
# The many ways to describe a job: options, scripts, job files, arrays, dependencies.
. "$(dirname "$0")/lib.sh"
. "$SW_SOURCE_DIR/tests/e2e/lib-live.sh"
up

# The command line.
submit -J named -G 2 --env COLOUR=red -D / -A vision --comment 'a note' -t 10 -- sh -c 'echo $COLOUR in $PWD; echo $CUDA_VISIBLE_DEVICES | tr , "\n" | wc -l'
ends 'a job with options' "$job" 0
works 'has its environment and folder' 'red in /' logs "$job"
out_has 2
said $? 'and its GPUs'
works 'shows what it asked for' 'time_limit' show "$job"
out_has 'tenant vision' && out_has 'a note' && out_has 'Job '"$job"' named'
said $? 'with tenant, comment and name'
MINE=yes submit -- sh -c 'echo mine $MINE'
ends 'variables go along' "$job" 0
works 'with their values' 'mine yes' logs "$job"
MINE=yes submit --export NONE -- sh -c 'echo mine $MINE.'
ends 'by default' "$job" 0
works 'then they do not' 'mine .' logs "$job"
submit -t 1s --grace 1s -- sleep 30
run wait "$job"
[ "$status" -ne 0 ] && out_has TIMEOUT
said $? 'a time limit ends a job'
submit -o out-%j.txt -- sh -c 'echo to a file; echo and errors >&2'
ends 'output goes where it is told' "$job" 0
holds 'with the number of the job in its name' grep -q 'to a file' "out-$job.txt"
refuses 2 'and is told where' "it goes to 'out-%j.txt' in '$PWD'" logs "$job"
works 'the signal of a stop can be chosen' 'Submitted' submit --signal USR1@5 -- sh -c 'trap "echo caught; exit 11" USR1; while :; do sleep 0.1; done'
job=$(sed 's/.* //' "$scratch/out")
holds 'it runs' until_holds 20 is_state "$job" R
sleep 0.3
"$SHAREWELL" cancel "$job"
"$SHAREWELL" wait "$job" >/dev/null
works 'and the job hears it' 'caught' logs "$job"
run run -N 2 --gres=gpu:2 -n2 --nice -- sh -c 'echo $SHAREWELL_GPUS GPUs'
[ "$status" -eq 0 ] && out_has '4 GPUs' && err_has 'follows from its GPUs' && err_has 'its 2 tasks' && err_has '--nice is ignored'
said $? 'nodes and generic resources are GPUs, and what is ignored is said'
run submit -G many -- true
[ "$status" -eq 2 ] && err_has "'gpus' is 'many'" && ! err_has 'is ignored'
said $? 'what is no number of GPUs is refused, and not also passed over'
refuses 2 'nodes without GPUs' 'Ask for all its GPUs' submit -N 2 -- true
printf '#!/bin/sh\n#SBATCH --nodes=2\n' >nodes.sh
refuses 2 'also in a script' 'Ask for all its GPUs' submit nodes.sh
refuses 2 'a deadline that has passed' 'still to come' submit --deadline 2020-01-01T00:00 -- true
printf 'command: "true"\ndeadline: 2020-01-01T00:00:00Z\n' >late.yaml
refuses 2 'also in a job file' 'has passed' submit late.yaml
refuses 2 'a script that is nowhere' "cannot read the script 'nowhere.sh': No such file" submit nowhere.sh
run submit --test-only -- nowhere.sh
[ "$status" -eq 0 ]
said $? 'which as a command may be on the node'
run submit -a 0-99999 -- true
[ "$status" -eq 2 ] && err_has 'at most 10000' && ! err_has 'export NONE'
said $? 'too large an array is refused, and the environment is not blamed'
large=$(head -c 100000 /dev/zero | tr '\0' x)
LARGE_A=$large LARGE_B=$large LARGE_C=$large run submit -- true
[ "$status" -eq 2 ] && err_has "'--export NONE' leaves your environment out"
said $? 'which it is where it is too large'
works 'a test submits nothing' 'could be submitted' submit --test-only -- true
refuses 2 'and finds what cannot be, as a submit would' 'the job asks for 9 GPUs' submit --test-only -G 9 -- true

# Words of the command are its own.
run run -- echo -G 7 --help
[ "$status" -eq 0 ] && out_has '-G 7 --help'
said $? 'options behind the command are the command'"'"'s'
run run echo --json
[ "$status" -eq 0 ] && out_has '--json'
said $? 'also without two dashes'

# Scripts.
cat >job.sh <<'S'
#!/bin/sh
#SHAREWELL -J by-script --env NAME=script
#SBATCH --gres=gpu:2 --partition=fast
echo "$NAME $1 $SHAREWELL_GPUS"
#SHAREWELL -J too-late
exit 5
S
run run job.sh argument
[ "$status" -eq 5 ] && out_has 'script argument 2' && err_has "there are no partitions here: '--partition fast' is ignored"
said $? 'a script with directives'
run run --env NAME=line -G 1 job.sh x
[ "$status" -eq 5 ] && out_has 'line x 1'
said $? 'the command line wins over them'
submit -H job.sh
printf '#!/bin/sh\nexit 0\n' >job.sh
"$SHAREWELL" resume "$job"
ends 'a script that was submitted does not change any more' "$job" 5
printf '#!/usr/bin/env python3\nprint("from python")\n' >job.py && chmod +x job.py
run run ./job.py
[ "$status" -eq 0 ] && out_has 'from python'
said $? 'a script of another language'

# Job files.
printf 'name: by-file\ncommand: [sh, -c, "echo $PLACE; exit 2"]\ngpus: 1\nenv: {PLACE: file}\n' >job.yaml
run run job.yaml
[ "$status" -eq 2 ] && out_has file
said $? 'a job file'
run run --env PLACE=line job.yaml
[ "$status" -eq 2 ] && out_has line
said $? 'and the command line wins'
printf -- '- command: "true"\n- command: "true"\n  depends: ""\n' >two.yaml
works 'a file of several jobs' 'Submitted batch job' submit two.yaml
printf 'comand: x\n' >wrong.yaml
refuses 2 'an unknown field is named, with the nearest' "Did you mean 'command'?" submit wrong.yaml
printf 'command: [x\n' >wrong.yaml
refuses 2 'a file that is no YAML' "cannot read job file 'wrong.yaml'" submit wrong.yaml
refuses 2 'a file that is not there' "cannot read 'none.yaml'" submit none.yaml
refuses 2 'a wrong option' '--time cannot be' submit -t soon -- true
refuses 2 'more processors than there are' 'more processors than any node' submit -c 9999 -- true
refuses 2 'more memory than there is' 'more memory than any node' submit --mem 900T -- true
refuses 2 'a wrong dependency' 'depends' submit -d after:1 -- true

# Arrays and dependencies.
works 'an array' 'array of 5' submit -a 0-8:2 -- sh -c 'echo index $SHAREWELL_ARRAY_INDEX'
first=$(sed 's/Submitted batch job \([0-9]*\).*/\1/' "$scratch/out")
ends 'all of it ends' "$first-$((first + 4))" 0
holds 'each has its index' sh -c '"$0" logs "$1" | grep -q "index 4"' "$SHAREWELL" "$((first + 2))"
submit -a 0-4%1 -o at-once-%A-%a.txt -- sh -c 'mkdir alone && sleep 0.1 && rmdir alone && echo done'
ends 'one at a time, none meets another' "$job-$((job + 4))" 0
holds 'in files named by array and index' test -f "at-once-$job-4.txt"
refuses 2 'none at a time' 'At most 10000 jobs' submit -a 0-4%0 -- true
works 'an array with a pre-run' 'array of 3' submit -G 2 --prerun 5m -a 0-2 -- sh -c 'echo $SHAREWELL_PRERUN.'
first=$(sed 's/Submitted batch job \([0-9]*\).*/\1/' "$scratch/out")
out_has "jobs $first to $((first + 2)))"
said $? 'has one pre-run, which is not counted'
ends 'all of it ends' "$first-$((first + 2))" 0
works 'the pre-run went before' '1.' logs "$((first - 1))"
submit -H -- sh -c 'exit 1'
bad=$job
submit -d "afterok:$bad" -- true
never=$job
submit -d "afternotok:$bad" -- echo sorry
sorry=$job
works 'a dependency is a reason to wait' '(Dependency)' ps --noheader -j "$sorry"
"$SHAREWELL" resume "$bad"
ends 'what waits for a failure runs after it' "$sorry" 0
run wait "$never"
[ "$status" -ne 0 ] && out_has CANCELLED
said $? 'what waits for success never runs'
end
