/* CUDA_VISIBLE_DEVICES names the GPUs that the job had when it was started, and so does SHAREWELL_GPU_PLACES, by their places in the page. Where the page has another GPU in
 * a place by now, that one takes its name's place in both. A program that chose other GPUs, or by number, is left alone. */
#include "runtime/places.h"

#include <sharewell/runtime.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/account.h"
#include "runtime/nvml.h"

#define LIST_MAX 2048

struct list {
	char text[LIST_MAX];
	size_t used;
};

static void add(struct list *list, const char *word, size_t size)
{
	if (list->used + size + 2 > sizeof list->text) {
		list->used = sizeof list->text; /* too long: it is not used */
		return;
	}
	if (list->used > 0)
		list->text[list->used++] = ',';
	memcpy(list->text + list->used, word, size);
	list->used += size;
	list->text[list->used] = '\0';
}

/* The next word of a list with commas; false: there is none. */
static bool next(const char **at, const char **ret_word, size_t *ret_size)
{
	if (**at == '\0')
		return false;
	*ret_word = *at;
	*ret_size = strcspn(*at, ",");
	*at += *ret_size + ((*at)[*ret_size] == ',');
	return true;
}

/* What is in the place that this word had; the word itself where it had none. */
static const char *present(const char *places, char now[SW_PAGE_GPUS][SW_NVML_UUID_SIZE], const char *word, size_t *size)
{
	const char *place;
	size_t length;
	for (uint32_t i = 0; i < SW_PAGE_GPUS && next(&places, &place, &length); i++)
		if (length == *size && memcmp(place, word, length) == 0) {
			*size = strlen(now[i]);
			return now[i];
		}
	return word;
}

void sw_places_follow(void)
{
	const struct sw_page *page = sw_account_peek();
	const char *places = getenv(SW_PAGE_PLACES_ENV), *visible = getenv("CUDA_VISIBLE_DEVICES"), *word;
	char now[SW_PAGE_GPUS][SW_NVML_UUID_SIZE];
	struct list list = {.used = 0}, own = {.used = 0};
	size_t size;
	if (page == NULL || places == NULL || visible == NULL)
		return;
	for (uint32_t i = 0; i < SW_PAGE_GPUS; i++) {
		now[i][0] = '\0';
		if (i < page->gpu_count)
			sw_nvml_write_uuid(page->gpus[i].uuid, now[i]);
		if (i < page->gpu_count)
			add(&own, now[i], strlen(now[i]));
	}
	if (own.used >= sizeof own.text || strcmp(own.text, places) == 0)
		return;
	while (next(&visible, &word, &size)) {
		word = present(places, now, word, &size);
		add(&list, word, size);
	}
	if (list.used == 0 || list.used >= sizeof list.text)
		return;
	setenv("CUDA_VISIBLE_DEVICES", list.text, 1);
	setenv(SW_PAGE_PLACES_ENV, own.text, 1);
}
