/* Copies of wishes: one block each, so that its owner has one thing to free. Works in two passes
 * over the same walk: the first counts, the second fills. */
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/sync.h"

struct bump {
	char *base; /* NULL: only counting */
	size_t used;
};

static void *take(struct bump *bump, size_t size, size_t align)
{
	bump->used = (bump->used + align - 1) / align * align;
	void *place = bump->base != NULL ? bump->base + bump->used : NULL;
	bump->used += size;
	return place;
}

static const char *copy_text(struct bump *bump, const char *text)
{
	if (text == NULL)
		return NULL;
	size_t size = strlen(text) + 1;
	char *copy = take(bump, size, 1);
	if (copy != NULL)
		memcpy(copy, text, size);
	return copy;
}

static void copy_texts(struct bump *bump, const struct sw_texts *texts, struct sw_texts *copy)
{
	const char **items = take(bump, (texts->count + 1) * sizeof *items, alignof(const char *));
	for (size_t i = 0; i < texts->count; i++) {
		const char *text = copy_text(bump, texts->items[i]);
		if (items != NULL)
			items[i] = text;
	}
	if (items != NULL)
		items[texts->count] = NULL;
	copy->items = items;
	copy->count = texts->count;
}

/* `scratch` stands for the copy of the spec while only counting. */
static void walk(struct bump *bump, const struct sw_want *want, struct sw_want *copy, struct sw_run_spec *scratch)
{
	take(bump, sizeof *copy, alignof(struct sw_want));
	*copy = *want;
	copy_texts(bump, &want->gpus, &copy->gpus);
	copy->why = copy_text(bump, want->why);
	copy->unfit = copy_text(bump, want->unfit);
	if (want->spec != NULL) {
		struct sw_run_spec *spec = take(bump, sizeof *spec, alignof(struct sw_run_spec));
		if (spec == NULL)
			spec = scratch;
		*spec = *want->spec;
		spec->name = copy_text(bump, want->spec->name);
		copy_texts(bump, &want->spec->argv, &spec->argv);
		copy_texts(bump, &want->spec->env, &spec->env);
		spec->workdir = copy_text(bump, want->spec->workdir);
		spec->stdout_path = copy_text(bump, want->spec->stdout_path);
		spec->stderr_path = copy_text(bump, want->spec->stderr_path);
		copy->spec = spec;
	}
}

int sw_want_copy(const struct sw_want *want, struct sw_want **ret_copy)
{
	struct bump bump = {0};
	struct sw_want scratch;
	struct sw_run_spec scratch_spec;
	walk(&bump, want, &scratch, &scratch_spec);
	bump.base = malloc(bump.used);
	if (bump.base == NULL)
		return SW_ENOMEM;
	bump.used = 0;
	/* The wish itself lies at the beginning of its block. */
	struct sw_want *copy = (struct sw_want *)(void *)bump.base;
	walk(&bump, want, copy, &scratch_spec);
	*ret_copy = copy;
	return 0;
}
