/* CUDA_VISIBLE_DEVICES names the GPUs that the job had when it was started, and so does
 * SHAREWELL_GPU_PLACES, by their places in the page. Where the page has another GPU in a place
 * by now, that one takes its name's place in both. A program that chose other GPUs, or by
 * number, is left alone.
 *
 * The driver looks at them once. A process may move the job between that look and the moment when
 * this process is in the page. It would not know of this one, and leave it behind. So the page's
 * door is held. */
#include "runtime/places.h"

#include <errno.h>
#include <fcntl.h>
#include <sharewell/runtime.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void follow(void)
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

int sw_places_enter(void)
{
	const char *path = getenv(SW_PAGE_ENV);
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = SW_PAGE_DOOR, .l_len = 1};
	int door = path == NULL || path[0] == '\0' ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	while (door >= 0 && fcntl(door, F_OFD_SETLKW, &lock) != 0 && errno == EINTR)
		;
	follow();
	return door;
}

void sw_places_leave(int door)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = SW_PAGE_DOOR, .l_len = 1};
	if (door < 0)
		return;
	/* Not by closing it alone: a child that another thread forked meanwhile has it too. */
	(void)fcntl(door, F_OFD_SETLK, &lock);
	close(door);
}
