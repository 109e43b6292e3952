#include "agent/own_gpus.h"

#include <string.h>

#include "agent/folder.h"
#include "base/cleanup.h"
#include "base/text.h"

static uint32_t find_gpu(const struct sw_gpu_source *gpus, const char *uuid, size_t size)
{
	uint32_t index = 0;
	for (; index < sw_gpu_source_count(gpus); index++)
		if (strlen(sw_gpu_source_info(gpus, index)->uuid) == size && memcmp(sw_gpu_source_info(gpus, index)->uuid, uuid, size) == 0)
			break;
	return index;
}

void sw_own_gpus_read(const struct sw_gpu_source *gpus, int folder, struct sw_own_gpus *ret_own)
{
	SW_CLEANUP(sw_run_order_freep) struct sw_run_order *order = NULL;
	*ret_own = (struct sw_own_gpus){0};
	if (sw_folder_order(folder, &order, NULL) < 0)
		return;
	const struct sw_texts *list = &order->want.gpus;
	for (size_t i = 0; i < list->count && i < SW_GPUS_MAX; i++)
		ret_own->places[ret_own->count++] = find_gpu(gpus, list->items[i], strlen(list->items[i]));
}

void sw_own_gpus_follow(const struct sw_gpu_source *gpus, int folder, struct sw_own_gpus *own)
{
	SW_CLEANUP(sw_run_account_freep) struct sw_run_account *account = NULL;
	if (own->count == 0 || sw_folder_account(folder, "status.json", &account, NULL) < 0)
		return;
	own->moving = account->run.moving != NULL;
	if (account->run.gpus == NULL)
		return;
	const char *list = account->run.gpus, *uuid;
	size_t size;
	for (uint32_t i = 0; i < own->count && sw_text_next(&list, &uuid, &size); i++)
		own->places[i] = find_gpu(gpus, uuid, size);
}

bool sw_own_gpus_has(const struct sw_own_gpus *own, uint32_t gpu)
{
	for (uint32_t i = 0; i < own->count; i++)
		if (own->places[i] == gpu)
			return true;
	return false;
}
