#include "share/host.h"

#include <stdio.h>
#include <unistd.h>

/* 0: the kernel does not say. */
static uint64_t available_bytes(void)
{
	char line[128];
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	while (file != NULL && fgets(line, sizeof line, file) != NULL && sscanf(line, "MemAvailable: %llu kB", &kib) != 1)
		;
	if (file != NULL)
		fclose(file);
	return (uint64_t)kib << 10;
}

uint64_t sw_share_host_budget(void)
{
	uint64_t bytes = available_bytes();
	long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	if (bytes == 0 && pages > 0 && size > 0)
		bytes = (uint64_t)pages * (uint64_t)size;
	return bytes / 2;
}
