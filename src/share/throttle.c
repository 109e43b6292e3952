#include "share/throttle.h"

#include <string.h>

/* In this order for ever: pages hold the numbers. */
static const struct sw_throttle *const rules[] = {&sw_throttle_yield, &sw_throttle_antman, &sw_throttle_tgs};

size_t sw_throttle_count(void)
{
	return sizeof rules / sizeof rules[0];
}

const struct sw_throttle *sw_throttle_at(size_t number)
{
	return number < sw_throttle_count() ? rules[number] : rules[0];
}

const struct sw_throttle *sw_throttle_find(const char *name)
{
	for (size_t i = 0; i < sw_throttle_count(); i++)
		if (strcmp(rules[i]->name, name) == 0)
			return rules[i];
	return NULL;
}
