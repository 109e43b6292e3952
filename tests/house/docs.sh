#!/bin/sh
# What the documents name is there: files they link to, paths and functions that they write in backquotes.
set -u
cd "$SW_SOURCE_DIR" || exit 1
status=0
count=0

# names <pattern> <file>: what the file says in this form, without duplicates.
names() { grep -oE "$1" "$2" | sort -u; }
missing() {
	echo "not ok - $1: $2 is not there"
	status=1
}

for page in README.md CONTRIBUTING.md $(find docs src examples -name '*.md' | sort); do
	folder=$(dirname "$page")
	for link in $(names '\]\([^)#: ]+' "$page" | cut -c3-); do
		[ -e "$folder/$link" ] || missing "$page" "$link"
	done
	[ "$page" != CONTRIBUTING.md ] || continue # the names in it are examples
	# shellcheck disable=SC2016
	for path in $(names '`(src|include|docs|tests|tools|data|examples|bench|cmake)/[A-Za-z0-9_./-]+`' "$page" | tr -d '`'); do
		[ -e "$path" ] || missing "$page" "$path"
	done
	# shellcheck disable=SC2016
	for function in $(names '`[a-z_0-9]+\(\)`' "$page" | tr -d '`()'); do
		grep -rqE "\b$function\(" src include || missing "$page" "$function()"
	done
	# shellcheck disable=SC2016
	for name in $(names '`(sw_[a-z_0-9]+|SW_[A-Z_0-9]+)`' "$page" | tr -d '`'); do
		grep -rqw -- "$name" src include || missing "$page" "$name"
	done
	count=$((count + 1))
done
[ "$count" -gt 5 ] || missing "the source" "more than $count documents"
[ "$status" -ne 0 ] || echo "ok - $count documents name nothing that is not there"
exit "$status"
