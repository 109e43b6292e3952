#!/bin/sh
# The demo shows all policies, leaves a report where it says, and what it proposes to try works.
. "$(dirname "$0")/lib.sh"
export SHAREWELL
"$SW_SOURCE_DIR/tools/demo" "$scratch/demo" >"$scratch/out" 2>"$scratch/err"
[ $? -eq 0 ] && [ ! -s "$scratch/err" ] && out_has "Open $scratch/demo/report.html"
said $? 'it runs, and says where the report is'
rows=$(grep -cE '^│ (fifo|fjf|sjf|srtf|srsf|las|gittins) ' "$scratch/out")
[ "$rows" -ge 7 ] && ! out_has chaos
said $? 'all policies are compared, but for the one that misbehaves'
holds 'the report is a page' grep -q '</html>' "$scratch/demo/report.html"
cp "$scratch/out" shown
grep -F "  $SHAREWELL " shown >next
[ "$(wc -l <next)" -eq 3 ]
said $? 'three commands are proposed'
while read -r line; do
	holds "it works: $(printf '%s' "$line" | sed "s|$SHAREWELL|sharewell|; s|$scratch/||; s/ *#.*//")" sh -c "$line"
done <next
end
