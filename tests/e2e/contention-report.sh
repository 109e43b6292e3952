#!/bin/sh
# The report of what jobs on one GPU do to each other: from made-up measurements of worlds of which the answer is known, it compares, holds out, draws, and fills in its page.
. "$(dirname "$0")/lib.sh"
report=$SW_SOURCE_DIR/bench/gpu/contention_report.py
# report <arguments...>: as run() does for the program.
report() {
	timeout 300 python3 "$report" "$@" --sharewell "$SHAREWELL" >"$scratch/out" 2>"$scratch/err"
	status=$?
}
# fails <aim> <text on standard error> <arguments...>
fails() {
	aim=$1 text=$2
	shift 2
	report "$@"
	[ "$status" -ne 0 ] && err_has "$text" && [ ! -s "$scratch/out" ]
	said $? "$aim"
}

# world.py OUT NOISE: pairs as contention.py prints them. Each model suffers and hurts in its own measure, on top of a cost of sharing; NOISE is the deviation of what is measured. Beside ResNet-50
# others stand still when they give way.
cat >world.py <<'END_OF_WORLD'
import itertools, math, random, sys
noise, chance = float(sys.argv[1]), random.Random(5)
models = ("resnet", "mobilenet", "transformer", "speech", "dlrm", "deepfm")
suffers, hurts = ({model: chance.uniform(0, 0.25) for model in models} for _ in range(2))
def slow(base, job, other):
    return base * math.exp(suffers[job] + hurts[other] + chance.gauss(0, noise))
for way, base in (("slices", 1.8), ("gate", 1.0), ("mps", 1.3)):
    for model in models:
        print(f"alone-{way},{model},,50.000,49.000,40")
    for a, b in itertools.product(models, models) if way == "gate" else itertools.combinations_with_replacement(models, 2):
        still = way == "gate" and a == "resnet"
        second = 2e10 if still else slow(2.4 if way == "gate" else base, b, a)
        print(f"{way},{a},{b},{slow(base, a, b):.4f},{second:.4f},40/{0 if still else 20}")
END_OF_WORLD
python3 world.py 0.02 >quiet.csv
python3 world.py 0.5 >loud.csv
printf 'before\n<!-- contention: begin -->\nold\n<!-- contention: end -->\nafter\n' >page.md
echo '{"profiles": {"dlrm": {"host_cpu": 0.104, "sm": 0.31, "l2": null}}}' >profiles.json
# A DLRM that hardly uses anything of its host: what its built-in profile says of its neighbours is wrong then.
cat >small.json <<'END_OF_PROFILES'
{"profiles": {"dlrm": {"host_cpu": 0.1, "host_mem": 0.01, "cores": 1.0, "host_bytes": 400000000, "step_ms": 9.5, "busy": 0.9, "sm": 0.2, "mem_pipe": 0.3, "l2": 0.2, "dram_read": 0.2, "dram_write": 0.1}}}
END_OF_PROFILES

report quiet.csv profiles.json --docs page.md --svg picture.svg --draws 3
cp "$scratch/out" quiet.md
[ "$status" -eq 0 ] && [ ! -s "$scratch/err" ]
said $? 'a complete measurement becomes a report'
cat >check.py <<'END_OF_CHECK'
import csv, json, re, statistics, subprocess, sys
text = open("quiet.md").read()
rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
pairs = [row for row in rows if len(row) == 5 and row[0] != "first" and not row[0].startswith("---")]
assert len(pairs) == 21 + 21 + 36, len(pairs)
# One pair, from its line in the file to its line in the report.
slow = next(line for line in csv.reader(open("quiet.csv")) if line[:3] == ["mps", "speech", "dlrm"])
said = json.loads(subprocess.run([sys.argv[1], "contention", "data2vec", "dlrm", "--way", "mps", "--json"], capture_output=True, text=True, check=True).stdout)[0]["jobs"]
mine = [row for row in pairs if row[:2] == ["speech", "DLRM"]][1]
assert mine[2] == f"{float(slow[3]):.2f}, {float(slow[4]):.2f}", mine
assert mine[3] == ", ".join(f"{job['slowdown']:.2f}" for job in said), mine
errors = [abs(job["slowdown"] - float(m)) / float(m) for job, m in zip(said, slow[3:5])]
assert mine[4].replace("**", "") == ", ".join(f"{error * 100:.0f} %" for error in errors), mine
assert ["ResNet-50", "DLRM"] in [row[:2] for row in pairs if row[2].endswith("stands still")]
# The median over all jobs of a way, from the figures in its rows (they are rounded).
wanted = statistics.median(float(cell.strip("* %")) for row in pairs[21:42] for cell in row[4].split(","))
found = next(float(row[2].strip(" %")) for row in rows if row[0] == "MPS" and len(row) == 4)
assert abs(wanted - found) <= 0.6, (wanted, found)
# Half of a quiet world teaches the rest; the profiles alone know nothing of it.
held = {row[0]: row for row in rows if len(row) == 6 and row[1] != "median of the medians" and not row[0].startswith("---")}
for way in ("time slices", "MPS", "all together"):
    learned, alone = float(held[way][1].strip("* %")), float(held[way][4].strip(" %"))
    assert learned < alone / 2, held[way]
    assert way == "MPS" or learned <= 10 < alone, held[way]
assert re.search(r" beside .*\): \d+ %$", held["all together"][5]), held
# DLRM's profile: what was not measured has no figure.
assert ["DLRM", "10", "-", "31", "-", "-", "-", "-", "-"] in rows
END_OF_CHECK
holds 'it says what was measured, what was predicted, how wrong that was, and how well the rest is learned' python3 check.py "$SHAREWELL"
holds 'the picture is XML with a cell for each job beside each' python3 -c "
import xml.etree.ElementTree as tree
root = tree.parse('picture.svg').getroot()
assert sum(e.get('class') == 'cell' for e in root) == 4 * 36
assert [e.text for e in root].count('still') == 6"
holds 'the page has it between the marks, and the rest as before' python3 -c "
page = open('page.md').read()
assert page == 'before\n<!-- contention: begin -->\n' + open('quiet.md').read() + '<!-- contention: end -->\nafter\n'
assert '](picture.svg)' in page"
grep '^mps' quiet.csv >mps.csv
report mps.csv --draws 2
cp "$scratch/out" mps.md
[ "$status" -eq 0 ] && out_has '| all | 42 |' && ! out_has 'time slices'
said $? 'a measurement that was cut off becomes a report of what is there'
report mps.csv --draws 2
holds 'the same measurement gives the same report' cmp mps.md "$scratch/out"
report mps.csv small.json --draws 1
out_has 'by the profiles measured here, before a pair was seen' && [ "$(grep -c '^| all | 42 |' "$scratch/out")" -eq 2 ] && [ "$(grep '^| all | 42 |' "$scratch/out" | sort -u | wc -l)" -eq 2 ]
said $? 'with measured profiles it also says what those predict, which is another thing'
grep '^mps' loud.csv >loud-mps.csv
report loud-mps.csv --draws 2
out_has '| all together | **'
said $? 'where nothing can be learned, the goal is missed and that stands out'
cat mps.csv mps.csv >twice.csv
report twice.csv mps.csv --draws 1
out_has 'Each pair was measured 3 times; the medians are shown.'
said $? 'what was measured again counts together'

fails 'a file that is not there' 'cannot read no.csv' no.csv
echo '[]' >none.json
fails 'profiles that are none' 'none.json is not what profiles.py prints' mps.csv none.json --draws 1
fails 'nothing was measured' 'there is nothing measured in' world.py
echo 'mps,resnet,dlrm,nan,1.0,3/4' >bad.csv
fails 'a slowdown that is none' 'bad.csv, line 1: expected way,first' bad.csv
echo 'mps,resnet,bert,1.0,1.0,3/4' >bad.csv
fails 'a model that there is not' "there is no model 'bert'" bad.csv
cp page.md whole.md
echo 'no marks' >page.md
fails 'a page without a place for it' 'page.md: expected the line <!-- contention: begin -->' mps.csv --docs page.md --draws 1
holds '  which is left as it is' grep -qx 'no marks' page.md
SHAREWELL=$scratch/nowhere
fails 'a program that is not there' 'cannot run' mps.csv
end
