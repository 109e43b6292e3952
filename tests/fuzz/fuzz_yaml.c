/* Any bytes as YAML, as a world, as profiles, as measured ones and as a cluster: nothing crashes,
 * nothing is returned beside an error, every refusal has words, and what is accepted keeps the
 * invariants that its header promises. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "contention/predict.h"
#include "contention/store.h"
#include "sim/cluster.h"
#include "unit/contention/slowdown.h"
#include "world/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void must_agree(int r, bool returned, const struct sw_err *err)
{
	must((r == 0) == returned);
	must(r == 0 || (err->code == r && err->fact[0] != '\0'));
}

static void try_world(const char *text, size_t size)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_world_freep) struct sw_world *world = NULL;
	int r = sw_world_parse("fuzz", text, size, &world, &err);
	must_agree(r, world != NULL, &err);
	if (r < 0)
		return;
	must(world->name != NULL && world->about != NULL && world->not_modelled != NULL);
	must(world->quantum_ns >= 0 && world->start_ns >= 0 && world->restart_ns >= 0 && world->iteration_scale_ppm > 0);
	must(world->node_mtbf_ns == 0 || world->node_repair_ns > 0);
	must(sw_transfer_ns(&world->suspend, UINT64_MAX) >= 0);
	must(sw_world_event_overhead_ns(world, "vgg16", 8) >= 0);
	SW_CLEANUP(sw_freep) char *described = sw_world_describe(world);
	must(described != NULL);
}

static void try_profiles(const char *text, size_t size)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	int r = sw_profiles_parse("fuzz", text, size, &profiles, &err);
	must_agree(r, profiles != NULL, &err);
	if (r < 0)
		return;
	const struct sw_profile *profile;
	for (size_t i = 0; (profile = sw_profiles_at(profiles, i)) != NULL; i++) {
		must(sw_profiles_find(profiles, profile->name) == profile);
		must(sw_profile_skew_milli(profile) <= 1000);
		must(sw_profile_placement_milli(profile, SW_SPREAD_CLUSTER, SW_SPREAD_GROUP) >= 1000);
		must(slowdown_milli(&sw_predict_default, profile, &profile, 1) >= 1000);
		int64_t ns = -1;
		must(sw_profile_duration(profile, 1000, 64, 3, &ns) < 0 || ns >= 0);
	}
}

static void try_store(const char *text, size_t size)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_store_freep) struct sw_store *store = NULL;
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = NULL;
	int r = sw_store_parse("fuzz", text, size, &store, &err);
	must_agree(r, store != NULL, &err);
	if (r < 0)
		return;
	must(sw_profiles_load_default(&profiles, NULL) == 0 && sw_store_apply(store, profiles, NULL) == 0);
	const struct sw_store_entry *entry;
	for (size_t i = 0; (entry = sw_store_at(store, i)) != NULL; i++) {
		struct sw_measured median = sw_store_median(entry);
		must(entry->run_count >= 1 && entry->run_count <= SW_STORE_RUNS && sw_store_find(store, entry->name, NULL) == entry);
		must(median.wall_ns > 0 && median.busy_milli <= 1000 && median.floor_bytes <= median.peak_bytes);
		const struct sw_profile *profile = sw_profiles_find(profiles, entry->name);
		must(!profile->is_default && slowdown_milli(&sw_predict_default, profile, &profile, 1) >= 1000);
	}
}

static void try_cluster(struct sw_cluster_spec *spec, int r, const struct sw_err *err)
{
	must_agree(r, spec != NULL, err);
	if (r < 0)
		return;
	uint32_t nodes = 0;
	uint64_t gpus = 0;
	for (size_t i = 0; i < spec->runs.count; i++) {
		must(spec->runs.items[i].first_node == nodes);
		nodes += spec->runs.items[i].nodes;
		gpus += (uint64_t)spec->runs.items[i].nodes * spec->shapes.items[spec->runs.items[i].shape].gpus;
	}
	must(nodes == spec->nodes && gpus == spec->gpus && gpus >= 1 && gpus <= SW_CLUSTER_GPUS_MAX);
	const struct sw_cluster_run *last = &spec->runs.items[spec->runs.count - 1];
	must(spec->runs.items[0].first_rack == 0 && last->first_rack + (last->nodes - 1) / last->nodes_per_rack == spec->racks - 1);
	char text[96];
	must(strlen(sw_cluster_describe(spec, text)) > 0);
	sw_cluster_free(spec);
}

/* The notation "2x16x8" from the input's digits: never a path, so that no file is opened. */
static void try_counts(const char *text, size_t size)
{
	static const char alphabet[] = "0123456789xx";
	char counts[40] = "1";
	for (size_t i = 0; i < size && i < sizeof counts - 2; i++)
		counts[i + 1] = alphabet[(unsigned char)text[i] % (sizeof alphabet - 1)];
	struct sw_err err = {0};
	struct sw_cluster_spec *spec = NULL;
	int r = sw_cluster_load(counts, &spec, &err);
	try_cluster(spec, r, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct sw_err err = {0};
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	int r = sw_yaml_parse("fuzz", "fuzz", text, size, &doc, &err);
	must_agree(r, doc != NULL, &err);
	try_world(text, size);
	try_store(text, size);
	try_profiles(text, size);
	sw_err_clear(&err);
	struct sw_cluster_spec *spec = NULL;
	r = sw_cluster_parse("fuzz", text, size, &spec, &err);
	try_cluster(spec, r, &err);
	try_counts(text, size);
	return 0;
}
