#include "server/triers.h"

#include <stddef.h>

struct sw_trier *sw_trier_find(struct sw_triers *triers, uint32_t uid)
{
	for (uint32_t i = 0; i < triers->count; i++)
		if (triers->items[i].uid == uid)
			return &triers->items[i];
	return NULL;
}

struct sw_trier *sw_trier_make(struct sw_triers *triers, uint32_t uid)
{
	struct sw_trier *trier = sw_trier_find(triers, uid);
	if (trier != NULL)
		return trier;
	trier = &triers->items[0];
	for (uint32_t i = 1; i < triers->count; i++)
		if (triers->items[i].begun_ns < trier->begun_ns)
			trier = &triers->items[i];
	if (triers->count < SW_TRIERS_MAX)
		trier = &triers->items[triers->count++];
	*trier = (struct sw_trier){.uid = uid};
	return trier;
}
