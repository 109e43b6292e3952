#!/bin/sh
# The demo shows a live cluster that survives, compares policies on its own history, leaves a report where it says, and what it proposes to try works.
. "$(dirname "$0")/lib.sh"
export SHAREWELL
"$SW_SOURCE_DIR/tools/demo" "$scratch/demo" >"$scratch/out" 2>"$scratch/err"
[ $? -eq 0 ] && [ ! -s "$scratch/err" ] && out_has "Open $scratch/demo/report.html"
said $? 'it runs, and says where the report is'
[ "$(grep -cE '^ *[0-9]+ [a-z]+ +CD ' "$scratch/out")" -eq 10 ] && grep -qE '^ *9 fails +F .*3:0' "$scratch/out"
said $? 'jobs end as they should although the controller was killed'
[ "$(grep -cE '^│ (really \(sharewell\)|fifo|las|srtf) .* 12/12 ' "$scratch/out")" -eq 4 ]
said $? 'policies are compared on the history of the cluster itself, beside what really happened'
if [ -x "$(dirname "$SHAREWELL")/examples/train" ]; then
	out_has 'Its weights are those of a training that was not disturbed, bit for bit.'
	said $? 'a training leaves its GPU and comes back'
fi
rows=$(grep -cE '^│ (fifo|fjf|sjf|srtf|srsf|las|gittins) ' "$scratch/demo/table.txt")
[ "$rows" -ge 7 ] && ! grep -q chaos "$scratch/demo/table.txt"
said $? 'all policies are compared on a larger trace, but for the one that misbehaves'
holds 'the report is a page' grep -q '</html>' "$scratch/demo/report.html"
cp "$scratch/out" shown
grep -F "  $SHAREWELL " shown >next
[ "$(wc -l <next)" -eq 3 ]
said $? 'three commands are proposed'
while read -r line; do
	holds "it works: $(printf '%s' "$line" | sed "s|$SHAREWELL|sharewell|; s|$scratch/||; s/ *#.*//")" sh -c "$line"
done <next
end
