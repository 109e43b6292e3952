#!/bin/sh
# bench/gpu/profiles.py: what models use alone becomes JSON, a table and profiles that the program reads, by way of what stands for Nsight Compute, and of a model that needs no GPU.
. "$(dirname "$0")/lib.sh"
# profiles <options...>: as run() does for the program.
profiles() {
	timeout 300 python3 "$SW_SOURCE_DIR/bench/gpu/profiles.py" --models python --seconds 0.2 "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}
# is <words of python about p, the profile>
is() { python3 -c "import json; p = json.load(open('$scratch/out'))['profiles']['python']; assert ($1), p"; }

# Runs the program, then does what $scratch/does says, else prints two kernels of each of the 16 parts of a step, of which the
# longer uses 10 % of everything and the other, a quarter as long, 60 %: 20 % in all.
mkdir "$scratch/bin"
cat >"$scratch/bin/ncu" <<'END_OF_NCU'
#!/bin/sh
here=$(dirname "$0")/..
while [ "$1" != --log-file ]; do shift; done
log=$2
while [ "$1" != --metrics ]; do shift; done
metrics=$(echo "$2" | tr , ' ')
shift 2
"$@"
[ ! -e "$here/does" ] || . "$here/does"
kernel() {
	for metric in $metrics; do
		unit=% value=$3
		[ "$metric" != gpu__time_duration.sum ] || unit=usecond value=$2
		printf '"%s","4711","python3","127.0.0.1","void f<(int)4, float>(T1 *, T2)","1","7","%s","%s","%s"\n' "$1" "$metric" "$unit" "$value"
	done
}
{
	echo '==PROF== Connected to process 4711 (/usr/bin/python3)'
	echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Metric Name","Metric Unit","Metric Value"'
	for id in 0 2 4 6 8 10 12 14 16 18 20 22 24 26 28 30; do
		kernel $id 0.08 10.00
		kernel $((id + 1)) 0.02 60.00
	done
} >"$log"
END_OF_NCU
chmod +x "$scratch/bin/ncu"
PATH=$scratch/bin:$PATH

profiles --store store.yaml
[ "$status" -eq 0 ] && grep -q '^| python | ' "$scratch/err"
said $? 'a model is measured, and there is a table'
holds 'its host, its kernels, and how busy it is by them' is "p['cores'] > 0 and p['host_bytes'] > 1 << 20 and p['kernels'] == 32 and 0 < p['busy'] <= 1 and not p['trouble']"
holds 'kernels weigh by their time, and count while there are any' is "all(abs(p[part] - 0.2 * p['busy']) < 1e-9 for part in ('sm', 'mem_pipe', 'l2', 'dram_read', 'dram_write'))"
works 'the program reads it' 'a profile that was measured here' contention python resnet50 --profiles store.yaml
profiles --in-turn
holds 'also where those under it start one by one' is "p['kernels'] == 32"
echo 'echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission" >"$log"; exit 1' >"$scratch/does"
profiles --store store.yaml
[ "$status" -eq 0 ] && err_has 'ERR_NVGPUCTRPERM' && is "p['cores'] > 0 and p['sm'] is None and 'ERR_NVGPUCTRPERM' in p['trouble'][0]"
said $? 'where counters may not be read, that is said, and the rest is there'
holds '  and only that is taken for measured' sh -c 'grep -q cores store.yaml && ! grep -Eq "sm:|busy:" store.yaml'
works '  by the program, too' 'a profile that was measured here' contention python resnet50 --profiles store.yaml
cat >"$scratch/does" <<'END_OF_ACT'
rm -f "$log"
echo 'cannot connect'
exit 9
END_OF_ACT
profiles
holds 'one that fails is heard' is "'cannot connect' in p['trouble'][0]"
profiles --models none
[ "$status" -eq 2 ] && err_has "there is no model 'none'"
said $? 'a model that is not known'
end
