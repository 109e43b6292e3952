#!/bin/sh
# Every function that <sharewell/policy.h> declares is exported by the program, so that a policy loaded at run time finds it.
set -u
[ -n "${SHAREWELL:-}" ] || { echo "skipped: the program is not built here"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
$CC -E -P -I"$SW_SOURCE_DIR/include" "$SW_SOURCE_DIR/include/sharewell/policy.h" | grep -vE '^(static|typedef|[[:space:]]|\}|struct \w+ \{)' |
	grep -oE '\bsw_[a-z0-9_]+\(' | tr -d '(' | sort -u >"$scratch/declared"
nm -D --defined-only "$SHAREWELL" | awk '{print $NF}' | sort -u >"$scratch/exported"
count=$(wc -l <"$scratch/declared")
[ "$count" -gt 20 ] || { echo "found only $count functions in policy.h"; exit 1; }
missing=$(comm -23 "$scratch/declared" "$scratch/exported")
[ -z "$missing" ] || { printf 'declared in policy.h, but not exported by the program:\n%s\n' "$missing"; exit 1; }
echo "$count functions of the SDK are exported"
