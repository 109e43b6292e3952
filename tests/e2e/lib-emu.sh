# Emulated GPUs behind the driver's own names, for programs that really compute. Sourced after lib-live.sh; skips the script where the emulated driver was not built.
: "${SW_BUILD_DIR:=$(dirname "$SHAREWELL")}"
unset SHAREWELL_GPU_LIBRARY SHAREWELL_GPU LD_PRELOAD CUDA_VISIBLE_DEVICES
if [ ! -e "$SW_BUILD_DIR/emu/libcuda.so.1" ]; then
	echo '1..0 # SKIP there is no emulated driver'
	exit 77
fi

# emulate <GPUs> <memory of each>: from here on the driver is the emulated one.
emulate() {
	export SHAREWELL_EMU="gpus=$1;memory=$2;context=16M;launch_us=0;copy_latency_us=0" SHAREWELL_EMU_STATE="$scratch/emu"
	export LD_LIBRARY_PATH="$SW_BUILD_DIR/emu"
}

# used: what the driver says is in use on each GPU, in MiB; used_of_all: their sum.
used() { timeout 60 python3 "$SW_SOURCE_DIR/tests/e2e/used.py"; }
used_of_all() { used | awk '{ for (i = 1; i <= NF; i++) sum += $i } END { if (NR != 1) exit 1; print sum }'; }

# compile <program in the scratch folder> <source>: one that finds the driver by itself.
compile() { ${CC:-cc} -O2 -I "$SW_SOURCE_DIR/src" -o "$scratch/$1" "$SW_SOURCE_DIR/$2" -ldl || exit 1; }

# submit_here <options...>: as submit. Variables of ours do not go into jobs by themselves.
submit_here() { submit --env SHAREWELL_EMU="$SHAREWELL_EMU" --env SHAREWELL_EMU_STATE="$SHAREWELL_EMU_STATE" "$@"; }

# prepare_training [<steps> <microseconds of each>]: $scratch/repeat.sh FOLDER NAME runs a short training over and over until there is FOLDER/NAME.end (how long that takes is not promised), with its process in NAME.pids and
# what it computes in NAME; `plain` has what it computes alone. computed NAME: it has ended one. hash_of FILE: the results in it, each once.
prepare_training() {
	compile train examples/gpu/train.c
	"$scratch/train" --steps "${1:-60}" --memory 6M >plain
	cat >"$scratch/repeat.sh" <<END
#!/bin/sh
echo \$\$ >>"\$1/\$2.pids"
until [ -e "\$1/\$2.end" ]; do
	"\$1/train" --steps ${1:-60} --memory 6M --step-us ${2:-5000} >>"\$1/\$2" || exit 1
done
END
	chmod +x "$scratch/repeat.sh"
}
computed() { grep -q hash "$scratch/$1"; }
hash_of() { sed -n 's/.* hash //p' "$1" | sort -u; }
