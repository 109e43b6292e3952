/* What jobs asked for, as text. The members of an array asked for the same but for their index:
 * they share one text, which says nothing of it. */
#include <stdlib.h>
#include <string.h>

#include "brain/asked.h"
#include "brain/bulk.h"
#include "brain/state.h"

struct sw_asked *sw_asked_new(const struct sw_job_request *request)
{
	struct sw_job_request whole = *request;
	whole.is_member = false;
	char *text = sw_job_request_encode(&whole);
	struct sw_asked *asked = text != NULL ? sw_asked_copy(text) : NULL;
	free(text);
	return asked;
}

struct sw_asked *sw_asked_copy(const char *text)
{
	size_t size = strlen(text) + 1;
	struct sw_asked *asked = malloc(sizeof *asked + size);
	if (asked == NULL)
		return NULL;
	*asked = (struct sw_asked){.users = 1};
	memcpy(asked->text, text, size);
	return asked;
}

struct sw_asked *sw_asked_share(struct sw_asked *asked)
{
	asked->users++;
	return asked;
}

void sw_asked_drop(struct sw_asked *asked)
{
	if (asked == NULL || --asked->users > 0)
		return;
	for (int b = 0; b < SW_BULKS && asked->uses != NULL; b++)
		if (asked->bulk[b].size > 0)
			sw_bulk_drop(asked->uses, asked->bulk[b].digest);
	free(asked->warning);
	free(asked->fates);
	free(asked);
}

int sw_asked_add_bulk(struct sw_brain *brain, struct sw_asked *asked, int which, const struct sw_bulk *bulk)
{
	if (sw_bulk_use(&brain->uses, bulk->digest) < 0)
		return SW_ENOMEM;
	asked->uses = &brain->uses;
	asked->bulk[which] = *bulk;
	return 0;
}

const struct sw_fate *sw_asked_fate(const struct sw_asked *asked, uint64_t job)
{
	for (uint32_t f = 0; f < asked->fate_count; f++)
		if (asked->fates[f].job == job)
			return &asked->fates[f];
	return NULL;
}

int sw_asked_decode(const struct sw_live *live, struct sw_job_request **ret_request, struct sw_err *err)
{
	int r = sw_job_request_decode(sw_job_stored, live->asked->text, strlen(live->asked->text), ret_request, err);
	if (r == 0 && live->is_member) {
		(*ret_request)->is_member = true;
		(*ret_request)->array_index = live->array_index;
	}
	return r;
}

int sw_asked_recall(const struct sw_brain *brain, const struct sw_live *live, struct sw_job_request **ret_request, struct sw_err *err)
{
	if (brain->model == NULL || brain->model_of != live->asked)
		return sw_asked_decode(live, ret_request, err);
	struct sw_job_request *request = sw_job_request_copy(brain->model);
	if (request == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	request->is_member = live->is_member;
	request->array_index = live->array_index;
	*ret_request = request;
	return 0;
}

void sw_job_view_request(const struct sw_job_view *view, struct sw_json *json)
{
	static const char array[] = "{\"array\":\"";
	size_t size = strlen(view->request), head = sizeof array - 1;
	if (!view->is_member || size < head || memcmp(view->request, array, head) != 0) {
		sw_json_raw(json, view->request, size);
		return;
	}
	/* The index has its place behind the array. */
	head = (size_t)(strchr(view->request + head, '"') + 1 - view->request);
	sw_json_raw(json, view->request, head);
	sw_json_key_u64(json, "array_index", view->array_index);
	sw_json_bytes(json, view->request + head, size - head);
}
