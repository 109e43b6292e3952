/* The brain as bytes, and back: what the records so far have made of the cluster, so that a restart
 * need not apply them again.
 *
 * Each struct has one walk, in save_jobs.c, save_nodes.c or here, which both writes and reads it. A
 * new field of the state goes there, and nowhere else. With it, raise FORMAT and read the field
 * only `if (pack->format >= n)`. What is marked volatile in state.h is left out. So is what follows
 * from the rest (how many ghosts a job has, the indexes). That is made anew.
 *
 * What came with which format: 2 limits of jobs; 3 their speeds and the names of their profiles. 4
 * runs that are off their GPUs whole. 5 what is known of models and learned of their slowdowns; 6
 * runs on their way to other GPUs. 7 for how long one that could not go is not tried again. 8
 * (version 0.2) at what jobs wait, the first of an array, GPUs that take no jobs, and numbers that
 * are no longer known. 8 also nodes that do not answer, leases, and which agent speaks for a node.
 * 9 the last stop of a job; 10 what suspended runs leave on their GPUs. 11 leaves out the memory
 * that jobs asked for: their requests say it. 12 the world. 13 leaves out where suspended runs
 * stand and where moving ones come from: the engine says it. 14 the types of GPUs.
 *
 * Invariant: a brain that was loaded and one that has applied all the records are the same. No
 * record, sync or question that comes after tells them apart.
 */
#include <stdlib.h>
#include <string.h>

#include "brain/dependents.h"
#include "brain/fold.h"
#include "brain/forget.h"
#include "brain/gpu_types.h"
#include "brain/keys.h"
#include "brain/known.h"
#include "brain/runs.h"
#include "brain/save.h"
#include "brain/silence.h"
#include "brain/slowdowns.h"
#include "brain/state.h"
#include "brain/terms.h"

#define MAGIC UINT64_C(0x316e696172627773) /* "swbrain1" */
#define FORMAT 14u

bool sw_save_make(struct sw_pack *pack, void *ret_items, size_t count, size_t size)
{
	void *items = pack->failed == 0 ? calloc(count + 1, size) : NULL;
	if (items == NULL) {
		if (pack->failed == 0)
			pack->failed = SW_ENOMEM;
		return false;
	}
	memcpy(ret_items, &items, sizeof items);
	return true;
}

/* ---- walks */

static void pack_input(struct sw_pack *pack, struct sw_bad_input *input, sw_ns now)
{
	sw_pack_chars(pack, input->path, sizeof input->path);
	sw_pack_near(pack, &input->at, now);
	sw_pack_u32(pack, &input->last_job);
	sw_pack_u32(pack, &input->jobs);
}

static void pack_spent(struct sw_pack *pack, struct sw_spent *spent, sw_ns now)
{
	sw_pack_word(pack, &spent->owner);
	sw_pack_word(pack, &spent->failure);
	sw_pack_near(pack, &spent->at, now);
}

/* Not here: the chains, which are made anew. */
static void pack_key(struct sw_pack *pack, struct sw_key *key, sw_ns now)
{
	sw_pack_text(pack, &key->text);
	sw_pack_word(pack, &key->digest);
	sw_pack_u64(pack, &key->first);
	sw_pack_near(pack, &key->at, now);
	sw_pack_u32(pack, &key->uid);
	sw_pack_u32(pack, &key->count);
}

/* Which policy is in charge: the policy that was chosen with its settings, or
 * that of the configuration. */
struct choice {
	bool chosen;
	char *policy, *settings;
};

static void pack_choice(struct sw_pack *pack, struct choice *choice)
{
	sw_pack_bool(pack, &choice->chosen);
	sw_pack_text(pack, &choice->policy);
	sw_pack_text(pack, &choice->settings);
}

static void pack_world(struct sw_pack *pack, struct sw_brain *brain)
{
	bool said = brain->world != NULL;
	if (pack->reads && pack->format < 12)
		return;
	sw_pack_bool(pack, &said);
	if (said)
		sw_pack_text(pack, &brain->world);
	if (!pack->reads || pack->format >= 14)
		sw_brain_pack_gpu_types(pack, brain);
}

static void pack_time(struct sw_pack *pack, struct sw_brain *brain)
{
	sw_pack_i64(pack, &brain->now);
	sw_pack_near(pack, &brain->wake_at, brain->now);
}

/* ---- saving */

void sw_brain_save(const struct sw_brain *saved, struct sw_pack *out)
{
	/* The walks take what they read or write by the same pointers; a writer changes nothing. */
	struct sw_brain *brain = (struct sw_brain *)(uintptr_t)saved;
	static char no_settings[] = "{}";
	uint64_t magic = MAGIC;
	uint32_t format = FORMAT;
	sw_pack_word(out, &magic);
	sw_pack_u32(out, &format);
	struct choice choice = {
		.chosen = brain->policy != NULL,
		.policy = brain->policy != NULL ? brain->policy : (char *)(uintptr_t)brain->config.policy,
		.settings = brain->settings != NULL ? brain->settings : no_settings,
	};
	pack_choice(out, &choice);
	pack_world(out, brain);
	pack_time(out, brain);
	sw_pack_count(out, &brain->tenants.count);
	for (size_t t = 0; t < brain->tenants.count; t++)
		sw_pack_text(out, &brain->tenants.items[t]);
	sw_save_nodes(out, brain);
	sw_save_jobs(out, brain);
	sw_depends_save(brain, out);
	size_t retries = brain->retries.count;
	sw_pack_count(out, &retries);
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE && retries > 0; id = sw_brain_next_known(brain, id + 1)) {
		if (!sw_heap_has(&brain->retries, id))
			continue;
		sw_ns at = sw_heap_key(&brain->retries, id);
		sw_pack_u32(out, &id);
		sw_pack_near(out, &at, brain->now);
	}
	size_t keys = brain->keys.items.count - brain->keys.start;
	sw_pack_count(out, &keys);
	for (size_t k = brain->keys.start; k < brain->keys.items.count; k++)
		pack_key(out, &brain->keys.items.items[k], brain->now);
	sw_pack_count(out, &brain->inputs.count);
	for (size_t i = 0; i < brain->inputs.count; i++)
		pack_input(out, &brain->inputs.items[i], brain->now);
	sw_pack_count(out, &brain->spent.count);
	for (size_t i = 0; i < brain->spent.count; i++)
		pack_spent(out, &brain->spent.items[i], brain->now);
	sw_brain_pack_known(out, brain);
	sw_brain_pack_learned(out, brain);
	sw_engine_save(brain->engine, out); /* last: it reads to the end */
}

/* ---- loading */

static int load_tenants(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_pack_count(pack, &count);
	if (sw_vec_reserve(&brain->tenants, count) < 0)
		return SW_ENOMEM;
	for (uint32_t t = 0; t < count && pack->failed == 0; t++) {
		char **name = sw_vec_push(&brain->tenants);
		sw_pack_text(pack, name);
		if (pack->failed == 0 && sw_names_find(&brain->tenant_index, *name) != SW_NAMES_NONE)
			sw_pack_fail(pack);
		else if (pack->failed == 0 && sw_names_add(&brain->tenant_index, *name, t) < 0)
			return SW_ENOMEM;
	}
	return pack->failed;
}

static int load_keys(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t count = 0;
	sw_ns before = 0;
	int r = 0;
	sw_pack_count(pack, &count);
	for (size_t k = 0; k < count && pack->failed == 0 && r == 0; k++) {
		struct sw_key key = {0};
		pack_key(pack, &key, brain->now);
		if (pack->failed == 0 && (key.at < before || key.at > brain->now))
			sw_pack_fail(pack);
		if (pack->failed == 0)
			r = sw_keys_add(&brain->keys, key.text, &key);
		free(key.text);
		before = key.at;
	}
	return r < 0 ? r : pack->failed;
}

static int load_memories(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t inputs = 0, spent = 0;
	sw_pack_count(pack, &inputs);
	for (size_t i = 0; i < inputs && pack->failed == 0; i++) {
		struct sw_bad_input *input = sw_vec_push(&brain->inputs);
		if (input == NULL)
			return SW_ENOMEM;
		pack_input(pack, input, brain->now);
	}
	sw_pack_count(pack, &spent);
	for (size_t i = 0; i < spent && pack->failed == 0; i++) {
		struct sw_spent *one = sw_vec_push(&brain->spent);
		if (one == NULL)
			return SW_ENOMEM;
		pack_spent(pack, one, brain->now);
	}
	return pack->failed;
}

static int load_waits(struct sw_pack *pack, struct sw_brain *brain)
{
	size_t retries = 0;
	int r = sw_depends_load(brain, pack);
	if (r < 0)
		return r;
	sw_pack_count(pack, &retries);
	for (size_t i = 0; i < retries && pack->failed == 0; i++) {
		uint32_t id = 0;
		sw_ns at = 0;
		sw_pack_u32(pack, &id);
		sw_pack_near(pack, &at, brain->now);
		if (!sw_bitmap_has(&brain->known, id))
			sw_pack_fail(pack);
		else
			sw_heap_set(&brain->retries, id, at);
	}
	return pack->failed;
}

/* Which jobs are stranded, and how many nodes are out of reach. */
static int load_silence(struct sw_brain *brain)
{
	sw_brain_count_far(brain);
	for (uint32_t job = sw_brain_first(brain); job != 0; job = sw_brain_after(brain, job))
		if (brain->jobs.items[job - 1].stranded && sw_brain_list_stranded(brain, job - 1) < 0)
			return SW_ENOMEM;
	return 0;
}

static int read_settings(struct sw_brain *brain, const struct sw_policy *policy, const char *settings, struct sw_err *err)
{
	json_t *json = json_loads(settings, 0, NULL);
	int r = json_is_object(json) ? sw_brain_read_settings(policy, json, &brain->params, err) : SW_EINPUT;
	json_decref(json);
	return r;
}

/* The engine, under the policy that was in charge; then under that of the configuration, where that
 * is another now and none was chosen since. */
static int load_engine(struct sw_pack *pack, struct sw_brain *brain, struct choice *choice, bool *ret_adopted, struct sw_err *err)
{
	struct sw_engine_config config;
	int r = sw_brain_engine_config(brain, &config, err);
	if (r < 0)
		return r;
	const struct sw_policy *own = config.policy, *policy = sw_brain_find_policy(&brain->config, choice->policy);
	if (policy == NULL) {
		if (choice->chosen) {
			sw_err_set(err, SW_ENOTFOUND, "there is no policy '%.60s', which is in charge", choice->policy);
			sw_err_hint(err, "Start the controller with --plugin and the file that it came from.");
			return SW_ENOTFOUND;
		}
		policy = own;
	}
	if (choice->chosen) {
		r = read_settings(brain, policy, choice->settings, err);
		if (r < 0)
			return r;
		brain->policy = SW_TAKE(choice->policy);
		brain->settings = SW_TAKE(choice->settings);
	}
	config.policy = policy;
	config.params = brain->params;
	r = sw_engine_load(&config, pack->source + pack->at, sw_pack_left(pack), &brain->engine, ret_adopted, err);
	if (r == 0 && brain->policy == NULL && policy != own) {
		*ret_adopted = true;
		r = sw_engine_set_policy(brain->engine, own, NULL, err);
	}
	return r;
}

static bool know_the_same(const struct sw_brain *brain)
{
	if (sw_engine_job_count(brain->engine) != brain->jobs.count || sw_engine_known_count(brain->engine) != brain->known.count)
		return false;
	for (uint32_t id = sw_brain_next_known(brain, 0); id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (sw_engine_job(brain->engine, (struct sw_job_id){id}) == NULL)
			return false;
	return true;
}

/* Up to format 10 a home could be left behind when its run was dropped. */
static int lose_empty_homes(struct sw_brain *brain, struct sw_err *err)
{
	int r = 0;
	brain->gathers = true; /* nothing is decided here */
	for (uint32_t id = sw_brain_next_known(brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (brain->jobs.items[id].run_count == 0 && sw_engine_stands(brain->engine, (struct sw_job_id){id}) != SW_NO_PART)
			r = sw_brain_lose_suspended(brain, id, err);
	brain->gathers = false;
	return r;
}

/* Earlier versions could end a job and leave its run suspended. */
static int drop_runs_of_ended(struct sw_brain *brain)
{
	int r = 0;
	for (uint32_t id = sw_brain_next_known(brain, 0); r == 0 && id != SW_BITMAP_NONE; id = sw_brain_next_known(brain, id + 1))
		if (brain->jobs.items[id].run_count > 0 && brain->jobs.items[id].is_over)
			r = sw_brain_drop_runs(brain, id);
	return r;
}

/* Whether brain and engine speak of the same jobs and nodes. */
static int check(struct sw_brain *brain, uint32_t format, struct sw_err *err)
{
	const struct sw_topology *topology = sw_engine_ledger(brain->engine)->topology;
	if (!know_the_same(brain) || topology->node_count != brain->nodes.count)
		return SW_EINPUT;
	for (size_t n = 0; n < brain->nodes.count; n++)
		if (topology->nodes[n].gpus != brain->nodes.items[n].shape.gpus)
			return SW_EINPUT;
	int r = sw_depends_derive(brain, format);
	r = r < 0 ? r : sw_brain_list_past(brain);
	r = r < 0 ? r : drop_runs_of_ended(brain);
	r = r < 0 || format >= 11 ? r : lose_empty_homes(brain, err);
	return r < 0 ? r : sw_brain_validate(brain, err);
}

static int load(struct sw_pack *pack, struct sw_brain *brain, bool *ret_adopted, struct sw_err *err)
{
	struct choice choice = {0};
	sw_old_runs old = {0};
	pack_choice(pack, &choice);
	pack_world(pack, brain);
	pack_time(pack, brain);
	int r = brain->now < 0 || brain->now > SW_ENGINE_TIME_MAX ? SW_EINPUT : pack->failed;
	r = r < 0 ? r : sw_brain_find_failures(brain, err);
	r = r < 0 ? r : load_tenants(pack, brain);
	r = r < 0 ? r : sw_save_load_nodes(pack, brain);
	r = r < 0 ? r : sw_save_load_jobs(pack, brain, &old);
	r = r < 0 ? r : sw_save_check_seats(pack, brain);
	r = r < 0 ? r : load_waits(pack, brain);
	r = r < 0 ? r : load_keys(pack, brain);
	r = r < 0 ? r : load_memories(pack, brain);
	r = r < 0 ? r : sw_save_count_ghosts(pack, brain);
	r = r < 0 ? r : load_silence(brain);
	r = r < 0 ? r : sw_brain_load_world(brain, err);
	r = r < 0 ? r : sw_brain_make_known(brain, err);
	if (r == 0 && pack->format >= 5) {
		sw_brain_pack_known(pack, brain);
		sw_brain_pack_learned(pack, brain);
		r = sw_brain_tell_gpu_types(brain);
	}
	r = r < 0 ? r : pack->failed;
	r = r < 0 ? r : load_engine(pack, brain, &choice, ret_adopted, err);
	for (size_t i = 0; r == 0 && i < old.count; i++)
		if (sw_engine_job(brain->engine, (struct sw_job_id){old.items[i].job}) != NULL)
			sw_engine_adopt_run(brain->engine, (struct sw_job_id){old.items[i].job}, &old.items[i].run);
	r = r < 0 ? r : check(brain, pack->format, err);
	sw_vec_free(&old);
	free(choice.policy);
	free(choice.settings);
	return r;
}

int sw_brain_load(const struct sw_brain_config *config, const void *bytes, size_t size, struct sw_brain **ret_brain, bool *ret_adopted,
		  struct sw_err *err)
{
	struct sw_pack pack = sw_pack_reader(bytes, size);
	struct sw_err inner = {0};
	bool adopted = false;
	uint64_t magic = 0;
	SW_CLEANUP(sw_brain_freep) struct sw_brain *brain = calloc(1, sizeof *brain);
	if (brain == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	brain->config = *config;
	sw_pack_word(&pack, &magic);
	sw_pack_u32(&pack, &pack.format);
	if (pack.failed == 0 && magic == MAGIC && pack.format > FORMAT)
		return sw_err_set(err, SW_ELIMIT, "the state was written by a newer version (format %u)", pack.format);
	int r = pack.failed == 0 && magic == MAGIC && pack.format > 0 ? load(&pack, brain, &adopted, &inner) : SW_EINPUT;
	if (r < 0) {
		r = r == SW_EBUG ? SW_EINPUT : r; /* the promise was broken by the bytes */
		sw_err_set(err, r, r == SW_ENOMEM ? "out of memory for the state" : "the state cannot be read");
		if (inner.code != 0)
			sw_err_detail(err, "%s%s%s", inner.fact, inner.detail[0] != '\0' ? ": " : "", inner.detail);
		if (inner.hint[0] != '\0')
			sw_err_hint(err, "%s", inner.hint);
		return r;
	}
	*ret_brain = SW_TAKE(brain);
	*ret_adopted = adopted;
	return 0;
}
