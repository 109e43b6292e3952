/* Stands in for libFuzzer: hands every file of the folders named on the command line to the
 * fuzzer's function, once each.
 *
 * Not a fuzzer. It keeps the inputs that once mattered passing in builds that have no libFuzzer.
 * Without any input it fails, since a replay of nothing proves nothing.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"

#define INPUT_LIMIT ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_freep) char *bytes = NULL;
	size_t size;
	if (sw_file_read(path, INPUT_LIMIT, &bytes, &size, &err) < 0) {
		char line[1300];
		sw_err_format(&err, line, sizeof line);
		fprintf(stderr, "%s\n", line);
		return -1;
	}
	/* Named before it runs: when it crashes, this is the line that tells which. */
	fprintf(stderr, "%s\n", path);
	/* An exact copy lets the sanitizer see a read past the end. */
	SW_CLEANUP(sw_freep) uint8_t *exact = malloc(size > 0 ? size : 1);
	if (exact == NULL)
		return -1;
	memcpy(exact, bytes, size);
	LLVMFuzzerTestOneInput(exact, size);
	return 0;
}

/* Returns how many files it replayed, or -1. */
static int replay_folder(const char *folder)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, NULL, alphasort);
	if (count < 0) {
		perror(folder);
		return -1;
	}
	int replayed = 0;
	for (int i = 0; i < count; i++) {
		SW_CLEANUP(sw_freep) char *path = NULL;
		struct stat info;
		if (replayed >= 0 && asprintf(&path, "%s/%s", folder, entries[i]->d_name) > 0 && stat(path, &info) == 0 &&
		    S_ISREG(info.st_mode))
			replayed = replay_file(path) < 0 ? -1 : replayed + 1;
		free(entries[i]);
	}
	free(entries);
	return replayed;
}

int main(int argc, char **argv)
{
	int total = 0;
	for (int i = 1; i < argc; i++) {
		int replayed = replay_folder(argv[i]);
		if (replayed < 0)
			return 1;
		total += replayed;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	printf("%d inputs replayed\n", total);
	return total > 0 ? 0 : 1;
}
