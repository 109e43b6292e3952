#!/bin/sh
# The tutorial is true: every block of docs/write-a-policy.md is built and run, what it prints is compared, and so are the claims of its text.
# Usage: write-a-policy.sh [--update]   (--update writes what the program prints into the page)
set -u
: "${SW_SOURCE_DIR:=$(cd "$(dirname "$0")/../.." && pwd)}" "${SHAREWELL:=$SW_SOURCE_DIR/build/release/sharewell}"
export SW_SOURCE_DIR SHAREWELL
SW_PAGE_FOLDER=$(mktemp -d)
export SW_PAGE_FOLDER
trap 'rm -rf "$SW_PAGE_FOLDER"' EXIT
status=0
cc=${CC:-cc}

# check <aim> <command...>
check() {
	aim=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok - $aim"
	else
		printf '%s\n' "not ok - $aim" "$output" | sed '2,$s/^/# /'
		status=1
	fi
}

python3 "$SW_SOURCE_DIR/tests/e2e/page.py" "$@" "$SW_SOURCE_DIR/docs/write-a-policy.md" || status=1
cd "$SW_PAGE_FOLDER" || exit 1

# The folder as a reader would copy it, built by its own Makefile.
example() {
	cp -r "$SW_SOURCE_DIR/examples/policy" example && make -C example CC="$cc" CPPFLAGS="-I$SW_SOURCE_DIR/include -Werror"
}
check "examples/policy builds against the header alone" example

# few.c is preemptive by now: this is the first version again, under another name.
first_version() {
	sed 's/{.preemptive = true}/{0}/; s/"few"/"first"/' few.c >first.c && "$cc" -shared -fPIC -I"$SW_SOURCE_DIR/include" -o first.so first.c
}
check "the first policy still builds" first_version
# All of these are called patient.
"$SHAREWELL" sim --trace jobs.csv --cluster 8x8 --world ideal --json --policy fifo,first.so,few.so,patient.so,grow.so >results.json
"$SHAREWELL" sim --trace jobs.csv --cluster 8x8 --world ideal --json --policy example/patient.so >both.json
"$SHAREWELL" sim --trace jobs.csv --cluster 8x8 --world ideal --json --policy patient.so --set patient.patience=1h >hasty.json
for placement in count onenode.so; do
	"$SHAREWELL" sim --trace jobs.csv --cluster 8x8 --policy fjf --placement "$placement" --json >"$placement.json"
done

cat >claims.py <<'END'
import json

def read(path):
    text, at, found = open(path).read(), 0, {}
    while text[at:].strip():
        value, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
        at = len(text) - len(text[at:].lstrip()) + end
        for result in value if isinstance(value, list) else [value]:
            found[result["policy"]] = result
    return found

r = read("results.json")
both, hasty = read("both.json")["patient"], read("hasty.json")["patient"]
count, one = read("count.json")["fjf"], read("onenode.so.json")["fjf"]
average = {name: result["jct_avg_s"] for name, result in r.items()}
p99 = {name: result["jct_p99_s"] for name, result in r.items()}
claims = {
    "fewest GPUs first halves the average": average["first"] * 1.9 < average["fifo"],
    "preemption improves the average and worsens p99": average["few"] < average["first"] and p99["few"] > p99["first"],
    "patience improves p99 and costs no average": p99["patient"] < min(p99["first"], p99["few"]) and average["patient"] < average["few"],
    "an hour of patience more than doubles the average": hasty["jct_avg_s"] > 2 * average["patient"],
    "growing beats both": average["grow"] < min(average["few"], average["patient"]),
    "the example, which does both, is at least as good": both["jct_avg_s"] <= average["grow"],
    "one node for each job makes fjf faster": one["jct_avg_s"] < count["jct_avg_s"],
    "no job is refused in the end": one["finished"] == one["jobs"],
}
for text, holds in claims.items():
    print("ok" if holds else "not ok", "-", text)
raise SystemExit(0 if all(claims.values()) else 1)
END
python3 claims.py || status=1
exit "$status"
