#include "share/outside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/* Beyond what is charged, a process has modules, stacks and heaps of its kernels on the GPU, of
 * which no call tells. With large libraries these are some hundred MiB. */
#define SLACK_BYTES (UINT64_C(1) << 30)
enum { SLACK_PART = 4, NAMESPACES = 8, DEPTH = 100, ENVIRON_MAX = 1 << 20 };

/* ---- what the system says of a process */

struct about {
	pid_t parent;
	pid_t ids[NAMESPACES]; /* its numbers, from ours to that of its innermost namespace */
	unsigned id_count;
};

static bool read_about(pid_t pid, struct about *about)
{
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	*about = (struct about){0};
	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		if (strncmp(line, "PPid:", 5) == 0)
			about->parent = (pid_t)strtol(line + 5, NULL, 10);
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		char *at = line + 6, *end = at;
		for (long id = strtol(at, &end, 10); end != at && about->id_count < NAMESPACES; id = strtol(at, &end, 10)) {
			about->ids[about->id_count++] = (pid_t)id;
			at = end;
		}
	}
	if (file != NULL)
		fclose(file);
	return about->id_count > 0;
}

static bool descends(pid_t pid, pid_t root)
{
	struct about about;
	for (int depth = 0; depth < DEPTH && pid > 1 && read_about(pid, &about); depth++) {
		if (about.parent == root)
			return true;
		pid = about.parent;
	}
	return false;
}

/* The page that its environment names, in the text of it; NULL: none. */
static const char *find_page(const char *text, size_t size)
{
	size_t length = strlen(SW_PAGE_ENV "=");
	for (size_t at = 0; at < size; at += strlen(text + at) + 1)
		if (strncmp(text + at, SW_PAGE_ENV "=", length) == 0 && text[at + length] != '\0')
			return text + at + length;
	return NULL;
}

bool sw_outside_is_of(pid_t pid, pid_t root, const char *page_path)
{
	char path[64];
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
	const char *named = sw_file_read(path, ENVIRON_MAX, &text, &size, NULL) < 0 ? NULL : find_page(text, size);
	/* A program in it may be started with a page of its own. */
	return named != NULL ? strcmp(named, page_path) == 0 : descends(pid, root);
}

/* ---- what its page says */

/* Processes write their numbers as they know them. */
static bool has_id(const struct about *about, pid_t id)
{
	for (unsigned i = 0; i < about->id_count; i++)
		if (about->ids[i] == id)
			return true;
	return false;
}

static bool is_outside(struct sw_share_page *page, uint32_t gpu, pid_t pid, uint64_t bytes)
{
	const struct sw_page *shared = sw_share_page_shared(page);
	struct about about;
	if (!read_about(pid, &about))
		return false; /* it is gone */
	for (uint32_t i = 0; i < SW_PAGE_SLOTS; i++) {
		const struct sw_page_slot *slot = &shared->slots[i];
		pid_t id = atomic_load(&slot->pid);
		uint64_t charged = atomic_load(&slot->gpus[gpu].charged_bytes);
		if (id != 0 && has_id(&about, id))
			return bytes > SLACK_BYTES && (bytes - SLACK_BYTES) / (SLACK_PART + 1) * SLACK_PART > charged;
	}
	return true;
}

void sw_outside_add(struct sw_share_page *page, uint32_t gpu, pid_t pid, uint64_t bytes, struct sw_outside *outside)
{
	if (gpu >= SW_PAGE_GPUS || !is_outside(page, gpu, pid, bytes))
		return;
	outside->processes++;
	outside->bytes += bytes;
	outside->pid = pid;
}

uint32_t sw_outside_steady(uint32_t *memory, uint32_t count)
{
	bool is_first = *memory == 0;
	uint32_t before = *memory - 1;
	*memory = count + 1;
	return is_first || count < before ? count : before;
}

void sw_outside_note(struct sw_share_page *page, uint32_t gpu, const struct sw_outside *outside)
{
	struct sw_page_gpu *place = &sw_share_page_shared(page)->gpus[gpu];
	atomic_store(&place->outside_bytes, outside->bytes);
	atomic_store(&place->outside_pid, outside->pid);
	atomic_store(&place->outside_processes, outside->processes);
	sw_share_page_put(page, &place->outside_bytes, sizeof place->outside_bytes);
	sw_share_page_put(page, &place->outside_pid, sizeof place->outside_pid);
	sw_share_page_put(page, &place->outside_processes, sizeof place->outside_processes);
}
