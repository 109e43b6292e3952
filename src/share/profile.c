#include "share/profile.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define FILE_BYTES (256u << 10)
/* Whatever a job writes, sums and products stay numbers. */
#define MOST (UINT64_C(1) << 50)

uint32_t sw_share_profile_want(struct sw_share_page *page, bool on)
{
	struct sw_page *shared = sw_share_page_shared(page);
	atomic_store(&shared->profiled, on);
	sw_share_page_put(page, &shared->profiled, sizeof shared->profiled);
	return sw_share_page_tell(page);
}

static uint64_t number(char **text)
{
	uint64_t value = **text == ' ' ? strtoull(*text, text, 10) : 0;
	return value < MOST ? value : MOST;
}

static int64_t bounded(double value)
{
	return value < (double)MOST ? (int64_t)value : (int64_t)MOST;
}

int64_t sw_share_function_ns(const struct sw_share_function *function)
{
	/* Exact where all of them were timed. */
	return function->timed > 0 ? bounded((double)function->ns * ((double)function->launches / (double)function->timed)) : 0;
}

int64_t sw_share_profile_per_iteration(const struct sw_share_profile *profile, uint64_t amount)
{
	return profile->window_ns > 0 ? bounded((double)amount * (double)profile->iteration_ns / (double)profile->window_ns) : 0;
}

static void take_function(struct sw_share_profile *profile, char *text)
{
	uint64_t launches = number(&text), timed = number(&text), ns = number(&text);
	struct sw_share_function function = {.launches = launches, .timed = timed < launches ? timed : launches, .ns = (int64_t)ns};
	snprintf(function.name, sizeof function.name, "%s", *text == ' ' ? text + 1 : "");
	profile->launches += launches;
	profile->timed += function.timed;
	profile->busy_ns = bounded((double)profile->busy_ns + (double)sw_share_function_ns(&function));
	if (profile->function_count < SW_PROFILE_FUNCTIONS)
		profile->functions[profile->function_count++] = function;
}

static void take_line(struct sw_share_profile *profile, char *line)
{
	static const char *const ways[SW_COPIED_WAYS] = {"copied_to_gpu", "copied_from_gpu", "copied_within", "copied_unknown"};
	const struct {
		const char *word;
		void *place;
	} figures[] = {{"window_ns", &profile->window_ns},
		       {"iterations", &profile->iterations},
		       {"iteration_ns", &profile->iteration_ns},
		       {"iteration_jitter_ns", &profile->iteration_jitter_ns},
		       {"iteration_launches", &profile->iteration_launches},
		       {"peak_bytes", &profile->peak_bytes},
		       {"floor_bytes", &profile->floor_bytes}};
	size_t length = strcspn(line, " ");
	char *rest = line + length;
	if (length == strlen("function") && strncmp(line, "function", length) == 0)
		take_function(profile, rest);
	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
		if (strlen(figures[i].word) == length && strncmp(line, figures[i].word, length) == 0) {
			uint64_t value = number(&rest);
			memcpy(figures[i].place, &value, sizeof value);
		}
	for (size_t i = 0; i < SW_COPIED_WAYS; i++)
		if (strlen(ways[i]) == length && strncmp(line, ways[i], length) == 0) {
			profile->copied[i].copies = number(&rest);
			profile->copied[i].bytes = number(&rest);
		}
}

static bool read_profile(const char *path, struct sw_share_profile *profile)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size = 0;
	char *rest = NULL;
	if (sw_file_read(path, FILE_BYTES, &text, &size, NULL) < 0 || strncmp(text, "sharewell-profile 1\n", 20) != 0)
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		take_line(profile, line);
	return true;
}

size_t sw_share_profile_take(const char *path, struct sw_share_profile *profiles, size_t room)
{
	char folder[PATH_MAX], prefix[NAME_MAX + 16], file[PATH_MAX + NAME_MAX + 2];
	const char *base = strrchr(path, '/');
	size_t count = 0;
	if (base == NULL || strlen(path) >= sizeof folder)
		return 0;
	snprintf(folder, sizeof folder, "%.*s", (int)(base - path), path);
	snprintf(prefix, sizeof prefix, ".%.*s.profile.", NAME_MAX, base + 1);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
		if (count < room) {
			profiles[count] = (struct sw_share_profile){.pid = (int32_t)strtol(entry->d_name + strlen(prefix), NULL, 10)};
			count += strchr(entry->d_name, '~') == NULL && read_profile(file, &profiles[count]);
		}
		unlink(file);
	}
	if (dir != NULL)
		closedir(dir);
	return count;
}
