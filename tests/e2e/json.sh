#!/bin/sh
# Everything that is JSON can be read as such, has the keys that scripts rely on, and stands alone on standard output.
. "$(dirname "$0")/lib.sh"
"$SHAREWELL" trace generate jobs.csv --jobs 200 --gpus 32 || exit 1

run sim -t jobs.csv -c 4x8 -p srtf,las,fifo --json --seed 18446744073709551615 --set las.tick=10s
cp "$scratch/out" results
holds 'sim: one object per policy and line, all keys, in the order given' python3 - <<'END'
import json
lines = open("results").read().splitlines()
results = [json.loads(line) for line in lines]
assert [r["policy"] for r in results] == ["srtf", "las", "fifo"], results
keys = """policy trace jobs finished jct_avg_s jct_median_s jct_p95_s jct_p99_s queue_avg_s makespan_s preemptions gpu_utilization log_hash seed
cpu_s max_rss_bytes""".split()
for r in results:
    missing = [key for key in keys if key not in r]
    assert not missing, missing
    assert r["jobs"] == r["finished"] == 200 and r["trace"] == "jobs.csv" and r["seed"] == "18446744073709551615", r
    assert len(r["log_hash"]) == 16 and int(r["log_hash"], 16) and 0 < r["gpu_utilization"] <= 1 and r["max_rss_bytes"] > 1e6, r
    assert 0 < r["jct_median_s"] <= r["jct_p95_s"] <= r["jct_p99_s"], r
    assert any("setting: las.tick=10s" in line for line in r["assumptions"]) == (r["policy"] == "las"), r["assumptions"]
END
holds 'sim: nothing on standard error' test ! -s "$scratch/err"
run sim -t jobs.csv -c 4x8 -p srtf,las,fifo --json --seed 18446744073709551615 --set las.tick=10s --threads 1
cp "$scratch/out" again
holds 'the same seed gives the same results, however many threads' python3 - <<'END'
import json
measured = {"cpu_s", "max_rss_bytes", "decision_p99_ns"}
one, two = ([{k: v for k, v in json.loads(line).items() if k not in measured} for line in open(name)] for name in ("results", "again"))
assert one == two
END
run sim -t jobs.csv -c 1x2 -p las,chaos --set chaos.manners=0 --json
cp "$scratch/out" results
holds 'sim: notes tell of refused jobs and of a policy that was thrown out' python3 - <<'END'
import json
las, chaos = (json.loads(line) for line in open("results"))
assert las["refused"] > 0 and "more GPUs than the cluster's 2" in las["notes"], las
assert "replaced by 'fifo'" in chaos["notes"], chaos
END
run trace stats jobs.csv --json --gpus 32
holds 'trace stats' sh -c "python3 -c 'import json,sys; s = json.load(sys.stdin); assert s[\"jobs\"] == 200' <'$scratch/out'"
sed 's/^3,/2,/' jobs.csv >twice.csv
run trace check twice.csv --json
[ "$status" -eq 2 ]
said $? 'trace check: errors are told by the exit status too'
run trace check twice.csv --json
cp "$scratch/out" verdict
holds 'trace check: the problems with their lines' python3 - <<'END'
import json
v = json.load(open("verdict"))
assert v["errors"] == 1 and v["problems"][0]["line"] == 5 and v["problems"][0]["severity"] == "error", v
END
run policies --json
cp "$scratch/out" list
run sim -t jobs.csv -c 1x8 -p philly,fjf --json --quota tenant01=2 --quota tenant02=2
cp "$scratch/out" quotas
holds 'sim: with quotas, what jobs waited for' python3 - <<'END'
import json
lent, strict = (json.loads(line) for line in open("quotas"))
for r in lent, strict:
    assert r["share_delay_avg_s"] > 0 and abs(r["share_delay_avg_s"] + r["place_delay_avg_s"] - r["queue_avg_s"]) < 0.01, r
assert lent["share_delay_avg_s"] < strict["share_delay_avg_s"], (lent, strict)
assert "share_delay_avg_s" not in json.loads(open("results").readline())
END
run sim --policies --json
holds 'both lists of policies are the same' cmp list "$scratch/out"
holds 'policies: names, parameters, placement rules, worlds' python3 - <<'END'
import json
v = json.load(open("list"))
las = next(p for p in v["policies"] if p["name"] == "las")
assert any(p["name"] == "thresholds" and p["preset"] == "3250,7200" for p in las["parameters"]), las
assert not next(p for p in v["policies"] if p["name"] == "chaos")["in_all"]
assert {p["name"] for p in v["placements"]} >= {"count", "yarn", "pack", "spread", "skew"}
assert {w["name"] for w in v["worlds"]} >= {"ideal", "measured", "muri"} and sum(w["default"] for w in v["worlds"]) == 1
END
cat >learned.json <<'END'
{"format": 1, "observations": [
{"way": "mps", "jobs": ["data2vec", "mobilenet_v2"], "which": 0, "slowdowns": [1.5, 1.4, 1.45], "samples": [60, 60, 60]}
]}
END
run contention data2vec mobilenet_v2 --learned learned.json
out_has 'Measured sets: 1. Each predicted from the others: wrong by 31.0 % in the median'
said $? 'contention: how wrong it is stands below the answers'
run contention data2vec mobilenet_v2 --learned learned.json --json
cp "$scratch/out" contention
holds 'contention: all ways, what was learned and what the profiles say' python3 - <<'END'
import json
slices, mps, gate = json.load(open("contention"))
assert [slices["way"], mps["way"], gate["way"]] == ["slices", "mps", "gate"]
job, other = mps["jobs"]
assert job["measured_times"] == 3 and job["measured_steps"] == 180 and 1.35 < job["slowdown"] < 1.5 and job["slowdown_by_profile"] == 1, job
assert other["measured_times"] == 0 and other["learned_from_sets"] == 1, other
assert mps["error"]["sets"] == 1 and mps["error"]["worst_set"] == "data2vec beside mobilenet_v2 (mps)" and slices["error"]["sets"] == 0, mps
assert gate["jobs"][1]["slowdown"] > 2 and not gate["jobs"][1]["stands_still"] and slices["jobs"][0]["learned_from_sets"] == 0
END
run contention resnet50 mobilenet_v2 --way gate --json
cp "$scratch/out" gate
holds 'contention: a job that gives way to a model that is never idle stands still' python3 - <<'END'
import json
first, other = json.load(open("gate"))[0]["jobs"]
assert other["stands_still"] and not first["stands_still"]
END
end
