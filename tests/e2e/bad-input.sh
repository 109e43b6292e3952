#!/bin/sh
# Whatever is wrong with the input: an exit status, the fact, where it is, a hint, and nothing half-written.
. "$(dirname "$0")/lib.sh"
"$SHAREWELL" trace generate jobs.csv --jobs 200 --gpus 32 || exit 1
gzip -k jobs.csv && xz -k jobs.csv && zstd -q jobs.csv || exit 1
head='submit_s,duration_s,gpus'
# wrong <aim> <text> <file>: as a trace of a simulation, with outputs that must not appear.
wrong() { refuses 2 "$1" "$2" sim --cluster 4x8 --policy las --report report.html --jobs-out out.csv --trace "$3"; }

# Traces.
for kind in gz xz zst; do
	size=$(wc -c <"jobs.csv.$kind")
	head -c $((size / 2)) "jobs.csv.$kind" >"cut.$kind"
	wrong "a truncated .$kind" "cannot read trace 'cut.$kind'" "cut.$kind"
done
size=$(wc -c <jobs.csv)
head -c $((size - 40)) jobs.csv >cut.csv
wrong 'a trace that ends in the middle of a line names the line' 'line 201' cut.csv
head -c 100000 /dev/urandom >noise
wrong 'random bytes' "cannot read trace 'noise'" noise
wrong 'a program' "cannot read trace '$SHAREWELL'" "$SHAREWELL"
: >empty
wrong 'an empty file' "cannot read trace 'empty'" empty
echo "$head" >bare.csv
wrong 'a head without jobs' "cannot read trace 'bare.csv'" bare.csv
{ echo "$head" && head -c 3000000 /dev/zero | tr '\0' 1 && echo; } >long.csv
wrong 'a gigantic line is named, and not kept in memory' 'line 2' long.csv
head -c 3000000 /dev/zero | tr '\0' , >commas
wrong 'a gigantic line of nothing but commas' "cannot read trace 'commas'" commas
echo 'the quick brown fox' >prose
wrong 'a text that is no trace' "cannot read trace 'prose'" prose
printf '%s\n' "$head" 0,10,1 5,20 >short.csv
wrong 'a row with a column missing names its line' 'line 3' short.csv
number() {
	printf '%s\n' "$head" 0,10,1 "$2" >number.csv
	wrong "$1" 'line 3' number.csv
}
number 'a negative submit time' -5,20,1
number 'a negative duration' 5,-20,1
number 'no GPUs' 5,20,0
number 'negative GPUs' 5,20,-4
number 'an absurd number of GPUs' 5,20,4000000000
number 'a number that overflows 64 bits' 99999999999999999999999999,20,1
number 'a number that overflows as nanoseconds' 9999999999999,20,1
number 'a duration that overflows' 5,1e300,1
number 'not a number' nan,20,1
number 'infinity' inf,20,1
number 'text where a number belongs' later,20,1
number 'an empty cell' 5,,1
printf '%s\n' "id,$head" 1,0,10,1 1,5,20,1 >twice.csv
run trace check twice.csv
[ "$status" -eq 2 ] && out_has 'twice.csv:3: error: job 1 is on line 2 too'
said $? 'contradictory rows are named with both lines'
printf '%s\n' "$head" -1,10,1 0,x,1 5,20,1 >many.csv
run trace check many.csv
[ "$status" -eq 2 ] && out_has 'many.csv:2: error: submit_s' && out_has 'many.csv:3: error: duration_s' && out_has '1 job read'
said $? 'a check goes on after the first error'
printf '{"format": 1, "observations": [{"way": "mps", "jobs": ["a", "b"], "which": 0, "slowdowns": [nan], "samples": [1]}]}' >learned.json
refuses 2 'a measured slowdown that is not a number' "line 1: this value is 'nan'" contention a b --learned learned.json
refuses 2 'measured slowdowns that are not there' 'no.json' contention a b --learned no.json
refuses 2 'more jobs on a GPU than are predicted' 'at most 8 jobs on one GPU' contention a b c d e f g h i
refuses 2 'a quota of a tenant without jobs' "no job of the trace is of tenant 'absent'" sim -t jobs.csv -c 1x8 -p philly --quota absent=3
refuses 2 'a quota that is no number' "a quota cannot be 'a=x'" sim -t jobs.csv -c 1x8 -p philly --quota a=x
refuses 2 'another format than the file has' 'cannot read trace' trace stats jobs.csv --format muri
refuses 2 'a trace that is not there' "cannot read trace 'no.csv'" trace check no.csv
refuses 2 'one member of an archive that is not there' 'jobs.csv.gz:absent' trace check jobs.csv.gz:absent

# Clusters and worlds.
printf '%s\n' "$head" 0,10,100 5,20,64 >large.csv
wrong 'no job fits the cluster' 'no job of trace' large.csv
grep -qF "more GPUs than the cluster's 32" "$scratch/err"
said $? 'and it says why'
cluster() { refuses 2 "$1" "$2" sim --trace jobs.csv --policy las --cluster "$3"; }
cluster 'a cluster of nothing' "'0x8'" 0x8
cluster 'a negative cluster' "'-1x8'" -1x8
cluster 'a cluster beyond all bounds' "'99999999999999999999x8'" 99999999999999999999x8
cluster 'a cluster that is neither shape nor file' "'8y8'" 8y8
printf 'nodes:\n  - {count: 2, gpus: 8, colour: red}\n' >cluster.yaml
cluster 'an unknown key in a cluster file names the line' 'line 2' cluster.yaml
printf 'name: x\nquantum: -1s\n' >world.yaml
refuses 2 'a negative time in a world file names the line' 'line 2' sim -t jobs.csv -c 4x8 -p las -w world.yaml

# Names: the nearest one is suggested.
refuses 2 'an unknown command' "Did you mean 'sharewell sim'?" simm
refuses 2 'an unknown command of a group' "Did you mean 'sharewell trace stats'?" trace stat
refuses 2 'an unknown option' "Did you mean '--policy'?" sim --polcy las
refuses 2 'an option that could be two' "Did you mean '--policy' or '--policies'?" sim --polic las
refuses 2 'an unknown letter' "unknown option '-Z'" sim -Z
refuses 2 'an unknown policy' "Did you mean 'gittins'?" sim -t jobs.csv -c 4x8 -p las,gitins
refuses 2 'an unknown placement rule' "Did you mean 'yarn'?" sim -t jobs.csv -c 4x8 -p las -P yran
refuses 2 'an unknown world' "did you mean 'measured'?" sim -t jobs.csv -c 4x8 -p las -w mesured
refuses 2 'an unknown format' "Did you mean 'tiresias'?" sim -t jobs.csv -c 4x8 -p las -f tiresas
refuses 2 'an unknown format to write' "Did you mean 'philly'?" trace convert jobs.csv --to phily
refuses 2 'an unknown parameter' "Did you mean 'las.thresholds'?" sim -t jobs.csv -c 4x8 -p las -s las.treshold=1
refuses 2 'a parameter of a policy without any' 'It takes no parameters' sim -t jobs.csv -c 4x8 -p fifo -s fifo.speed=1
refuses 2 'an unknown value of the world' "Did you mean 'world.quantum'?" sim -t jobs.csv -c 4x8 -p las -s world.quntum=1s
refuses 2 'a parameter of a policy that is not run names those that are' 'These are: las, srtf' sim -t jobs.csv -c 4x8 -p las,srtf -s gittins.tick=1s
refuses 2 'an unknown shell' "Did you mean 'bash'?" completion bsah
refuses 2 'help about an unknown command' "Did you mean 'sharewell trace'?" help trce
refuses 2 'a word that is like none' "'sharewell help' lists the commands" help nope

# Values.
refuses 2 'an option without its value' "option '--trace' needs a value" sim --trace
refuses 2 'a flag with a value' "option '--json' takes no value" sim --json=yes
refuses 2 'what is missing is named, with an example' 'needs --cluster SHAPE' sim --trace jobs.csv --policy las
refuses 2 'an argument too many' "unexpected argument 'more'" trace stats jobs.csv more
refuses 2 'a negative seed' "--seed cannot be '-1'" sim -t jobs.csv -c 4x8 -p las --seed -1
refuses 2 'a seed that overflows' "--seed cannot be '18446744073709551616'" sim -t jobs.csv -c 4x8 -p las --seed 18446744073709551616
refuses 2 'an absurd number of threads' '--threads cannot be' sim -t jobs.csv -c 4x8 -p las --threads 1000000
refuses 2 'a share above all' '--elastic cannot be' trace generate x.csv --elastic 1.5
refuses 2 'no jobs to generate' 'cannot generate a trace' trace generate x.csv --jobs 0
refuses 2 'more jobs than there may be' 'cannot generate a trace' trace generate x.csv --jobs 4000000000
refuses 2 'a setting without a value' 'it gives no value' sim -t jobs.csv -c 4x8 -p las -s las.tick
refuses 2 'a setting without a policy' 'there is no dot' sim -t jobs.csv -c 4x8 -p las -s tick=1s
refuses 2 'a parameter that is not a time' "las.tick cannot be 'soon'" sim -t jobs.csv -c 4x8 -p las -s las.tick=soon
refuses 2 'a parameter that overflows' 'las.thresholds' sim -t jobs.csv -c 4x8 -p las -s las.thresholds=1,99999999999999999999
refuses 2 'parameters that contradict each other' 'las.thresholds must grow' sim -t jobs.csv -c 4x8 -p las -s las.thresholds=7,3
refuses 2 'a file of numbers that is not there' "cannot read 'none'" sim -t jobs.csv -c 4x8 -p gittins -s gittins.samples=none
printf '1\n2\nfox\n' >words
refuses 2 'a file of numbers that has others' 'is not a number' sim -t jobs.csv -c 4x8 -p gittins -s gittins.samples=words
end
