#!/bin/sh
# The checks of the house find what they are for: each gets a small tree with one fault in it, and must name the place.
set -u
tools=$SW_SOURCE_DIR/tools
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0
status=0

# expect <pass|fail> <text in the output> <aim> <command...>
expect() {
	wanted=$1 text=$2 aim=$3
	shift 3
	count=$((count + 1))
	output=$("$@" 2>&1) && outcome=pass || outcome=fail
	if [ "$outcome" = "$wanted" ] && printf '%s' "$output" | grep -qF -- "$text"; then
		echo "ok $count - $aim"
	else
		printf 'not ok %s - %s\n# wanted %s and "%s", got %s:\n%s\n' "$count" "$aim" "$wanted" "$text" "$outcome" "$output"
		status=1
	fi
}

# fresh: a tree in which everything is as it should be.
fresh() {
	tree=$scratch/tree
	rm -rf "$tree"
	mkdir -p "$tree/include/sharewell" "$tree/src/base" "$tree/src/core" "$tree/src/policy"
	printf '#include <stdint.h>\nuint32_t sw_view_jobs(void);\n' >"$tree/include/sharewell/policy.h"
	printf '#include <stddef.h>\nstatic inline size_t sw_one(void) { return 1; }\n' >"$tree/src/base/one.h"
	sed -i '1i #ifndef ONE_H\n#define ONE_H' "$tree/src/base/one.h"
	echo '#endif' >>"$tree/src/base/one.h"
	printf '#include <sharewell/policy.h>\n#include "base/one.h"\n' >"$tree/src/core/core.c"
	printf '#include <sharewell/policy.h>\nuint32_t sw_mine(void);\nuint32_t sw_mine(void) { return sw_view_jobs(); }\n' >"$tree/src/policy/mine.c"
}

fresh
expect pass 'keep to the table' 'layers: a clean tree passes' "$tools/check-layers" "$tree"
expect pass '2 compile alone' 'headers: a clean tree passes' "$tools/check-headers" "$tree"
expect pass 'nothing outside the SDK' 'symbols: a clean tree passes' "$tools/check-policy-symbols" "$tree"

printf '\n#include "core/core.h"\n' >"$tree/src/base/two.c"
expect fail 'src/base/two.c:2: "core/core.h": base may not use core' 'layers: base must not use core' "$tools/check-layers" "$tree"
fresh
printf '#  include "base/one.h"\n' >>"$tree/src/policy/mine.c"
expect fail 'src/policy/mine.c:4:' 'layers: a policy must not use base' "$tools/check-layers" "$tree"
fresh
printf '#include <time.h>\n' >>"$tree/src/core/core.c"
expect fail 'src/core/core.c:3: <time.h>' 'layers: core must not have a clock' "$tools/check-layers" "$tree"
fresh
printf '#include "base/now.h"\n' >>"$tree/src/core/core.c"
expect fail 'src/core/core.c:3: "base/now.h"' 'layers: nor the one of base' "$tools/check-layers" "$tree"
fresh
mkdir -p "$tree/src/agent/brain"
printf '#include "agent/folder.h"\n' >"$tree/src/agent/brain/brain.c"
expect fail 'src/agent/brain/brain.c:1: "agent/folder.h": agent/brain may not use agent' 'layers: a room of a folder has rules of its own' "$tools/check-layers" "$tree"
fresh
printf '#include "one.h"\n' >>"$tree/src/base/two.c"
expect fail 'src/base/two.c:1: "one.h": write it relative to src/' 'layers: includes name their folder' "$tools/check-layers" "$tree"
fresh
mkdir "$tree/src/attic" && : >"$tree/src/attic/old.c"
expect fail 'src/attic is not in the table' 'layers: a folder that the table does not place is refused' "$tools/check-layers" "$tree"
fresh
rm -r "$tree/src" && mkdir "$tree/src"
expect fail 'no sources' 'layers: an empty tree proves nothing' "$tools/check-layers" "$tree"

fresh
printf 'size_t sw_two(void);\n' >"$tree/src/base/two.h"
expect fail 'src/base/two.h: does not compile alone' 'headers: one that needs another is found' "$tools/check-headers" "$tree"
fresh
printf 'struct sw_twice { int x; };\n' >"$tree/src/base/twice.h"
expect fail 'src/base/twice.h: does not compile alone' 'headers: a missing guard is found' "$tools/check-headers" "$tree"

fresh
printf 'int sw_noise(void);\nint printf(const char *, ...);\nint sw_noise(void) { return printf("%%d", 1); }\n' >"$tree/src/policy/noise.c"
expect fail 'src/policy/noise.c: uses printf' 'symbols: a policy that prints is found' "$tools/check-policy-symbols" "$tree"
fresh
printf 'int sw_ledger_take(void);\nint sw_thief(void);\nint sw_thief(void) { return sw_ledger_take(); }\n' >"$tree/src/policy/thief.c"
expect fail 'src/policy/thief.c: uses sw_ledger_take' 'symbols: a policy that reaches into core is found' "$tools/check-policy-symbols" "$tree"

# tidy: a tree in which every check of tests/house/tidy has something to look at and nothing to say.
tidy() {
	rm -rf "$tree"
	mkdir -p "$tree/src/base" "$tree/docs"
	printf '/* One. */\nstruct sw_one { int x; };\nint sw_one_of(int x);\n' >"$tree/src/base/one.h"
	printf '#include "base/one.h"\nint sw_one_of(int x)\n{\n\treturn x > 0 ? sw_one_of(0) : 0;\n}\n' >"$tree/src/base/one.c"
	printf '#include "base/one.h"\nstatic int none(void)\n{\n\treturn sw_one_of(0);\n}\n' >"$tree/src/base/other.c"
	printf '# base\n`one.h`, `other.c`\n' >"$tree/src/base/README.md"
	printf '# Tour\n`sw_one_of()` (`src/base/one.c`)\n' >"$tree/docs/tour.md"
}
tidy_of() { "$SW_SOURCE_DIR/tests/house/tidy" --strict "$tree"; }
long=$(printf '%0120d' 0)
tidy
expect pass 'ok - tidy: 3 files' 'tidy: a clean tree passes' tidy_of
printf '/* %s */\n' "$long" >>"$tree/src/base/one.c"
expect fail 'src/base/one.c:6: width: 126 columns; a comment has 100' 'tidy: a long comment is found' tidy_of
tidy
printf '\tint x = %s%s;\n' "$long" "$long" >>"$tree/src/base/one.c"
expect fail 'src/base/one.c:6: width: 257 columns; code has 140' 'tidy: long code is found' tidy_of
tidy
printf '"/* %s" // x\n' "$long" >>"$tree/src/base/one.c"
expect pass 'ok' 'tidy: a comment within a string is none' tidy_of
tidy
printf 'struct sw_one { int y; };\n' >"$tree/src/base/two.h"
printf '`two.h`\n' >>"$tree/src/base/README.md"
expect fail 'src/base/two.h:1: tags: struct sw_one stands in src/base/one.h:2 too' 'tidy: a tag in two headers is found' tidy_of
tidy
printf 'extern const int sw_one_of;\n' >"$tree/src/base/two.h"
printf '`two.h`\n' >>"$tree/src/base/README.md"
expect fail 'src/base/two.h:1: names: sw_one_of is declared in src/base/one.h:3 too' 'tidy: one name for two things is found' tidy_of
tidy
printf 'int sw_two(void);\n' >>"$tree/src/base/one.h"
printf 'int sw_two(void)\n{\n\treturn 0; // sw_two()\n}\n' >>"$tree/src/base/one.c"
expect fail 'src/base/one.h:4: callers: sw_two() has no caller' 'tidy: a function without callers is found' tidy_of
tidy
rm "$tree/src/base/other.c"
printf '# base\n`one.h`\n' >"$tree/src/base/README.md"
expect fail 'src/base/one.h:3: callers: sw_one_of() is called in src/base/one.c only' 'tidy: so is one that should be static' tidy_of
mkdir -p "$tree/tests/unit/base"
printf '#include "base/one.h"\nint x = sw_one_of(0);\n' >"$tree/tests/unit/base/test_one.c"
expect pass 'ok' 'tidy: unless a test calls it' tidy_of
tidy
: >"$tree/src/base/three.c"
expect fail 'src/base/README.md:1: readme: does not name three.c' 'tidy: a file that the README leaves out is found' tidy_of
tidy
printf '`four.c`\n' >>"$tree/src/base/README.md"
expect fail 'src/base/README.md:3: readme: four.c is not there' 'tidy: a file that only the README knows is found' tidy_of
tidy
printf '\n`sw_two()` (`src/base/one.c`)\n' >>"$tree/docs/tour.md"
expect fail 'docs/tour.md:4: places: sw_two() is not in src/base/one.c' 'tidy: a function that stands elsewhere is found' tidy_of
tidy
mkdir -p "$tree/include/sharewell"
printf 'int sw_two(void);\n' >"$tree/include/sharewell/policy.h"
printf 'int none = sw_two();\n' >>"$tree/src/base/other.c"
printf '# Policies\n' >"$tree/docs/write-a-policy.md"
expect fail 'include/sharewell/policy.h:1: verbs: sw_two is used by no policy' 'tidy: a verb that no policy needs is found' tidy_of
printf '| `sw_two()` | the example |\n' >>"$tree/docs/write-a-policy.md"
expect pass 'ok' 'tidy: unless the table says what does' tidy_of
tidy
thing=ho # not whole here: this file is looked at, too
printf '/* W%s calls it. */\nconst char *x = "the job w%s waits";\n' "$thing" "$thing" >>"$tree/src/base/one.c"
expect fail 'src/base/one.c:6: words: "W'"$thing"'"' 'tidy: a thing that is called a person in a comment is found' tidy_of
expect fail 'src/base/one.c:7: words: "w'"$thing"'"' 'tidy: the same in a message' tidy_of
tidy
mkdir -p "$tree/tests/e2e"
printf 'true\nholds "the job w%s waits" true\n' "$thing" >"$tree/tests/e2e/one.sh"
expect fail 'tests/e2e/one.sh:2: words: "w'"$thing"'"' 'tidy: and in a script' tidy_of
tidy
printf '\nThe user w%s started it decides; a job w%s waits does not.\n' "$thing" "$thing" >>"$tree/docs/tour.md"
expect fail 'docs/tour.md:4: words: "w'"$thing"'"' 'tidy: and in a document' tidy_of
tidy
printf '\nThe user w%s started it decides.\n' "$thing" >>"$tree/docs/tour.md"
expect pass 'ok' 'tidy: but not where it is a person' tidy_of
words=$(printf 'word %.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13)
tidy
printf '\n- %s\n  %s.\n' "$words" "$words" >>"$tree/docs/tour.md"
expect fail 'docs/tour.md:4: sentences: a sentence of 26 words' 'tidy: a long sentence of a document is found' tidy_of
tidy
printf '/*\n * %s\n * %s. */\n' "$words" "$words" >>"$tree/src/base/one.c"
expect fail 'src/base/one.c:7: sentences: a sentence of 26 words' 'tidy: and of a comment' tidy_of
tidy
printf '\n%s.\n%s.\n\n| %s %s |\n\n```\n%s %s\n```\n' "$words" "$words" "$words" "$words" "$words" "$words" >>"$tree/docs/tour.md"
printf '/* %s\n *\t%s\n */\nint %s%s;\n' "$words" "$words" "$words" "$words" >>"$tree/src/base/one.c"
expect pass 'ok' 'tidy: tables and code have no sentences' tidy_of

# Reports as CTest writes them.
report() {
	case $2 in '<'*) content=$2 ;; *) content="<system-out>$2</system-out>" ;; esac
	printf '<testsuite><testcase name="one" status="%s">%s</testcase></testsuite>\n' "$1" "$content" >"$scratch/report.xml"
}
report run '[ RUN      ] a
[       OK ] a
[       OK ] b
[  SKIPPED ] c
[  PASSED  ] 2 test(s).
[  SKIPPED ] 1 test(s), listed below:'
expect pass '2 tests passed, 1 skipped' 'count: cases of a cmocka program' "$tools/count-tests" "$scratch/report.xml"
report run 'ok 1 - a
ok 2 - b # SKIP no device'
expect pass '1 tests passed, 1 skipped' 'count: lines of a script' "$tools/count-tests" "$scratch/report.xml"
report run 'all is well'
expect pass '1 tests passed, 0 skipped' 'count: any other program is one' "$tools/count-tests" "$scratch/report.xml"
report fail '[       OK ] a
[  FAILED  ] b
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] b'
expect fail '1 tests passed, 0 skipped, 1 failed' 'count: a failed case fails the count' "$tools/count-tests" "$scratch/report.xml"
report fail '[       OK ] a'
expect fail '(ended badly)' 'count: a program that crashed fails the count' "$tools/count-tests" "$scratch/report.xml"
report notrun '<skipped message="Unable to find executable"/>'
expect fail '(did not run)' 'count: a program that was not there fails the count' "$tools/count-tests" "$scratch/report.xml"
report notrun '<skipped message="SKIP_RETURN_CODE=77"/>'
expect fail '0 tests passed, 1 skipped' 'count: nothing that passed is no success' "$tools/count-tests" "$scratch/report.xml"

echo "1..$count"
exit "$status"
