#!/bin/sh
# The sample GPU jobs on the emulated driver: C and Python compute the same, every time, alone and beside each other.
. "$(dirname "$0")/lib.sh"
: "${SW_BUILD_DIR:=$SW_SOURCE_DIR/build/release}"
train=$SW_BUILD_DIR/examples/train
python=$SW_SOURCE_DIR/examples/gpu/train.py
export SHAREWELL_EMU='gpus=1;memory=2G;context=64M' SHAREWELL_EMU_STATE="$scratch/state"

# on_emulator <file> <command...>: its output into the file.
on_emulator() {
	file=$1
	shift
	LD_LIBRARY_PATH=$SW_BUILD_DIR/emu timeout 120 "$@" >"$scratch/$file" 2>"$scratch/$file.err"
}
hash_of() { sed -n 's/.* hash //p' "$scratch/$1"; }
same() { [ -n "$(hash_of "$1")" ] && [ "$(hash_of "$1")" = "$(hash_of "$2")" ]; }

on_emulator first "$train" --steps 40 --memory 2M
said $? 'the job in C trains' first first.err
on_emulator second "$train" --steps 40 --memory 2M && same first second
said $? 'it always computes the same' second second.err
on_emulator other "$train" --steps 41 --memory 2M && ! same first other
said $? 'another training has another hash' other other.err
on_emulator third python3 "$python" --steps 40 --memory 2M && same first third
said $? 'the job in Python computes the same' third third.err

on_emulator beside-1 "$train" --steps 40 --memory 2M --step-us 500 &
one=$!
on_emulator beside-2 python3 "$python" --steps 40 --memory 2M --step-us 500 &
two=$!
wait "$one" && wait "$two" && same first beside-1 && same first beside-2
said $? 'two jobs share the GPU and do not disturb each other' beside-1 beside-1.err

on_emulator full "$train" --memory 3G
[ $? -eq 1 ] && grep -q CUDA_ERROR_OUT_OF_MEMORY "$scratch/full.err"
said $? 'more memory than there is: the driver says so' full full.err
for word in lots '' -5 64MB 1e3 99999999999999999999 99999999999G; do
	on_emulator wrong "$train" --memory "$word"
	[ $? -eq 2 ] && grep -q "cannot be '$word': it takes a number such as" "$scratch/wrong.err" && [ ! -s "$scratch/wrong" ]
	said $? "--memory '$word' is refused" wrong wrong.err
done
on_emulator wrong "$train" --steps many
[ $? -eq 2 ] && grep -q "train: --steps cannot be 'many'" "$scratch/wrong.err"
said $? 'and so are steps that are no number' wrong wrong.err
on_emulator wrong python3 "$python" --memory lots
[ $? -eq 2 ] && grep -q "'lots' is no size" "$scratch/wrong.err"
said $? 'in Python, too' wrong wrong.err
env -u LD_LIBRARY_PATH "$train" >"$scratch/none" 2>"$scratch/none.err"
[ $? -eq 77 ] && [ -s "$scratch/none.err" ]
said $? 'without a driver, or with a real one, the job says so and ends with status 77' none none.err
end
