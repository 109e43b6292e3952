#include "base/embed.h"

#include <string.h>

const char *sw_embedded(const char *name, size_t *ret_size)
{
	for (const struct sw_embedded_file *file = sw_embedded_files; file->name != NULL; file++) {
		if (strcmp(file->name, name) != 0)
			continue;
		if (ret_size != NULL)
			*ret_size = (size_t)(file->end - file->bytes);
		return file->bytes;
	}
	return NULL;
}

const char *sw_embedded_name(size_t index)
{
	/* Walks from the start: the end of the table is known by its mark only. */
	const struct sw_embedded_file *file = sw_embedded_files;
	while (index > 0 && file->name != NULL) {
		file++;
		index--;
	}
	return file->name;
}
