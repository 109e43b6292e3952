/* Finds numbers by name: of nodes, of tenants. A table of chains that grows with its members;
 * names are never taken out.
 *
 * It keeps pointers to the names: they are their owner's and must outlive it. It cannot be walked
 * over, so no order depends on it. */
#ifndef SW_BASE_NAMES_H
#define SW_BASE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define SW_NAMES_NONE UINT32_MAX

struct sw_name {
	const char *text;
	uint64_t hash;
	uint32_t number;
};

struct sw_names {
	struct sw_name *slots; /* a power of two of them; text NULL: empty */
	size_t slot_count;
	size_t count;
};

/* The name must not be in yet. 0 or SW_ENOMEM, which leaves the table as it was. */
int sw_names_add(struct sw_names *names, const char *text, uint32_t number);
/* Its number, or SW_NAMES_NONE. */
uint32_t sw_names_find(const struct sw_names *names, const char *text);
void sw_names_release(struct sw_names *names);

#endif
