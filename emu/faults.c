/* Faults on demand. Without any, a call costs one load. */
#include "faults.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "config.h"
#include "shared.h"

#define LOOK_AGAIN_NS 5000000ULL

static struct emu_fault faults[EMU_FAULTS_MAX];
static uint64_t calls[EMU_FAULTS_MAX]; /* of the entry of each fault */
static unsigned fixed_count, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool any;
static _Atomic uint64_t looked_ns;
static struct timespec control_changed;

/* Faults are separated by spaces, commas, semicolons or line ends; a part that is not
 * understood is left out. */
static void add(const char *text)
{
	while (*text != '\0') {
		size_t length = strcspn(text, " ,;\n");
		if (length > 0 && count < EMU_FAULTS_MAX && emu_config_parse_fault(text, length, &faults[count])) {
			calls[count] = 0;
			count++;
		}
		text += length + (text[length] != '\0');
	}
}

static void load(void)
{
	const struct emu_config *config = emu_config();
	memcpy(faults, config->faults, sizeof faults);
	count = config->fault_count;
	const char *given = getenv("SHAREWELL_EMU_FAULTS");
	if (given != NULL)
		add(given);
	fixed_count = count;
	atomic_store(&any, count > 0 || config->control_path[0] != '\0');
}

/* The control file replaces its faults as a whole when it changes, and counts from then on. */
static void look_at_control(void)
{
	const char *path = emu_config()->control_path;
	uint64_t now = emu_now(), before = atomic_load(&looked_ns);
	if (path[0] == '\0' || now - before < LOOK_AGAIN_NS || !atomic_compare_exchange_strong(&looked_ns, &before, now))
		return;
	struct stat about;
	bool there = stat(path, &about) == 0;
	if (there && memcmp(&about.st_mtim, &control_changed, sizeof control_changed) == 0)
		return;
	control_changed = there ? about.st_mtim : (struct timespec){0};
	count = fixed_count;
	FILE *file = there ? fopen(path, "re") : NULL;
	if (file == NULL)
		return;
	char text[4096];
	size_t length = fread(text, 1, sizeof text - 1, file);
	fclose(file);
	text[length] = '\0';
	add(text);
}

/* For tests that must know that a call is under way: the file is there then, and the call
 * goes on when it is gone. */
static void hold(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	close(fd);
	while (access(path, F_OK) == 0)
		emu_sleep_until(emu_now() + LOOK_AGAIN_NS);
}

CUresult emu_fault_at(const char *entry)
{
	pthread_once(&once, load);
	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return CUDA_SUCCESS;
	uint64_t delay = 0;
	CUresult result = CUDA_SUCCESS;
	bool lose = false;
	char held[sizeof faults[0].hold] = "";
	pthread_mutex_lock(&lock);
	look_at_control();
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(faults[i].entry, entry) != 0)
			continue;
		calls[i]++;
		if (calls[i] < faults[i].first || calls[i] - faults[i].first >= faults[i].count)
			continue;
		delay += faults[i].delay_ns;
		if (faults[i].error != 0)
			result = faults[i].error;
		lose = lose || faults[i].lose_device;
		if (faults[i].hold[0] != '\0')
			memcpy(held, faults[i].hold, sizeof held);
	}
	pthread_mutex_unlock(&lock);
	if (delay > 0)
		emu_sleep_until(emu_now() + delay);
	if (held[0] != '\0')
		hold(held);
	for (unsigned gpu = 0; lose && gpu < emu_config()->gpu_count; gpu++)
		atomic_store(&emu_state()->engines[gpu].lost, true);
	return result;
}
