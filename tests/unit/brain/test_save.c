/* The brain as bytes, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/number.h"
#include "base/rng.h"
#include "brain/fold.h"
#include "brain/state.h"
#include "contention/crowd.h"
#include "failure/failure.h"

#define STEPS 600
#define NODES 5

static struct sw_brain_config config = {
	.policy = "las",
	.placement = "pack",
	.silence_ns = 30 * SW_NS_PER_S,
	.silence_margin_ns = 5 * SW_NS_PER_S,
	.retry_backoff_ns = 10 * SW_NS_PER_S,
};

static unsigned char *save(const struct sw_brain *brain, size_t *ret_size)
{
	struct sw_pack pack = {0};
	sw_brain_save(brain, &pack);
	unsigned char *bytes = sw_pack_take(&pack, ret_size);
	assert_non_null(bytes);
	return bytes;
}

static struct sw_brain *load(const struct sw_brain_config *with, const void *bytes, size_t size, bool *ret_adopted)
{
	struct sw_brain *brain = NULL;
	struct sw_err err = {0};
	if (sw_brain_load(with, bytes, size, &brain, ret_adopted, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return brain;
}

static void apply(struct sw_brain *brain, sw_ns at, enum sw_record_kind kind, const char *body)
{
	struct sw_err err = {0};
	if (sw_brain_apply(brain, at, kind, body, strlen(body), NULL, &err) < 0)
		fail_msg("%s: %s (%s)", err.fact, err.detail, body);
	if (sw_brain_validate(brain, &err) < 0)
		fail_msg("%s after %s", err.fact, body);
}

static struct sw_brain *fresh(void)
{
	struct sw_brain *brain = NULL;
	assert_int_equal(sw_brain_new(&config, &brain, NULL), 0);
	return brain;
}

/* ---- records, drawn so that every part of the state is used */

/* The job before this one may be of an array: then often another member. */
static enum sw_record_kind draw_submit(struct sw_rng *rng, const struct sw_brain *brain, char *body, size_t size)
{
	static const char *const known[] = {", \"preempt\": \"suspend\", \"model\": \"m\", \"gpu_memory\": \"20GB\", \"memory\": \"1MB\"",
					    ", \"model\": \"resnet50\", \"gpu_memory\": \"20GB\"",
					    ", \"model\": \"data2vec\", \"gpu_memory\": \"20GB\""};
	uint64_t jobs = sw_brain_job_count(brain);
	const struct sw_live *last = sw_brain_live(brain, jobs);
	char depends[64] = "", key[64] = "", array[64] = "";
	if (last != NULL && last->is_member && sw_rng_below(rng, 3) != 0) {
		snprintf(body, size, "{\"member\": %u%s}", last->array_index + 1, last->array_index % 2 == 0 ? ", \"limit\": 1" : "");
		return SW_RECORD_SUBMIT;
	}
	if (sw_rng_below(rng, 3) == 0)
		snprintf(array, sizeof array, ", \"array\": \"1-%u\", \"array_index\": 1", 1 + (unsigned)sw_rng_below(rng, 99));
	const char *model = sw_rng_below(rng, 2) == 0 ? known[sw_rng_below(rng, 3)] : "";
	unsigned gpus = 1 + (unsigned)sw_rng_below(rng, model[0] != '\0' ? 2 : 6);
	if (sw_rng_below(rng, 4) == 0)
		snprintf(key, sizeof key, ", \"key\": \"k%u\", \"digest\": %u, \"count\": 1", (unsigned)jobs,
			 (unsigned)sw_rng_below(rng, 99));
	if (jobs > 0 && sw_rng_below(rng, 3) == 0)
		snprintf(depends, sizeof depends, ", \"depends\": \"%s:%llu\"", sw_rng_below(rng, 2) == 0 ? "afterok" : "afterany",
			 (unsigned long long)(1 + sw_rng_below(rng, jobs)));
	snprintf(body, size,
		 "{\"uid\": %u, \"gid\": 7, \"request\": {\"command\": [\"x\"], \"name\": \"j%u\", \"gpus\": %u, \"retries\": %u, "
		 "\"tenant\": "
		 "\"t%u\"%s%s%s%s%s%s}%s}",
		 (unsigned)sw_rng_below(rng, 3), (unsigned)jobs, gpus, (unsigned)sw_rng_below(rng, 3), (unsigned)sw_rng_below(rng, 4),
		 array, depends, sw_rng_below(rng, 10) == 0 ? ", \"hold\": true" : "", model,
		 gpus > 1 && sw_rng_below(rng, 5) == 0 ? ", \"prerun\": 60" : "", jobs % 3 == 0 ? ", \"on_lost\": \"restart\"" : "", key);
	return SW_RECORD_SUBMIT;
}

static enum sw_record_kind draw_node(struct sw_rng *rng, char *body, size_t size)
{
	unsigned node = (unsigned)sw_rng_below(rng, NODES), other = (unsigned)sw_rng_below(rng, 3);
	bool changed = sw_rng_below(rng, 3) == 0;
	snprintf(body, size,
		 "{\"name\": \"n%u\", \"cpus\": 64, \"memory_bytes\": 1000000000, \"gpu_memory_bytes\": 80000000000, \"gpus\": [\"G%u-0\", "
		 "\"G%u-1\", \"G%u-2\"%s], \"gpu\": \"type %u\"%s}",
		 node, node, node, node + (changed ? other : 0), changed && other == 1 ? ", \"extra\"" : "", (node + other) % 4,
		 changed      ? ", \"changed\": true, \"leases\": true"
		 : other == 2 ? ", \"leases\": true"
			      : "");
	return SW_RECORD_NODE;
}

/* Of every layer, with every action. */
static void draw_failure(struct sw_rng *rng, char *text, size_t size)
{
	static const char *const layers[] = {"user", "framework", "infrastructure", "unknown"};
	static const char *const actions[] = {"none", "retry", "retry elsewhere", "retry with more GPU memory"};
	unsigned kind = (unsigned)sw_rng_below(rng, 4);
	snprintf(text, size,
		 ", \"failure\": {\"class\": \"c%u\", \"layer\": \"%s\", \"action\": \"%s\", \"budget\": %u, \"rank\": %u, \"free\": %s, "
		 "\"line\": \"line %c\", \"path\": \"%s\"}",
		 kind, layers[sw_rng_below(rng, 4)], actions[kind], kind == 0 ? 0 : 3, (unsigned)sw_rng_below(rng, 9),
		 kind == 2 && sw_rng_below(rng, 2) == 0 ? "true" : "false", 'a' + (int)sw_rng_below(rng, 4),
		 sw_rng_below(rng, 2) == 0 ? "/data/x" : "");
}

/* About any job; mostly one that runs, and nothing that no agent would say: no run starts before
 * those of the same job before it are gone. */
static enum sw_record_kind draw_report(struct sw_rng *rng, const struct sw_brain *brain, sw_ns now, char *body, size_t size)
{
	static const char *const states[] = {"running", "running", "exited", "exited", "gone", "off", "refused", "moved", "unmoved"};
	static const char *const reasons[] = {"", "", "", "time-limit"};
	struct sw_job_view view;
	uint64_t jobs = sw_brain_job_count(brain), job = 1;
	for (int tries = 0; tries < 30 && jobs > 0; tries++) {
		job = 1 + sw_rng_below(rng, jobs);
		if (sw_brain_job(brain, now, job, &view) && strcmp(view.state, "R") == 0)
			break;
	}
	const struct sw_live *live = sw_brain_live(brain, job);
	uint32_t epoch = live != NULL ? live->epoch : 1;
	const char *said = states[sw_rng_below(rng, 9)];
	if (live != NULL && live->ghosts > 0) {
		said = "gone";
		epoch -= sw_rng_below(rng, 3) != 0;
	}
	char failure[400] = "";
	unsigned code = (unsigned)sw_rng_below(rng, 2);
	if (code != 0 && strcmp(said, "exited") == 0 && sw_rng_below(rng, 4) != 0)
		draw_failure(rng, failure, sizeof failure);
	snprintf(body, size,
		 "{\"node\": \"n%u\", \"job\": %llu, \"epoch\": %u, \"state\": \"%s\", \"code\": %u, \"signal\": %u, \"reason\": \"%s\"%s}",
		 (unsigned)sw_rng_below(rng, NODES), (unsigned long long)job, epoch, said, code, sw_rng_below(rng, 8) == 0 ? 9u : 0u,
		 reasons[sw_rng_below(rng, 4)], failure);
	return SW_RECORD_REPORT;
}

static enum sw_record_kind draw_change(struct sw_rng *rng, uint64_t jobs, char *body, size_t size)
{
	static const enum sw_record_kind kinds[] = {SW_RECORD_CANCEL, SW_RECORD_HOLD, SW_RECORD_RELEASE, SW_RECORD_RELEASE,
						    SW_RECORD_REQUEUE};
	if (jobs == 0) {
		snprintf(body, size, "{}");
		return SW_RECORD_WAKE;
	}
	static const char *const more[] = {"", "", ", \"more\": true", ", \"more\": true", ", \"more\": false"};
	snprintf(body, size, "{\"job\": %llu, \"by\": 1, \"deep\": %s%s}", (unsigned long long)(1 + sw_rng_below(rng, jobs)),
		 sw_rng_below(rng, 2) == 0 ? "true" : "false", more[sw_rng_below(rng, 5)]);
	return kinds[sw_rng_below(rng, 5)];
}

/* Of memory, of time, or of both. */
static enum sw_record_kind draw_limit(struct sw_rng *rng, uint64_t jobs, char *body, size_t size)
{
	unsigned what = 1 + (unsigned)sw_rng_below(rng, 3);
	char memory[40] = "", share[40] = "";
	if ((what & 1) != 0)
		snprintf(memory, sizeof memory, ", \"memory_bytes\": %u", 20000000 * (unsigned)sw_rng_below(rng, 100));
	if ((what & 2) != 0)
		snprintf(share, sizeof share, ", \"share_milli\": %u", (unsigned)sw_rng_below(rng, 1000));
	snprintf(body, size, "{\"job\": %llu, \"by\": 1%s%s}", (unsigned long long)(1 + sw_rng_below(rng, jobs)), memory, share);
	return SW_RECORD_LIMIT;
}

/* Of a job that runs, if one is found, to GPUs of its node that may be others'. */
static enum sw_record_kind draw_move(struct sw_rng *rng, const struct sw_brain *brain, char *body, size_t size)
{
	uint64_t jobs = sw_brain_job_count(brain), job = 1, mask = 0;
	for (int tries = 0; tries < 60; tries++) {
		job = 1 + sw_rng_below(rng, jobs);
		if (sw_brain_live(brain, job)->run_count == 1 && sw_brain_live(brain, job)->runs[0].heard == SW_HEARD_RUNNING)
			break;
	}
	const struct sw_live *live = sw_brain_live(brain, job);
	int gpus = live->run_count > 0 ? __builtin_popcountll(live->runs[0].mask) : 1;
	while (__builtin_popcountll(mask) < gpus)
		mask |= UINT64_C(1) << sw_rng_below(rng, 8);
	snprintf(body, size, "{\"job\": %llu, \"by\": 1, \"epoch\": %u, \"mask\": %llu}", (unsigned long long)job, live->epoch,
		 (unsigned long long)mask);
	return SW_RECORD_MOVE;
}

/* Of a job that runs, if one is found; beside those that are there, or any. */
static enum sw_record_kind draw_speed(struct sw_rng *rng, const struct sw_brain *brain, char *body, size_t size)
{
	struct sw_neighbour_view there[SW_SYNC_JOBS_LISTED];
	uint64_t jobs = sw_brain_job_count(brain), job = 1;
	char beside[400] = "";
	size_t used = 0, count = 0;
	for (int tries = 0; tries < 60 && count == 0; tries++) {
		job = 1 + sw_rng_below(rng, jobs);
		count = sw_brain_neighbours(brain, job, there, SW_SYNC_JOBS_LISTED);
	}
	for (size_t i = 0; i < count && i < SW_SYNC_JOBS_LISTED; i++)
		used += (size_t)snprintf(beside + used, sizeof beside - used, "%s%llu", i > 0 ? ", " : "",
					 (unsigned long long)there[i].job);
	if (count == 0)
		snprintf(beside, sizeof beside, "%u, 2", (unsigned)sw_rng_below(rng, 9));
	snprintf(body, size,
		 "{\"node\": \"n0\", \"speeds\": [{\"job\": %llu, \"epoch\": %u, \"iteration_ns\": %u, \"alone_ns\": %u, \"iterations\": "
		 "%u, \"beside\": [%s]}]}",
		 (unsigned long long)job, sw_brain_live(brain, job)->epoch, (unsigned)sw_rng_below(rng, 1000),
		 (unsigned)sw_rng_below(rng, 2) * (unsigned)sw_rng_below(rng, 1000), (unsigned)sw_rng_below(rng, 100000), beside);
	return SW_RECORD_SPEED;
}

/* There must be a node. */
static enum sw_record_kind draw_speaker(struct sw_rng *rng, const struct sw_brain *brain, char *body, size_t size)
{
	struct sw_node_view view;
	sw_brain_node(brain, (uint32_t)sw_rng_below(rng, sw_brain_node_count(brain)), &view);
	snprintf(body, size, "{\"name\": \"%s\", \"home\": \"%032u\", \"token\": \"%u\"}", view.name, (unsigned)sw_rng_below(rng, 3),
		 (unsigned)sw_rng_below(rng, 3));
	return SW_RECORD_SPEAKER;
}

/* Over a built-in one or not, anew, changed or taken back. */
static enum sw_record_kind draw_profile(struct sw_rng *rng, char *body, size_t size)
{
	static const char *const names[] = {"m", "other", "resnet50"};
	const char *name = names[sw_rng_below(rng, 3)];
	if (sw_rng_below(rng, 4) == 0)
		snprintf(body, size, "{\"name\": \"%s\"}", name);
	else
		snprintf(body, size,
			 "{\"name\": \"%s\", \"use_milli\": [%u, 2, 3, 4, 5, 6, 7, 8], \"busy_milli\": %u, \"busy_known\": true}", name,
			 (unsigned)sw_rng_below(rng, 500), 1 + (unsigned)sw_rng_below(rng, 500));
	return SW_RECORD_PROFILE;
}

static enum sw_record_kind draw(struct sw_rng *rng, const struct sw_brain *brain, sw_ns now, char *body, size_t size)
{
	uint64_t jobs = sw_brain_job_count(brain), kind = sw_rng_below(rng, 100);
	if (kind < 25)
		return draw_submit(rng, brain, body, size);
	if (kind < 35)
		return draw_node(rng, body, size);
	if (kind < 37 && jobs > 0)
		return draw_move(rng, brain, body, size);
	if (kind < 40 && jobs > 0)
		return draw_limit(rng, jobs, body, size);
	if (kind < 52 && jobs > 0)
		return draw_speed(rng, brain, body, size);
	if (kind < 55)
		return draw_profile(rng, body, size);
	if (kind < 77)
		return draw_report(rng, brain, now, body, size);
	if (kind < 88)
		return draw_change(rng, jobs, body, size);
	if (kind < 92 && sw_brain_node_count(brain) > 0) {
		struct sw_node_view view;
		sw_brain_node(brain, (uint32_t)sw_rng_below(rng, sw_brain_node_count(brain)), &view);
		static const enum sw_record_kind kinds[] = {SW_RECORD_NODE_LOST, SW_RECORD_NODE_SILENT, SW_RECORD_NODE_SILENT,
							    SW_RECORD_NODE_REMOVE};
		snprintf(body, size, "{\"name\": \"%s\", \"since\": %lld}", view.name, (long long)(now / 2));
		return kinds[sw_rng_below(rng, 4)];
	}
	if (kind < 93 && sw_brain_node_count(brain) > 0) {
		struct sw_node_view view;
		sw_brain_node(brain, (uint32_t)sw_rng_below(rng, sw_brain_node_count(brain)), &view);
		snprintf(body, size, "{\"name\": \"%s\", \"why\": \"fans\"}", view.name);
		return sw_rng_below(rng, 3) == 0 ? SW_RECORD_NODE_CLOSE : SW_RECORD_NODE_OPEN;
	}
	if (kind < 94 && sw_brain_node_count(brain) > 0 && sw_rng_below(rng, 2) == 0) {
		static const char *const why[] = {"stranger", "excluded", "dead", "silent"};
		struct sw_node_view view;
		uint32_t node = (uint32_t)sw_rng_below(rng, sw_brain_node_count(brain));
		sw_brain_node(brain, node, &view);
		if (view.gpus == 0 || sw_rng_below(rng, 3) == 0)
			snprintf(body, size, "{\"name\": \"%s\", \"shut\": []}", view.name);
		else
			snprintf(body, size, "{\"name\": \"%s\", \"shut\": [{\"gpu\": \"%s\", \"why\": \"%s\", \"since\": 77}]}", view.name,
				 sw_brain_gpu_uuid(brain, node, (uint32_t)sw_rng_below(rng, view.gpus)), why[sw_rng_below(rng, 4)]);
		return SW_RECORD_GPUS;
	}
	if (kind < 94) {
		static const char *const choices[] = {
			"{\"policy\": \"las\", \"settings\": {\"thresholds\": \"10,100\"}}", "{\"policy\": \"srtf\", \"settings\": {}}",
			"{\"policy\": \"gittins\", \"settings\": {}}",
			"{\"policy\": \"fifo+pack\", \"settings\": {\"pack.worth\": \"1\", \"pack.slow\": \"8\"}}"};
		unsigned choice = (unsigned)sw_rng_below(rng, 6);
		snprintf(body, size, "%s", choices[choice < 3 ? choice : 3]);
		return SW_RECORD_POLICY;
	}
	if (kind < 95 && sw_brain_node_count(brain) > 0)
		return draw_speaker(rng, brain, body, size);
	if (kind < 97) {
		snprintf(body, size, "{\"tenant\": \"t%u\", \"gpus\": %d}", (unsigned)sw_rng_below(rng, 4), (int)sw_rng_below(rng, 8) - 1);
		return SW_RECORD_QUOTA;
	}
	snprintf(body, size, "{}");
	return SW_RECORD_WAKE;
}

/* ---- two brains, field by field: what no walk knows is in neither's bytes */

#define SAME(field) assert_true(a->field == b->field)

static void same_text(const char *a, const char *b)
{
	assert_true((a == NULL) == (b == NULL));
	if (a != NULL)
		assert_string_equal(a, b);
}

static void same_runs(const struct sw_live *x, const struct sw_live *y)
{
	assert_int_equal(x->run_count, y->run_count);
	for (uint32_t r = 0; r < x->run_count; r++) {
		const struct sw_run *a = &x->runs[r], *b = &y->runs[r];
		SAME(node);
		SAME(mask);
		SAME(heard);
		SAME(leased);
		SAME(code);
		SAME(signal);
	}
	assert_int_equal(x->depend_count, y->depend_count);
	assert_int_equal(x->depend_at, y->depend_at);
	assert_int_equal(x->waits_for, y->waits_for);
	assert_int_equal(x->waiter_next, y->waiter_next);
	assert_int_equal(x->waiter_prev, y->waiter_prev);
	assert_int_equal(x->over_next, y->over_next);
	assert_int_equal(x->awaited, y->awaited);
	assert_int_equal(x->array_first, y->array_first);
	for (uint32_t d = 0; d < x->depend_count; d++) {
		const struct sw_depend *a = &x->depends[d], *b = &y->depends[d];
		SAME(kind);
		SAME(job);
	}
}

static void same_paces(const struct sw_pace *a, const struct sw_pace *b)
{
	assert_true((a == NULL) == (b == NULL));
	if (a == NULL)
		return;
	SAME(epoch);
	SAME(at);
	SAME(iteration_ns);
	SAME(alone_ns);
	SAME(iterations);
	SAME(beside.count);
	for (uint32_t i = 0; i < a->beside.count; i++)
		SAME(beside.items[i]);
}

static void same_live(const struct sw_live *a, const struct sw_live *b)
{
	same_paces(a->pace, b->pace);
	same_text(a->asked->text, b->asked->text);
	SAME(is_member);
	SAME(array_index);
	same_text(a->name, b->name);
	same_text(a->model, b->model);
	same_text(a->reason, b->reason);
	same_runs(a, b);
	SAME(uid);
	SAME(gid);
	SAME(tenant);
	SAME(epoch);
	SAME(parks);
	same_text(a->unmoved, b->unmoved);
	SAME(held_by);
	SAME(limit_bytes);
	SAME(limit_milli);
	SAME(ghosts);
	SAME(last_node);
	SAME(last_mask);
	SAME(code);
	SAME(signal);
	SAME(submitted_at);
	SAME(started_at);
	SAME(ended_at);
	SAME(failures);
	SAME(lease_ns);
	SAME(grace_ns);
	SAME(stranded);
	SAME(node_lost);
	SAME(user_held);
	SAME(timed_out);
}

static void same_node(const struct sw_brain_node *a, const struct sw_brain_node *b)
{
	same_text(a->home, b->home);
	same_text(a->token, b->token);
	same_text(a->name, b->name);
	SAME(shape.rack);
	SAME(shape.gpus);
	SAME(shape.link_group);
	SAME(shape.cpus);
	SAME(shape.gpu_type);
	SAME(shape.memory_bytes);
	SAME(shape.gpu_memory_bytes);
	SAME(up);
	SAME(silent);
	SAME(silent_since);
	SAME(removed);
	SAME(leases);
	SAME(version);
	SAME(jobs.count);
	SAME(ghosts.count);
	for (uint32_t g = 0; g < a->shape.gpus; g++) {
		same_text(a->gpus[g].uuid, b->gpus[g].uuid);
		SAME(gpus[g].shut);
		assert_true(a->gpus[g].shut == 0 || a->gpus[g].shut_since == b->gpus[g].shut_since);
	}
	for (size_t j = 0; j < a->jobs.count; j++)
		SAME(jobs.items[j]);
	for (size_t g = 0; g < a->ghosts.count; g++) {
		SAME(ghosts.items[g].job);
		SAME(ghosts.items[g].leased);
		SAME(ghosts.items[g].epoch);
	}
}

static void same_keys(const struct sw_brain *a, const struct sw_brain *b)
{
	for (size_t k = a->keys.start; k < a->keys.items.count; k++) {
		const struct sw_key *x = &a->keys.items.items[k], *y = sw_keys_find(&b->keys, b->now, x->uid, x->text);
		if (b->now - x->at >= SW_KEY_LIFE_NS)
			continue;
		assert_non_null(y);
		assert_true(x->digest == y->digest && x->first == y->first && x->at == y->at && x->count == y->count);
	}
}

static void same_profiles(const struct sw_brain *x, const struct sw_brain *y)
{
	const struct sw_profile *a;
	for (size_t i = 0; (a = sw_profiles_at(x->profiles, i)) != NULL; i++) {
		const struct sw_profile *b = sw_profiles_at(y->profiles, i);
		assert_non_null(b);
		same_text(a->name, b->name);
		SAME(number);
		SAME(is_own);
		SAME(busy_milli);
		SAME(busy_known);
		assert_memory_equal(a->use_milli, b->use_milli, sizeof a->use_milli);
	}
}

/* To the last digit, as policies are told. */
static void same_predictions(const struct sw_brain *a, const struct sw_brain *b)
{
	static const char *const names[] = {"m", "resnet50", "data2vec", "dlrm"};
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 4; j++)
			for (int classes = 0; classes < 4; classes++) {
				const uint32_t models[] = {sw_profiles_find(a->profiles, names[i])->number,
							   sw_profiles_find(a->profiles, names[j])->number};
				const bool guaranteed[] = {(classes & 1) != 0, (classes & 2) != 0};
				uint32_t one[2] = {0}, two[2] = {0};
				assert_int_equal(sw_crowd_speeds(a->crowd, models, guaranteed, 2, one),
						 sw_crowd_speeds(b->crowd, models, guaranteed, 2, two));
				assert_memory_equal(one, two, sizeof one);
			}
	assert_true(sw_learn_total(a->learn) == sw_learn_total(b->learn));
	SAME(lesson_count);
	SAME(learned_at);
}

static void same_brains(const struct sw_brain *a, const struct sw_brain *b)
{
	uint32_t closed = 0;
	SAME(now);
	SAME(wake_at);
	SAME(jobs.count);
	SAME(nodes.count);
	SAME(tenants.count);
	SAME(gpu_types.count);
	for (size_t t = 0; t < a->gpu_types.count; t++)
		same_text(a->gpu_types.items[t], b->gpu_types.items[t]);
	SAME(over_first);
	SAME(over_last);
	SAME(retries.count);
	same_text(a->policy, b->policy);
	same_text(a->settings, b->settings);
	for (uint32_t j = 0; j < a->jobs.count; j++) {
		same_live(&a->jobs.items[j], &b->jobs.items[j]);
		assert_int_equal(sw_heap_has(&a->retries, j), sw_heap_has(&b->retries, j));
		if (sw_heap_has(&a->retries, j))
			assert_true(sw_heap_key(&a->retries, j) == sw_heap_key(&b->retries, j));
	}
	for (size_t n = 0; n < a->nodes.count; n++) {
		closed += a->nodes.items[n].closed != SW_OPEN;
		same_node(&a->nodes.items[n], &b->nodes.items[n]);
		assert_ptr_equal(sw_brain_find_node(b, a->nodes.items[n].name), &b->nodes.items[n]);
	}
	assert_int_equal(a->closed_nodes, closed);
	assert_int_equal(b->closed_nodes, closed);
	for (size_t t = 0; t < a->tenants.count; t++)
		same_text(a->tenants.items[t], b->tenants.items[t]);
	same_keys(a, b);
	same_profiles(a, b);
	same_predictions(a, b);
}

/* Aim: a brain that is saved and loaded now and then stays, to the last byte, the one that was not,
 * whatever records come. */
static void test_goes_on_as_before(void **state)
{
	(void)state;
	uint64_t learned = 0, waiting = 0;
	for (uint64_t seed = 0; seed < 12; seed++) {
		struct sw_brain *whole = fresh(), *other = fresh();
		struct sw_rng rng;
		sw_ns now = SW_NS_PER_S;
		sw_rng_seed(&rng, seed);
		for (int step = 0; step < STEPS; step++) {
			char body[1000];
			now += (sw_ns)(sw_rng_below(&rng, 2) * sw_rng_below(&rng, 40)) * SW_NS_PER_S;
			enum sw_record_kind kind = draw(&rng, whole, now, body, sizeof body);
			apply(whole, now, kind, body);
			apply(other, now, kind, body);
			size_t size, other_size;
			unsigned char *bytes = save(whole, &size), *other_bytes = save(other, &other_size);
			if (size != other_size || memcmp(bytes, other_bytes, size) != 0)
				fail_msg("seed %llu, step %d: they differ after %s", (unsigned long long)seed, step, body);
			if (sw_rng_below(&rng, 10) == 0) {
				bool adopted = true;
				sw_brain_free(other);
				other = load(&config, bytes, size, &adopted);
				assert_false(adopted);
				struct sw_pack full = {.failed = SW_ENOMEM};
				sw_brain_save(other, &full); /* in vain: it stays as it is */
				same_brains(whole, other);
				waiting += whole->lesson_count;
			}
			free(bytes);
			free(other_bytes);
		}
		assert_true(sw_brain_log_hash(whole) == sw_brain_log_hash(other));
		for (uint64_t job = 1; job <= sw_brain_job_count(whole); job++) {
			struct sw_job_view a, b;
			assert_true(sw_brain_job(whole, now, job, &a) && sw_brain_job(other, now, job, &b));
			assert_string_equal(a.request, b.request);
			assert_true(a.is_member == b.is_member && a.array_index == b.array_index);
		}
		learned += sw_learn_total(whole->learn);
		sw_brain_free(whole);
		sw_brain_free(other);
	}
	assert_true(learned > 50 && waiting > 0);
}

/* A small cluster with a job of every kind. */
static struct sw_brain *small(void)
{
	struct sw_brain *brain = fresh();
	struct sw_rng rng;
	char body[1000];
	sw_rng_seed(&rng, 3);
	for (int step = 0; step < 40; step++) {
		sw_ns now = step * SW_NS_PER_S;
		enum sw_record_kind kind = draw(&rng, brain, now, body, sizeof body);
		if (kind != SW_RECORD_POLICY) /* some have a large state */
			apply(brain, now, kind, body);
	}
	static const char *const pair[] = {"resnet50", "m"};
	for (size_t which = 0; which < 2; which++)
		assert_int_equal(sw_learn_add(brain->learn, &(struct sw_learn_case){SW_WAY_GATE, pair, 2, which}, 1500, 9, NULL), 0);
	brain->lessons[0] = (struct sw_lesson){.way = SW_WAY_SLICES, .count = 2, .slow_milli = 1700, .models = {1, 2}};
	brain->lesson_count = 1;
	return brain;
}

/* Aim: bytes that were cut short, or changed anywhere, are an error or a brain that keeps its
 * promises; never anything worse. */
static void test_damaged(void **state)
{
	(void)state;
	size_t size;
	struct sw_brain *brain = small();
	unsigned char *bytes = save(brain, &size);
	for (size_t cut = 0; cut < size; cut++) {
		struct sw_brain *loaded = NULL;
		struct sw_err err = {0};
		bool adopted;
		unsigned char *exact = malloc(cut + 1);
		memcpy(exact, bytes, cut);
		assert_int_equal(sw_brain_load(&config, exact, cut, &loaded, &adopted, &err), SW_EINPUT);
		assert_string_equal(err.fact, "the state cannot be read");
		free(exact);
	}
	for (size_t at = 0; at < size; at++) {
		struct sw_brain *loaded = NULL;
		bool adopted;
		unsigned char was = bytes[at];
		for (int change = 0; change < 3; change++) {
			bytes[at] = change == 0	  ? (unsigned char)~was
				    : change == 1 ? (unsigned char)(was + 1)
						  : (unsigned char)(was ^ 0x80);
			if (sw_brain_load(&config, bytes, size, &loaded, &adopted, NULL) == 0) {
				assert_int_equal(sw_brain_validate(loaded, NULL), 0);
				sw_brain_free(loaded);
			}
		}
		bytes[at] = was;
	}
	free(bytes);
	sw_brain_free(brain);
}

/* Aim: a configuration with another policy takes over, unless one was chosen while it ran. */
static void test_policy_of_the_configuration(void **state)
{
	(void)state;
	struct sw_brain_config other = config;
	struct sw_brain *brain = fresh();
	bool adopted = false;
	size_t size;
	other.policy = "srtf";
	unsigned char *bytes = save(brain, &size);
	struct sw_brain *loaded = load(&other, bytes, size, &adopted);
	assert_true(adopted);
	assert_string_equal(sw_brain_policy(loaded), "srtf");
	sw_brain_free(loaded);
	free(bytes);
	apply(brain, 5, SW_RECORD_POLICY, "{\"policy\": \"gittins\", \"settings\": {\"delta\": \"5\"}}");
	bytes = save(brain, &size);
	loaded = load(&other, bytes, size, &adopted);
	assert_false(adopted);
	assert_string_equal(sw_brain_policy(loaded), "gittins");
	sw_brain_free(loaded);
	free(bytes);
	sw_brain_free(brain);
}

/* Aim: states that older formats wrote are read, go on without what they did not have, and are the
 * same once they were written anew. */
static void test_older_formats(void **state)
{
	(void)state;
	static const int formats[] = {1, 3, 4, 7, 10};
	for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
		SW_CLEANUP(sw_freep) char *bytes = NULL;
		char name[200];
		size_t size;
		bool adopted;
		snprintf(name, sizeof name, SW_SOURCE_DIR "/tests/fuzz/corpus/brain_load/format-%d", formats[i]);
		assert_int_equal(sw_file_read(name, 1 << 20, &bytes, &size, NULL), 0);
		assert_int_equal(bytes[8], formats[i]);
		struct sw_brain *brain = load(&config, bytes, size, &adopted);
		assert_true(brain->jobs.count > 0);
		for (size_t j = 0; j < brain->jobs.count && formats[i] == 1; j++)
			assert_true(brain->jobs.items[j].limit_bytes == 0 && brain->jobs.items[j].limit_milli == 0);
		assert_true(formats[i] > 4 || brain->learned_at == 0);
		/* Its second job has a home, and its run was dropped. */
		if (formats[i] == 10) {
			assert_true(brain->jobs.items[0].run_count > 0 && brain->jobs.items[1].run_count == 0);
			assert_true(sw_engine_stands(brain->engine, (struct sw_job_id){0}) != SW_NO_PART);
			assert_true(sw_engine_stands(brain->engine, (struct sw_job_id){1}) == SW_NO_PART);
			assert_int_equal(sw_engine_job(brain->engine, (struct sw_job_id){1})->state, SW_JOB_HELD);
		}
		size_t new_size;
		unsigned char *anew = save(brain, &new_size);
		struct sw_brain *again = load(&config, anew, new_size, &adopted);
		same_brains(brain, again);
		free(anew);
		sw_brain_free(again);
		sw_brain_free(brain);
	}
}

/* Aim: a state in which a job that has ended is suspended still is read, and
 * the run is told to stop. */
static void test_ended_while_suspended(void **state)
{
	(void)state;
	struct sw_brain *brain = fresh();
	bool adopted;
	size_t size;
	apply(brain, 1, SW_RECORD_NODE,
	      "{\"name\": \"n0\", \"cpus\": 64, \"memory_bytes\": 1000000000, \"gpu_memory_bytes\": 80000000000, \"gpus\": [\"G\"]}");
	apply(brain, 2, SW_RECORD_SUBMIT,
	      "{\"uid\": 1, \"gid\": 1, \"request\": {\"command\": [\"x\"], \"preempt\": \"suspend\", \"tenant\": \"t\"}}");
	apply(brain, 3, SW_RECORD_REPORT,
	      "{\"node\": \"n0\", \"job\": 1, \"epoch\": 1, \"state\": \"running\", \"code\": 0, \"signal\": 0, \"reason\": \"\"}");
	apply(brain, 4, SW_RECORD_HOLD, "{\"job\": 1, \"by\": 1}");
	assert_true(sw_brain_is_suspended(brain, &brain->jobs.items[0]));
	/* As earlier versions cancelled a pre-run that was suspended: its run was left over. */
	struct sw_live *live = &brain->jobs.items[0];
	live->ended_at = brain->now;
	assert_int_equal(sw_brain_step(brain, &(struct sw_event){.kind = SW_EV_CANCEL, .job = {0}}, 1, NULL), 0);
	assert_int_equal(live->run_count, 0);
	live->runs = calloc(1, sizeof *live->runs);
	live->runs[live->run_count++] = (struct sw_run){.mask = 1, .heard = SW_HEARD_RUNNING};
	live->ghosts = 0;
	brain->nodes.items[0].ghosts.count = 0;
	*sw_vec_push(&brain->nodes.items[0].jobs) = 0;
	assert_int_equal(sw_brain_validate(brain, NULL), SW_EBUG);
	unsigned char *bytes = save(brain, &size);
	sw_brain_free(brain);
	brain = load(&config, bytes, size, &adopted);
	assert_int_equal(brain->jobs.items[0].run_count, 0);
	assert_int_equal(brain->nodes.items[0].ghosts.count, 1);
	assert_int_equal(brain->nodes.items[0].jobs.count, 0);
	free(bytes);
	sw_brain_free(brain);
}

/* Aim: a state of a newer version is refused as that. */
static void test_newer_format(void **state)
{
	(void)state;
	struct sw_brain *brain = fresh(), *loaded = NULL;
	struct sw_err err = {0};
	bool adopted;
	size_t size;
	unsigned char *bytes = save(brain, &size);
	bytes[8] = 100;
	assert_int_equal(sw_brain_load(&config, bytes, size, &loaded, &adopted, &err), SW_ELIMIT);
	assert_non_null(strstr(err.fact, "newer version"));
	free(bytes);
	sw_brain_free(brain);
}

/* Aim: a change that adds a field to the brain's state is reminded to save it: put it into its walk
 * in save_jobs.c or save_nodes.c (or know that it is volatile, or made anew), let draw() above
 * bring it about, then correct the number here. */
static void test_no_field_is_forgotten(void **state)
{
	(void)state;
	assert_int_equal(sizeof(struct sw_live), 336);
	assert_int_equal(sizeof(struct sw_stop), 40);
	assert_int_equal(sizeof(struct sw_pace), 112);
	assert_int_equal(sizeof(struct sw_trouble), 280);
	assert_int_equal(sizeof(struct sw_cause), 64);
	assert_int_equal(sizeof(struct sw_fault), 16);
	assert_int_equal(sizeof(struct sw_bad_input), 272);
	assert_int_equal(sizeof(struct sw_spent), 24);
	assert_int_equal(sizeof(struct sw_run), 32);
	assert_int_equal(sizeof(struct sw_depend), 16);
	assert_int_equal(sizeof(struct sw_ghost), 12);
	assert_int_equal(sizeof(struct sw_key), 48);
	assert_int_equal(sizeof(struct sw_brain_gpu), 264);
	assert_int_equal(sizeof(struct sw_brain_node), 472);
	assert_int_equal(sizeof(struct sw_lesson), 40);
	assert_int_equal(sizeof(struct sw_brain), 3448);
}

int main(void)
{
	/* Once for all the brains. */
	SW_CLEANUP(sw_failure_freep) struct sw_failure_table *failures = NULL;
	if (sw_failure_load(NULL, &failures, NULL) < 0)
		return 1;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	if (sw_profiles_load_default(&profiles, NULL) < 0)
		return 1;
	config.failures = failures;
	config.profiles = profiles;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_goes_on_as_before),	    cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_policy_of_the_configuration), cmocka_unit_test(test_older_formats),
		cmocka_unit_test(test_ended_while_suspended),	    cmocka_unit_test(test_newer_format),
		cmocka_unit_test(test_no_field_is_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
