#!/bin/sh
# Every command does what its help says, on input that is right.
. "$(dirname "$0")/lib.sh"

works 'the version' 'sharewell ' --version
works 'help lists the commands' 'trace generate' --help
works 'help of a group' 'convert' trace --help
works 'help of a command shows its options' '--jobs-out FILE' sim --help
works 'help of a command by the help command, with examples' 'sharewell trace convert' help trace convert
"$SHAREWELL" sim --help >by-option && "$SHAREWELL" help sim >by-command
holds 'both ways to ask for help answer alike' cmp by-option by-command
run
[ "$status" -eq 2 ] && err_has 'Usage:'
said $? 'no command at all is a wrong use, and shows the commands'

# Traces.
works 'a trace is generated' '' trace generate jobs.csv --jobs 300 --gpus 32 --seed 7
works 'the same seed gives the same trace' '' trace generate -o again.csv --jobs 300 --gpus 32 --seed 7
holds 'byte by byte' cmp jobs.csv again.csv
works 'another seed gives another' '' trace generate other.csv --jobs 300 --gpus 32 --seed 8
holds 'which differs' sh -c '! cmp -s jobs.csv other.csv'
works 'without a name it goes to standard output' 'submit_s' trace generate --jobs 5
works 'all the shares of jobs' '' trace generate mixed.csv --jobs 200 --gpus 64 --opportunistic 0.2 --elastic 0.3 --deadlines 0.5 --soft 0.5 --tenants 3 --models resnet50:3,vgg16
works 'shows in its figures' 'elastic' trace stats mixed.csv
holds 'only the models that were named' sh -c '! grep -vE "resnet50|vgg16|submit_s" mixed.csv'
works 'figures of a trace, with the load on a cluster' 'offered load         9' trace stats jobs.csv --gpus 32
works 'on a single one' '% of 1 GPU' trace stats jobs.csv --gpus 1
! out_has '1 GPUs'
said $? 'which is not several'
for suffix in gz xz zst; do
	works "converted to .$suffix" '' trace convert jobs.csv -o "packed.$suffix"
	works "and back" '' trace convert "packed.$suffix" -o "unpacked.$suffix.csv"
	holds "nothing was lost through .$suffix" cmp jobs.csv "unpacked.$suffix.csv"
done
holds '.gz is what gzip reads' sh -c 'gzip -dc packed.gz | cmp - jobs.csv'
holds '.xz is what xz reads' sh -c 'xz -dc packed.xz | cmp - jobs.csv'
run trace convert jobs.csv --to tiresias -o tiresias.csv
[ "$status" -eq 0 ] && err_has 'note: tenant: left out (300 jobs)'
said $? 'what a format has no place for is named on standard error'
works 'a converted trace is recognised' "read as 'tiresias': 0 errors" trace check tiresias.csv
works 'a trace from standard input' '300 jobs read' trace check - <jobs.csv

# Simulations.
works 'one policy' 'las' sim --trace jobs.csv --cluster 4x8 --policy las
works 'the placement rule that was chosen is said, and why' 'Placement  pack, chosen because' sim --trace jobs.csv --cluster 4x8 --policy las
works 'in an ideal world it is another' 'Placement  count, chosen because' sim --trace jobs.csv --cluster 4x8 --policy las --world ideal
works 'one that was asked for needs no reason' 'Placement  yarn' sim --trace jobs.csv --cluster 4x8 --policy las --placement yarn
run sim --trace jobs.csv --cluster 4x8 --policy all --quiet
rows=$(grep -cE '^│ (fifo|fjf|sjf|srtf|srsf|las|gittins) ' "$scratch/out")
[ "$status" -eq 0 ] && [ "$rows" -ge 7 ] && ! out_has chaos
said $? 'all policies, but not the one that misbehaves'
run sim -t jobs.csv -c 4x8 -p srtf,fifo -p las -q
order=$(grep -oE '^│ (srtf|fifo|las) ' "$scratch/out" | tr -dc 'a-z ' | tr -s ' ')
[ "$order" = ' srtf fifo las ' ]
said $? 'rows stand in the order given'
works 'a policy that is thrown out is reported' "Note: policy 'chaos' was replaced by 'fifo'" sim -t jobs.csv -c 4x8 -p chaos --set chaos.manners=0 -q
works 'jobs larger than the cluster are reported as refused, with the reason' "more GPUs than the cluster's 2" sim -t jobs.csv -c 1x2 -p fifo -q
works 'racks, nodes and GPUs' '2 racks x 2 nodes x 8 GPUs' sim -t jobs.csv -c 2x2x8 -p fifo
works 'a cluster file' '292 GPUs, 3 racks' sim -t jobs.csv -c "$SW_SOURCE_DIR/examples/cluster.yaml" -p fifo
printf 'name: mine\nbase: ideal\nquantum: 10m\n' >mine.yaml
works 'a world file' 'World      mine' sim -t jobs.csv -c 4x8 -p las -w mine.yaml
works 'settings of a policy are said' 'Setting    las.thresholds=100,200' sim -t jobs.csv -c 4x8 -p las -s las.thresholds=1,2 -s las.thresholds=100,200
works 'settings of the world are said' 'quantum=1s' sim -t jobs.csv -c 4x8 -p las --set core.quantum=1s
works 'all assumptions' 'not modelled' sim -t jobs.csv -c 4x8 -p las --verbose
works 'what the simulations cost' 'jobs per CPU second' sim -t jobs.csv -c 4x8 -p las --stats
works 'every invariant after every step' 'finished' sim -t jobs.csv -c 4x8 -p las,srtf,gittins --validate -q
works 'times for people' ' min' sim -t jobs.csv -c 4x8 -p fifo -qH
run sim -t jobs.csv -c 4x8 -p fifo,las -q --progress=always
[ "$status" -eq 0 ] && err_has '600 jobs' && ! out_has 'jobs  '
said $? 'one progress bar for all policies, on standard error'
works 'no progress bar where there is no terminal' 'fifo' sim -t jobs.csv -c 4x8 -p fifo
printf '100\n200\n50\n' >samples
works 'a parameter that is a file' 'gittins.samples=samples' sim -t jobs.csv -c 4x8 -p gittins --set gittins.samples=samples
works 'what can be compared' 'las.thresholds=3250,7200' policies
works 'how jobs slow each other down' '3.39     0.69 host memory the profiles' contention DLRM DeepFM --way mps
works 'a model without a profile' 'this model was not measured' contention resnet50 zzz
works 'the same from sim' 'las.thresholds=3250,7200' sim --policies

# Files.
works 'the table of jobs' 'Jobs: jobs-out.csv' sim -t jobs.csv -c 4x8 -p las --jobs-out jobs-out.csv
holds 'has a line for each job and a head' sh -c '[ "$(wc -l <jobs-out.csv)" -eq 301 ] && head -n 1 jobs-out.csv | grep -q ^job_id,num_gpu,'
works 'of several policies' 'Jobs: two.csv' sim -t jobs.csv -c 4x8 -p las,fifo --jobs-out two.csv
holds 'names the policy in each line' sh -c '[ "$(grep -c ^las, two.csv)" -eq 300 ] && [ "$(grep -c ^fifo, two.csv)" -eq 300 ]'
works 'what was done to them' 'Events: events.csv' sim -t jobs.csv -c 4x8 -p las --events-out events.csv
holds 'has a start and an end of each' sh -c '[ "$(grep -c ,start$ events.csv)" -eq 300 ] && [ "$(grep -c ,end$ events.csv)" -eq 300 ] && head -n 1 events.csv | grep -qx time,job_id,event'
works 'the report' 'Report: report.html' sim -t jobs.csv -c 4x8 -p las,fifo --report report.html
holds 'contains the command that makes it again' grep -qF 'sharewell sim -t jobs.csv -c 4x8 -p las,fifo --report report.html' report.html
holds 'needs nothing from elsewhere' sh -c '! grep -oE "(src|href|url)[=(][\"'"'"']?(https?:)?//[^\"'"'"' )>]*" report.html | grep -v "www.w3.org"'
run sim -t jobs.csv -c 4x8 -p las --jobs-out -
[ "$status" -eq 0 ] && out_has 'job_id,num_gpu' && ! out_has 'avg JCT' && err_has 'avg JCT'
said $? 'a file on standard output has it for itself'
holds 'no temporary file is left' sh -c '! ls -A | grep "\.tmp$"'
end
