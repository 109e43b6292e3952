#!/bin/sh
# Completions and the manual page can be read by those they are made for, and know what the parser knows.
. "$(dirname "$0")/lib.sh"
for shell in bash zsh fish; do
	works "a script for $shell" sharewell completion "$shell"
	cp "$scratch/out" "script.$shell"
	if command -v "$shell" >/dev/null; then
		holds "$shell can parse it" "$shell" -n "script.$shell"
	else
		count=$((count + 1))
		echo "ok $count - $shell can parse it # SKIP $shell is not installed"
	fi
done
# complete <words...>: what bash offers for the last word.
cat >complete.sh <<'END'
. ./script.bash
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
compopt() { :; }
_sharewell
printf '%s\n' "${COMPREPLY[@]}"
END
# offers <aim> <word> <words...>
offers() {
	aim=$1 word=$2
	shift 2
	bash complete.sh "$@" >"$scratch/out" 2>"$scratch/err"
	grep -qxF -- "$word" "$scratch/out"
	said $? "$aim"
}
offers 'commands' trace sharewell t
offers 'commands of a group' convert sharewell trace c
offers 'options' --placement sharewell sim --pl
offers 'words of an option' measured sharewell sim --world m
offers 'words behind an equals sign' yarn sharewell sim --placement = y
offers 'the last word of a list' las,srtf sharewell sim --policy las,sr
offers 'words of an argument' zsh sharewell completion z

works 'the manual page' '.TH SHAREWELL 1' help --man
cp "$scratch/out" sharewell.1
# Every option that a command's help shows is in the page and in the completions.
options=$(for command in sim policies 'trace stats' 'trace convert' 'trace generate' 'trace check'; do
	# shellcheck disable=SC2086
	"$SHAREWELL" help $command
done | grep -oE '^ .*  --[a-z-]+|^  -[A-Za-z], --[a-z-]+' | grep -oE -- '--[a-z-]+' | grep -v -- --help | sort -u)
lost=''
for option in $options; do
	grep -qF -- "$(printf %s "$option" | sed 's/-/\\-/g')" sharewell.1 && grep -qF -- "$option" script.bash && grep -qF -- "$option" script.zsh &&
		grep -qF -- "-l ${option#--}" script.fish || lost="$lost $option"
done
[ -z "$lost" ] && [ "$(printf '%s\n' "$options" | wc -l)" -gt 25 ]
said $? "every option of the help is in the page and the scripts$lost"
if command -v mandoc >/dev/null; then
	holds 'the page has no error' mandoc -T lint -W error sharewell.1
else
	count=$((count + 1))
	echo "ok $count - the page has no error # SKIP mandoc is not installed"
fi
end
