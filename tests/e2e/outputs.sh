#!/bin/sh
# Outputs that cannot be written: found before the work where that is possible, told with status 1, and what was there before stays.
. "$(dirname "$0")/lib.sh"
"$SHAREWELL" trace generate jobs.csv --jobs 200 --gpus 32 || exit 1
set -- sim --trace jobs.csv --cluster 4x8 --policy las

refuses 1 'a report in a folder that is not there' "cannot write 'no/report.html'" "$@" --report no/report.html
err_has 'The folder must exist'
said $? 'with a hint'
refuses 1 'a table of jobs in a folder that is not there' "cannot write 'no/jobs.csv'" "$@" --jobs-out no/jobs.csv
refuses 1 'a trace in a folder that is not there' "cannot write 'no/x.csv'" trace generate no/x.csv --jobs 10
refuses 1 'a folder as a report' "cannot write '.'" "$@" --report .
refuses 1 'a file as a folder' "cannot write 'jobs.csv/report.html'" "$@" --report jobs.csv/report.html
refuses 1 'an output without a name' "cannot write ''" "$@" --report ''
refuses 1 'found before the trace is read' "cannot write 'no/report.html'" sim --trace none.csv --cluster 4x8 --policy las --report no/report.html
refuses 2 'the trace itself is not overwritten' 'that file is also read' "$@" --report jobs.csv
refuses 2 'nor by a conversion' 'that file is also read' trace convert jobs.csv -o ./jobs.csv
refuses 2 'two outputs in one file' 'the same file' "$@" --report both --jobs-out both
refuses 2 'a table and the events in one file' '--jobs-out and --events-out are the same file' "$@" --events-out both --jobs-out both
refuses 2 'two outputs on standard output' 'standard output is wanted twice' "$@" --json --jobs-out -
refuses 2 'two names for one output' 'two places to write to' trace generate one.csv -o two.csv
[ "$(id -u)" -eq 0 ] || {
	mkdir locked && chmod a-w locked
	refuses 1 'a folder that may not be written' "cannot write 'locked/report.html'" "$@" --report locked/report.html
}

run "$@" --report /dev/full
[ "$status" -eq 1 ] && out_has 'las' && err_has "cannot write '/dev/full'"
said $? 'a full disk is told, and the table is there all the same'
run trace convert jobs.csv -o /dev/full
[ "$status" -eq 1 ] && err_has "cannot write '/dev/full'"
said $? 'a full disk while converting'
for command in 'policies' 'help sim' 'trace stats jobs.csv' 'trace check jobs.csv' 'completion zsh' 'sim -t jobs.csv -c 4x8 -p las --json'; do
	# shellcheck disable=SC2086
	"$SHAREWELL" $command >/dev/full 2>"$scratch/err"
	[ $? -eq 1 ] && err_has 'cannot write standard output'
	said $? "standard output is full: $command"
done

# A limit on the size of files is as good as a full disk.
limited() {
	(ulimit -f 8 && exec "$SHAREWELL" "$@") >"$scratch/out" 2>"$scratch/err"
}
mkdir full && echo precious >full/report.html
limited "$@" --report full/report.html
[ $? -eq 1 ] && err_has "cannot write 'full/report.html'" && [ "$(cat full/report.html)" = precious ] && [ "$(ls -A full)" = report.html ]
said $? 'on a full disk the file that was there stays, and nothing is left beside it'
limited trace generate full/x.csv.gz --jobs 100000
[ $? -eq 1 ] && err_has "cannot write 'full/x.csv.gz'" && [ "$(ls -A full)" = report.html ]
said $? 'a compressed trace that does not fit leaves nothing'

echo precious >kept.html
chmod 640 kept.html
run "$@" --report kept.html
[ "$status" -eq 0 ] && grep -q '<html' kept.html && [ "$(stat -c %a kept.html)" = 640 ]
said $? 'an existing file is replaced and keeps its mode'
echo precious >kept.html
refuses 2 'a run that fails replaces nothing' 'las.thresholds must grow' "$@" --report kept.html --set las.thresholds=2,1
[ "$(cat kept.html)" = precious ]
said $? 'the old file is still there'

# A reader that goes away is no news.
{
	"$SHAREWELL" trace generate --jobs 50000 2>"$scratch/err"
	echo $? >"$scratch/status"
} | head -n 1 >/dev/null
[ "$(cat "$scratch/status")" -eq 141 ] && [ ! -s "$scratch/err" ]
said $? 'a reader that goes away ends the program quietly'
end
