/* The management library, which knows what each process has on a GPU. Also its two calls that a
 * program asks for memory, which agree with the job's limit. */
#ifndef SW_RUNTIME_NVML_H
#define SW_RUNTIME_NVML_H

#include <stdbool.h>
#include <stdint.h>

#define SW_NVML_UUID_SIZE 96
void sw_nvml_write_uuid(const uint8_t uuid[16], char text[SW_NVML_UUID_SIZE]);

/* What the GPU holds in all, and of it this process, which may not be known;
 * false: it cannot be asked. */
struct sw_nvml_use {
	uint64_t all, own;
	bool own_known;
};
bool sw_nvml_use(const uint8_t uuid[16], struct sw_nvml_use *ret_use);

/* What dlsym() gives instead of one of the library's functions; NULL: the real one. */
void *sw_nvml_pick(void *handle, const char *name);

#endif
