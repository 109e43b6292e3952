#!/bin/sh
# The pictures of README.md and docs/ show what the program prints and what was measured: each is drawn anew and compared.
. "$(dirname "$0")/lib.sh"
pictures=$SW_SOURCE_DIR/tools/pictures
"$pictures" --list | sort >"$scratch/names"
holds 'there are pictures' test -s "$scratch/names"
for name in $(cat "$scratch/names"); do
	"$pictures" --check --program "$SHAREWELL" "$name" >"$scratch/out" 2>"$scratch/err"
	said $? "$name.svg shows what its source says; if not, \`make pictures\` draws it anew"
done
sed 's/$/.svg/' "$scratch/names" >"$scratch/files"
grep -ohE 'img/[a-z]+\.[a-z]+' "$SW_SOURCE_DIR"/README.md "$SW_SOURCE_DIR"/docs/*.md | sed 's,^img/,,' | sort -u >"$scratch/shown"
holds 'the pages show these pictures and no others' cmp "$scratch/shown" "$scratch/files"
ls "$SW_SOURCE_DIR/docs/img" | sort >"$scratch/there"
holds 'and there are no others' cmp "$scratch/there" "$scratch/files"
# A page that says something else than its picture is noticed.
cp -r "$SW_SOURCE_DIR/docs" docs
sed -i 's/^| `fifo` | [0-9.]*/| `fifo` | 99.99/' docs/comparison.md
"$pictures" --check --docs docs comparison >"$scratch/out" 2>"$scratch/err"
[ $? -eq 1 ] && out_has 'not ok'
said $? 'a page that was changed without its picture is told'
"$pictures" nothing >"$scratch/out" 2>"$scratch/err"
[ $? -eq 2 ] && err_has "there is no picture 'nothing'"
said $? 'a picture that is not there is refused by name'
end
