#include "contention/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/embed.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/vec.h"
#include "base/yaml.h"

#define MAX_PROFILES 4096
#define MAX_ALIASES 32
#define LONGEST_NAME 80
#define LARGEST_MEMORY (INT64_C(16) << 40)

/* One way to spell a profile's name, in small letters. */
struct spelling {
	char *text;
	uint32_t profile;
	uint32_t line;
};

struct sw_profiles {
	struct sw_yaml *doc; /* owns the strings of the profiles */
	SW_VEC(struct sw_profile) profiles;
	SW_VEC(struct spelling) spellings; /* sorted by text once loaded */
	SW_VEC(char *) texts;		   /* of profiles that are not from the document */
	struct sw_profile fallback;
};

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static char *lowered(const char *text)
{
	char *copy = strdup(text);
	for (char *c = copy; c != NULL && *c != '\0'; c++)
		*c = lower(*c);
	return copy;
}

/* Decoding: an entry of the file as it stands, before it becomes a profile. */

struct entry {
	const char *name;
	const char *like;
	const char *source;
	const struct sw_yaml_node *aliases, *memory, *tensors, *use, *placement, *scaling, *totals;
	int64_t iteration_ns;
	int64_t busy_milli;
	bool estimated;
};

#define AT(member) .offset = offsetof(struct entry, member)
static const struct sw_yaml_field entry_fields[] = {
	{"name", SW_YAML_STRING, AT(name), .max = LONGEST_NAME},
	{"aliases", SW_YAML_LIST, AT(aliases), .max = MAX_ALIASES},
	{"like", SW_YAML_STRING, AT(like), .max = LONGEST_NAME},
	{"source", SW_YAML_STRING, AT(source)},
	{"estimated", SW_YAML_BOOL, AT(estimated)},
	{"iteration_time", SW_YAML_DURATION, AT(iteration_ns), .min = 1, .max = 3600 * SW_NS_PER_S},
	{"busy", SW_YAML_MILLI, AT(busy_milli), .min = 1, .max = 1000},
	{"memory", SW_YAML_MAP, AT(memory)},
	{"tensors", SW_YAML_MAP, AT(tensors)},
	{"use", SW_YAML_MAP, AT(use)},
	{"placement", SW_YAML_MAP, AT(placement)},
	{"scaling", SW_YAML_MAP, AT(scaling), .max = SW_PROFILE_SCALING_MAX},
	{"totals", SW_YAML_MAP, AT(totals), .max = SW_PROFILE_TOTALS_MAX},
};
#undef AT

static int decode_memory(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"persistent", SW_YAML_BYTES, true, offsetof(struct sw_profile, mem_persistent_bytes), .max = LARGEST_MEMORY},
		{"ephemeral", SW_YAML_BYTES, true, offsetof(struct sw_profile, mem_ephemeral_bytes), .max = LARGEST_MEMORY},
	};
	return sw_yaml_decode(node, "a memory demand", fields, SW_YAML_COUNT(fields), profile, err);
}

static int decode_tensors(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	static const struct sw_yaml_field fields[] = {
		{"model", SW_YAML_BYTES, true, offsetof(struct sw_profile, model_bytes), .max = LARGEST_MEMORY},
		{"largest", SW_YAML_BYTES, true, offsetof(struct sw_profile, largest_tensor_bytes), .max = LARGEST_MEMORY},
	};
	int r = sw_yaml_decode(node, "a list of tensor sizes", fields, SW_YAML_COUNT(fields), profile, err);
	if (r == 0 && profile->largest_tensor_bytes > profile->model_bytes)
		return sw_yaml_fail(node, err, "the largest tensor is larger than the model");
	return r;
}

static int decode_use(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	int64_t use[SW_USE_COUNT] = {0};
#define USE(key, index, need)                                                  \
	{                                                                      \
		key, SW_YAML_MILLI, need, (index) * sizeof use[0], .max = 1000 \
	}
	static const struct sw_yaml_field fields[] = {
		USE("sm", SW_USE_SM, true),
		USE("mem_pipe", SW_USE_MEM_PIPE, true),
		USE("l2", SW_USE_L2, true),
		USE("dram_read", SW_USE_DRAM_READ, true),
		USE("dram_write", SW_USE_DRAM_WRITE, true),
		USE("pcie", SW_USE_PCIE, false),
		USE("host_cpu", SW_USE_HOST_CPU, true),
		USE("host_mem", SW_USE_HOST_MEM, true),
	};
#undef USE
	int r = sw_yaml_decode(node, "a use vector", fields, SW_YAML_COUNT(fields), use, err);
	for (int i = 0; i < SW_USE_COUNT && r == 0; i++)
		profile->use_milli[i] = (uint16_t)use[i];
	return r;
}

static int decode_placement(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	int64_t slower[SW_SPREAD_COUNT] = {1000, 1000, 1000, 1000};
#define SPREAD(key, index)                                                                       \
	{                                                                                        \
		key, SW_YAML_MILLI, true, (index) * sizeof slower[0], .min = 1000, .max = 100000 \
	}
	static const struct sw_yaml_field fields[] = {
		SPREAD("group", SW_SPREAD_GROUP),
		SPREAD("node", SW_SPREAD_NODE),
		SPREAD("rack", SW_SPREAD_RACK),
		SPREAD("cluster", SW_SPREAD_CLUSTER),
	};
#undef SPREAD
	int r = sw_yaml_decode(node, "a placement slowdown", fields, SW_YAML_COUNT(fields), slower, err);
	for (int i = 0; i < SW_SPREAD_COUNT && r == 0; i++) {
		if (i > 0 && slower[i] < slower[i - 1])
			return sw_yaml_fail(node, err, "a job cannot run faster when its GPUs are further apart ('%s' is below '%s')",
					    fields[i].key, fields[i - 1].key);
		profile->placement_milli[i] = (uint32_t)slower[i];
	}
	return r;
}

/* The number that a member's key is; keys must ascend, so `*last` is the one before. */
static int ascending_key(const struct sw_yaml_node *node, int64_t least, int64_t *last, struct sw_err *err)
{
	int64_t key = 0;
	if (sw_parse_i64(node->key, strlen(node->key), &key) < 0 || key < least || key > INT32_MAX)
		return sw_yaml_fail(node, err, "the key '%s' must be a whole number from %d", node->key, (int)least);
	if (key <= *last)
		return sw_yaml_fail(node, err, "'%s' must come before the larger number", node->key);
	*last = key;
	return 0;
}

static int decode_scaling(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	static const struct sw_yaml_field speed_field = {NULL, SW_YAML_MILLI, .min = 1, .max = 1000000000};
	int64_t gpus = 0;
	profile->scaling_count = 0;
	for (const struct sw_yaml_node *member = node->first; member != NULL; member = member->next) {
		int64_t speed = 0;
		int r = ascending_key(member, 2, &gpus, err);
		if (r == 0)
			r = sw_yaml_value(member, &speed_field, &speed, err);
		if (r < 0)
			return r;
		profile->scaling[profile->scaling_count++] = (struct sw_profile_scaling){(uint32_t)gpus, (uint32_t)speed};
	}
	return 0;
}

static int decode_totals(const struct sw_yaml_node *node, struct sw_profile *profile, struct sw_err *err)
{
	static const struct sw_yaml_field total_field = {NULL, SW_YAML_DURATION, .min = 1};
	int64_t batch = 0;
	profile->totals_count = 0;
	for (const struct sw_yaml_node *member = node->first; member != NULL; member = member->next) {
		int64_t total = 0;
		int r = ascending_key(member, 1, &batch, err);
		if (r == 0)
			r = sw_yaml_value(member, &total_field, &total, err);
		if (r < 0)
			return r;
		profile->totals[profile->totals_count++] = (struct sw_profile_total){(uint32_t)batch, total};
	}
	return 0;
}

/* Where nothing was measured: no part of a GPU is in use while it has no work. So it is at least
 * the use of the most used part. It is also at least what GPUs in use are busy on average. */
static uint16_t likely_busy(const struct sw_profile *profile)
{
	uint32_t use_milli = sw_profile_gpu_use_milli(profile);
	return (uint16_t)(use_milli > SW_PROFILE_BUSY_MILLI ? use_milli : SW_PROFILE_BUSY_MILLI);
}

/* Everything of an entry but its names, over what `profile` already holds. */
static int decode_body(const struct sw_yaml_node *node, const struct entry *entry, struct sw_profile *profile, struct sw_err *err)
{
	const struct {
		const struct sw_yaml_node *node;
		int (*decode)(const struct sw_yaml_node *, struct sw_profile *, struct sw_err *);
		const char *key;
		bool given;
	} parts[] = {
		{entry->memory, decode_memory, "memory", profile->mem_persistent_bytes > 0},
		{entry->tensors, decode_tensors, "tensors", profile->model_bytes > 0},
		{entry->use, decode_use, "use", entry->like != NULL},
		{entry->placement, decode_placement, "placement", profile->placement_milli[0] > 0},
		{entry->scaling, decode_scaling, "scaling", profile->scaling_count > 0},
		{entry->totals, decode_totals, "totals", true},
	};
	if (entry->iteration_ns > 0)
		profile->iteration_ns = entry->iteration_ns;
	if (profile->iteration_ns == 0)
		return sw_yaml_fail(node, err, "a profile needs 'iteration_time'");
	for (size_t i = 0; i < SW_YAML_COUNT(parts); i++) {
		if (parts[i].node == NULL && !parts[i].given)
			return sw_yaml_fail(node, err, "a profile needs '%s'", parts[i].key);
		int r = parts[i].node != NULL ? parts[i].decode(parts[i].node, profile, err) : 0;
		if (r < 0)
			return r;
	}
	profile->busy_known |= entry->busy_milli > 0;
	if (entry->busy_milli > 0)
		profile->busy_milli = (uint16_t)entry->busy_milli;
	else if (!profile->busy_known)
		profile->busy_milli = likely_busy(profile);
	profile->estimated = entry->estimated;
	profile->source = entry->source;
	return 0;
}

/* Of two names in a few millions, two may have the same number; they are then alike
 * to whatever goes by it. */
static uint32_t number_of(const char *name)
{
	uint64_t hash = SW_HASH_START;
	for (const char *c = name; *c != '\0'; c++)
		hash = sw_hash_u64(hash, (unsigned char)lower(*c));
	return (uint32_t)(hash % INT32_MAX) + 1;
}

static int add_spelling(struct sw_profiles *profiles, const struct sw_yaml_node *node, const char *text, struct sw_err *err)
{
	struct spelling *spelling = sw_vec_push(&profiles->spellings);
	if (spelling == NULL || (spelling->text = lowered(text)) == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read profiles: out of memory");
	spelling->profile = (uint32_t)profiles->profiles.count - 1;
	spelling->line = node->line;
	return 0;
}

static int add_aliases(struct sw_profiles *profiles, const struct sw_yaml_node *aliases, struct sw_err *err)
{
	static const struct sw_yaml_field alias_field = {NULL, SW_YAML_STRING, .max = LONGEST_NAME};
	for (const struct sw_yaml_node *member = aliases->first; member != NULL; member = member->next) {
		const char *alias = NULL;
		int r = sw_yaml_value(member, &alias_field, &alias, err);
		if (r == 0)
			r = add_spelling(profiles, member, alias, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_profile(struct sw_profiles *profiles, const struct sw_yaml_node *node, struct sw_err *err)
{
	struct entry entry = {0};
	int r = sw_yaml_decode(node, "a profile", entry_fields, SW_YAML_COUNT(entry_fields), &entry, err);
	if (r < 0)
		return r;
	if (entry.name == NULL || entry.source == NULL)
		return sw_yaml_fail(node, err, "a profile needs '%s'", entry.name == NULL ? "name" : "source");
	struct sw_profile profile = {0};
	if (entry.like != NULL) {
		/* Only profiles above this one: no circles, and the file reads from top to
		 * bottom. */
		const struct sw_profile *model = NULL;
		for (size_t i = 0; i < profiles->profiles.count && model == NULL; i++)
			if (strcmp(profiles->profiles.items[i].name, entry.like) == 0)
				model = &profiles->profiles.items[i];
		if (model == NULL)
			return sw_yaml_fail(node, err, "'like' names '%s', which is not the name of a profile above this one", entry.like);
		profile = *model;
		profile.totals_count = 0;
	}
	profile.name = entry.name;
	profile.number = number_of(entry.name);
	r = decode_body(node, &entry, &profile, err);
	if (r < 0)
		return r;
	struct sw_profile *slot = sw_vec_push(&profiles->profiles);
	if (slot == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read profiles: out of memory");
	*slot = profile;
	r = add_spelling(profiles, node, entry.name, err);
	if (r == 0 && entry.aliases != NULL)
		r = add_aliases(profiles, entry.aliases, err);
	return r;
}

static int read_fallback(struct sw_profiles *profiles, const struct sw_yaml_node *node, struct sw_err *err)
{
	struct entry entry = {0};
	int r = sw_yaml_decode(node, "the default profile", entry_fields, SW_YAML_COUNT(entry_fields), &entry, err);
	if (r < 0)
		return r;
	if (entry.name != NULL || entry.aliases != NULL || entry.like != NULL)
		return sw_yaml_fail(node, err, "the default profile has no name, aliases or like");
	if (entry.source == NULL)
		return sw_yaml_fail(node, err, "the default profile needs 'source'");
	r = decode_body(node, &entry, &profiles->fallback, err);
	profiles->fallback.name = "default";
	profiles->fallback.is_default = true;
	return r;
}

static int compare_spellings(const void *left, const void *right)
{
	const struct spelling *a = left, *b = right;
	int order = strcmp(a->text, b->text);
	return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static int sort_spellings(struct sw_profiles *profiles, const struct sw_yaml_node *root, struct sw_err *err)
{
	struct spelling *spellings = profiles->spellings.items;
	qsort(spellings, profiles->spellings.count, sizeof *spellings, compare_spellings);
	for (size_t i = 1; i < profiles->spellings.count; i++) {
		if (strcmp(spellings[i - 1].text, spellings[i].text) != 0)
			continue;
		struct sw_yaml_node where = {.doc = root->doc, .line = spellings[i].line};
		return sw_yaml_fail(&where, err, "the name '%s' is taken already in line %u (case is ignored)", spellings[i].text,
				    spellings[i - 1].line);
	}
	return 0;
}

static int build(struct sw_profiles *profiles, struct sw_err *err)
{
	struct top {
		const struct sw_yaml_node *fallback, *list;
	} top = {0};
	static const struct sw_yaml_field fields[] = {
		{"default", SW_YAML_MAP, true, .offset = offsetof(struct top, fallback)},
		{"profiles", SW_YAML_LIST, true, .offset = offsetof(struct top, list), .max = MAX_PROFILES},
	};
	const struct sw_yaml_node *root = sw_yaml_root(profiles->doc);
	int r = sw_yaml_decode(root, "a file of profiles", fields, SW_YAML_COUNT(fields), &top, err);
	if (r == 0)
		r = read_fallback(profiles, top.fallback, err);
	for (const struct sw_yaml_node *node = r == 0 ? top.list->first : NULL; node != NULL && r == 0; node = node->next)
		r = add_profile(profiles, node, err);
	return r < 0 ? r : sort_spellings(profiles, root, err);
}

int sw_profiles_parse(const char *name, const char *text, size_t size, struct sw_profiles **ret_profiles, struct sw_err *err)
{
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *profiles = calloc(1, sizeof *profiles);
	if (profiles == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read profiles '%.200s': out of memory", name);
	int r = sw_yaml_parse("profiles", name, text, size, &profiles->doc, err);
	if (r == 0)
		r = build(profiles, err);
	if (r < 0)
		return r;
	*ret_profiles = SW_TAKE(profiles);
	return 0;
}

int sw_profiles_load_default(struct sw_profiles **ret_profiles, struct sw_err *err)
{
	size_t size = 0;
	const char *text = sw_embedded("profiles.yaml", &size);
	if (text == NULL)
		return sw_err_set(err, SW_EBUG, "this program was built without its profiles");
	return sw_profiles_parse("profiles.yaml", text, size, ret_profiles, err);
}

void sw_profiles_free(struct sw_profiles *profiles)
{
	if (profiles == NULL)
		return;
	for (size_t i = 0; i < profiles->spellings.count; i++)
		free(profiles->spellings.items[i].text);
	sw_vec_free(&profiles->spellings);
	for (size_t i = 0; i < profiles->texts.count; i++)
		free(profiles->texts.items[i]);
	sw_vec_free(&profiles->texts);
	sw_vec_free(&profiles->profiles);
	sw_yaml_free(profiles->doc);
	free(profiles);
}

/* strcmp of any word with a spelling, which is in small letters already. */
static int compare_word(const char *word, const char *spelling)
{
	while (*word != '\0' && lower(*word) == *spelling) {
		word++;
		spelling++;
	}
	return (int)(unsigned char)lower(*word) - (int)(unsigned char)*spelling;
}

/* Where the spelling stands, or would stand. */
static size_t place_of(const struct sw_profiles *profiles, const char *model, bool *ret_found)
{
	size_t low = 0, high = profiles->spellings.count;
	*ret_found = false;
	while (low < high && !*ret_found) {
		size_t middle = low + (high - low) / 2;
		int order = compare_word(model, profiles->spellings.items[middle].text);
		*ret_found = order == 0;
		if (order <= 0)
			high = middle;
		else
			low = middle + 1;
	}
	return high;
}

const struct sw_profile *sw_profiles_find(const struct sw_profiles *profiles, const char *model)
{
	bool found;
	size_t place = place_of(profiles, model, &found);
	return found ? &profiles->profiles.items[profiles->spellings.items[place].profile] : &profiles->fallback;
}

static const char *keep_text(struct sw_profiles *profiles, const char *text)
{
	char **slot = sw_vec_push(&profiles->texts);
	return slot != NULL ? *slot = strdup(text) : NULL;
}

/* This spelling means that profile from now on. */
static int spell(struct sw_profiles *profiles, const char *text, uint32_t profile)
{
	bool found;
	size_t place = place_of(profiles, text, &found);
	if (found) {
		profiles->spellings.items[place].profile = profile;
		return 0;
	}
	struct spelling spelling = {lowered(text), profile, 0};
	if (spelling.text == NULL || sw_vec_push(&profiles->spellings) == NULL) {
		free(spelling.text);
		return SW_ENOMEM;
	}
	struct spelling *items = profiles->spellings.items;
	memmove(&items[place + 1], &items[place], (profiles->spellings.count - 1 - place) * sizeof *items);
	items[place] = spelling;
	return 0;
}

/* Where a profile of this very name stands; behind the last: nowhere. An alias is not a name. */
static uint32_t seat_of(const struct sw_profiles *profiles, const char *name)
{
	const struct sw_profile *there = sw_profiles_find(profiles, name);
	return !there->is_default && there->number == number_of(name) ? (uint32_t)(there - profiles->profiles.items)
								      : (uint32_t)profiles->profiles.count;
}

int sw_profiles_put(struct sw_profiles *profiles, const struct sw_profile *profile, const char *alias, struct sw_err *err)
{
	struct sw_profile own = *profile;
	uint32_t seat = seat_of(profiles, profile->name);
	bool is_new = seat == profiles->profiles.count;
	const struct sw_profile *there = is_new ? NULL : &profiles->profiles.items[seat];
	if (is_new && seat >= MAX_PROFILES)
		return sw_err_set(err, SW_ELIMIT, "there are more than %d profiles", MAX_PROFILES);
	/* Replaced for as long as the program runs, it takes no more room. */
	own.name = there != NULL ? there->name : keep_text(profiles, profile->name);
	own.source = there != NULL && strcmp(there->source, profile->source) == 0 ? there->source : keep_text(profiles, profile->source);
	own.number = own.name != NULL ? number_of(own.name) : 0;
	struct sw_profile *slot = own.name == NULL || own.source == NULL ? NULL
				  : is_new				 ? sw_vec_push(&profiles->profiles)
									 : &profiles->profiles.items[seat];
	if (slot == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	*slot = own;
	if (spell(profiles, own.name, seat) < 0 || (alias != NULL && spell(profiles, alias, seat) < 0))
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

int sw_profiles_copy(const struct sw_profiles *base, struct sw_profiles **ret_profiles, struct sw_err *err)
{
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *copy = calloc(1, sizeof *copy);
	if (copy == NULL || sw_vec_reserve(&copy->profiles, base->profiles.count) < 0 ||
	    sw_vec_reserve(&copy->spellings, base->spellings.count) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	copy->fallback = base->fallback;
	for (size_t i = 0; i < base->profiles.count; i++)
		*sw_vec_push(&copy->profiles) = base->profiles.items[i];
	for (size_t i = 0; i < base->spellings.count; i++) {
		struct spelling *spelling = sw_vec_push(&copy->spellings);
		*spelling = base->spellings.items[i];
		if ((spelling->text = strdup(spelling->text)) == NULL)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	*ret_profiles = SW_TAKE(copy);
	return 0;
}

int sw_profiles_restore(struct sw_profiles *profiles, const struct sw_profiles *base,
			bool (*keeps)(void *user, const struct sw_profile *profile), void *user, struct sw_err *err)
{
	SW_CLEANUP(sw_profiles_freep) struct sw_profiles *fresh = NULL;
	int r = sw_profiles_copy(base, &fresh, err);
	if (r < 0 || fresh == NULL) /* both or neither, which the analyzer does not see */
		return r;
	for (size_t i = 0; i < profiles->profiles.count && r == 0; i++)
		if (profiles->profiles.items[i].is_own && keeps(user, &profiles->profiles.items[i]))
			r = sw_profiles_put(fresh, &profiles->profiles.items[i], NULL, err);
	if (r < 0)
		return r;
	/* In place: others know it by its address. */
	struct sw_profiles old = *profiles;
	*profiles = *fresh;
	*fresh = old;
	return 0;
}

const struct sw_profile *sw_profiles_find_batch(const struct sw_profiles *profiles, const char *model, uint32_t batch)
{
	char name[LONGEST_NAME + 32];
	if (batch > 0 && strlen(model) <= LONGEST_NAME) {
		snprintf(name, sizeof name, "%s (batch size %u)", model, batch);
		const struct sw_profile *profile = sw_profiles_find(profiles, name);
		if (!profile->is_default)
			return profile;
	}
	return sw_profiles_find(profiles, model);
}

const struct sw_profile *sw_profiles_at(const struct sw_profiles *profiles, size_t index)
{
	return index < profiles->profiles.count ? &profiles->profiles.items[index] : NULL;
}

const struct sw_profile *sw_profiles_by_number(const struct sw_profiles *profiles, uint32_t number)
{
	for (size_t i = 0; i < profiles->profiles.count; i++)
		if (profiles->profiles.items[i].number == number)
			return &profiles->profiles.items[i];
	return &profiles->fallback;
}
