#!/bin/sh
# Policies and placement rules from shared objects: what works, and what is said when it does not.
. "$(dirname "$0")/lib.sh"
"$SHAREWELL" trace generate jobs.csv --jobs 200 --gpus 32 || exit 1
cc=${CC:-cc}
# build <name>: a shared object from the C text on standard input.
build() {
	cat >"$1.c"
	$cc -shared -fPIC -Wall -Wextra -Werror -I"$SW_SOURCE_DIR/include" -o "$1.so" "$1.c" || exit 1
}
build mine <<'END'
#include <sharewell/policy.h>
static const struct sw_order order = {.preemptive = true};
static const struct sw_param params[] = {{"knob", SW_PARAM_INTEGER, "1", "turns", 0, 10}};
static int64_t key(struct sw_view *view, const struct sw_job *job) { return job->gpus * sw_view_param(view, 0)->number; }
static const struct sw_policy mine = {.abi = SW_POLICY_ABI, .name = "mine", .about = "mine", .order = &order, .key = key, .params = params, .param_count = 1};
SW_EXPORT_POLICY(mine);
END
build where <<'END'
#include <sharewell/policy.h>
static bool place(const struct sw_view *view, const struct sw_job *job, uint32_t gpus, struct sw_spot *spot) { (void)job; return sw_spot_fill(view, spot, gpus); }
static const struct sw_placement where = {.abi = SW_POLICY_ABI, .name = "where", .about = "anywhere", .counts_only = true, .place = place};
SW_EXPORT_PLACEMENT(where);
END
set -- sim --trace jobs.csv --cluster 4x8
works 'a policy by its path, beside others' mine "$@" --policy fifo,./mine.so
works 'and by its name, with a parameter' 'mine.knob=3' "$@" --policy mine.so --set mine.knob=3
works 'a placement rule' 'Placement  where' "$@" --policy las --placement ./where.so
refuses 2 'a parameter that it does not have' "Did you mean 'mine.knob'?" "$@" --policy ./mine.so --set mine.knbo=3
refuses 2 'a file that is not there' "cannot load './none.so'" "$@" --policy ./none.so
echo text >text.so
refuses 2 'a file that is no shared object' "cannot load './text.so'" "$@" --policy ./text.so
refuses 2 'a placement rule as a policy is told where it belongs' 'use it with --placement' "$@" --policy ./where.so
refuses 2 'a policy as a placement rule' 'use it with --policy' "$@" --policy las --placement ./mine.so
echo 'int nothing;' | build nothing
refuses 2 'an object without a policy is told the symbol' "it has no symbol 'sharewell_policy'" "$@" --policy ./nothing.so
printf '#include <stddef.h>\nconst void *const sharewell_policy = NULL;\n' | build null
refuses 2 'a symbol that points nowhere' 'is NULL' "$@" --policy ./null.so
sed 's/SW_POLICY_ABI, .name = "mine"/SW_POLICY_ABI - 1, .name = "mine"/' mine.c | build old
refuses 2 'an older version of the interface is told what to do' 'docs/write-a-policy.md lists old verbs and new ones' "$@" --policy ./old.so
sed 's/"mine", .about/"My Policy", .about/' mine.c | build named
refuses 2 'a name that could not be typed' 'its name must be' "$@" --policy ./named.so
sed 's/.order = &order, .key = key,//; /^static const struct sw_order/d; /^static int64_t key/d' mine.c | build idle
refuses 2 'a policy that cannot schedule' "neither 'decide' nor 'order'" "$@" --policy ./idle.so
sed 's/"mine", .about/"fifo", .about/' mine.c | build fifo
refuses 2 'two policies of one name' "two different policies are called 'fifo'" "$@" --policy fifo,./fifo.so
end
