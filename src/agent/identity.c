#include "agent/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/folder.h"
#include "base/cleanup.h"
#include "base/hash.h"

#define FILE_NAME "identity"

_Static_assert(SW_SYNC_HOME_MAX == 32, "the file is read with that length");

void sw_identity_machine(char ret_machine[SW_IDENTITY_MACHINE_SIZE])
{
	char name[256] = "", id[64] = "";
	(void)!gethostname(name, sizeof name - 1);
	int fd = open("/etc/machine-id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!read(fd, id, sizeof id - 1);
		close(fd);
	}
	uint64_t hash = sw_hash_bytes(SW_HASH_START, name, strlen(name) + 1);
	snprintf(ret_machine, SW_IDENTITY_MACHINE_SIZE, "%016" PRIx64, sw_hash_bytes(hash, id, strlen(id)));
}

/* True: the folder has an identity, and it is of this machine. */
static bool read_identity(int state, const char *machine, struct sw_identity *ret_identity)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	char kept[64];
	if (sw_folder_read(state, FILE_NAME, &text, &size, NULL) < 0 ||
	    sscanf(text, "%32[0-9a-f] %" SCNu64 " %63s", ret_identity->home, &ret_identity->start, kept) != 3)
		return false;
	return strlen(ret_identity->home) == SW_SYNC_HOME_MAX && ret_identity->start < INT64_MAX && strcmp(kept, machine) == 0;
}

int sw_identity_open(int state, const char *machine, struct sw_identity *ret_identity, struct sw_err *err)
{
	struct sw_identity identity = {0};
	if (!read_identity(state, machine, &identity)) {
		uint64_t random[2];
		if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
			return sw_err_set(err, SW_EIO, "cannot start the agent: no random numbers: %s", strerror(errno));
		snprintf(identity.home, sizeof identity.home, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
		identity.start = 0;
	}
	identity.start++;
	char text[160];
	int size = snprintf(text, sizeof text, "%s %" PRIu64 " %.63s\n", identity.home, identity.start, machine);
	int r = sw_folder_write(state, FILE_NAME, text, (size_t)size, true, err);
	if (r == 0)
		*ret_identity = identity;
	return r;
}
