#include "share/preload.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "libsharewell-gpu.so"

/* The program's own folder. */
static int own_folder(char *path, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", path, size - 1);
	if (length <= 0)
		return SW_EIO;
	path[length] = '\0';
	char *slash = strrchr(path, '/');
	if (slash != NULL)
		*slash = '\0';
	return 0;
}

int sw_share_find_library(char *path, size_t size, struct sw_err *err)
{
	static const char *const beside[] = {"", "/../lib/sharewell", "/../lib/x86_64-linux-gnu/sharewell",
					     "/../lib/aarch64-linux-gnu/sharewell", "/../lib64/sharewell"};
	const char *named = getenv("SHAREWELL_GPU_LIBRARY");
	char folder[PATH_MAX];
	if (named != NULL && named[0] != '\0' && access(named, R_OK) == 0 && (size_t)snprintf(path, size, "%s", named) < size)
		return 0;
	if (own_folder(folder, sizeof folder) == 0)
		for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
			if ((size_t)snprintf(path, size, "%s%s/" NAME, folder, beside[i]) < size && access(path, R_OK) == 0)
				return 0;
	sw_err_set(err, SW_ENOTFOUND, "cannot find " NAME);
	sw_err_detail(err, "it is neither beside this program nor where 'make install' puts it");
	sw_err_hint(err, "Name it in SHAREWELL_GPU_LIBRARY.");
	return SW_ENOTFOUND;
}

int sw_share_preload_value(const char *library, const char *before, char *value, size_t size, struct sw_err *err)
{
	/* The loader takes spaces and colons for separators and cannot be told otherwise. */
	if (strpbrk(library, ": ") != NULL) {
		sw_err_set(err, SW_EINPUT, "cannot preload '%.200s'", library);
		sw_err_detail(err, "its path has a space or a colon");
		sw_err_hint(err, "Copy it elsewhere and name it in SHAREWELL_GPU_LIBRARY.");
		return SW_EINPUT;
	}
	bool more = before != NULL && before[0] != '\0';
	if ((size_t)snprintf(value, size, "%s%s%s", library, more ? ":" : "", more ? before : "") >= size)
		return sw_err_set(err, SW_ELIMIT, "LD_PRELOAD would be too long");
	return 0;
}

void sw_share_preload_strip(char *value)
{
	char *kept = value;
	for (const char *word = value; *word != '\0';) {
		size_t size = strcspn(word, ": "), gap = strspn(word + size, ": ");
		size_t length = strlen(NAME);
		bool ours = size >= length && memcmp(word + size - length, NAME, length) == 0 &&
			    (size == length || word[size - length - 1] == '/');
		if (!ours && size > 0) {
			if (kept != value)
				*kept++ = ':';
			memmove(kept, word, size);
			kept += size;
		}
		word += size + gap;
	}
	*kept = '\0';
}
