#include "agent/gone.h"

#include <fcntl.h>
#include <stdio.h>

#include "agent/folder.h"

enum { REST_S = 1, STEP = 16, STEP_US = 5000 };

static char *name_of(struct sw_run_id id, char name[SW_FOLDER_NAME_MAX + 8])
{
	char run[SW_FOLDER_NAME_MAX];
	snprintf(name, SW_FOLDER_NAME_MAX + 8, SW_GONE_PREFIX "%s", sw_folder_name(id, run));
	return name;
}

/* A few at a time: the agent's loop has others to listen to. */
static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_gone *gone = context;
	char name[SW_FOLDER_NAME_MAX + 8];
	for (int i = 0; i < STEP && gone->list.count > 0; i++)
		(void)sw_folder_delete(gone->runs, name_of(gone->list.items[--gone->list.count], name), NULL);
	if (gone->list.count > 0)
		evtimer_add(gone->timer, &(struct timeval){.tv_usec = STEP_US});
}

int sw_gone_open(struct sw_gone *gone, struct event_base *base, int runs)
{
	*gone = (struct sw_gone){.runs = runs, .timer = evtimer_new(base, on_timer, gone)};
	return gone->timer != NULL ? 0 : SW_ENOMEM;
}

void sw_gone_close(struct sw_gone *gone)
{
	if (gone->timer != NULL)
		event_free(gone->timer);
	gone->timer = NULL;
	sw_vec_free(&gone->list);
}

int sw_gone_add(struct sw_gone *gone, struct sw_run_id id, struct sw_err *err)
{
	char run[SW_FOLDER_NAME_MAX], name[SW_FOLDER_NAME_MAX + 8];
	struct sw_run_id *slot = gone->list.count < SW_GONE_MAX ? sw_vec_push(&gone->list) : NULL;
	if (slot != NULL && renameat(gone->runs, sw_folder_name(id, run), gone->runs, name_of(id, name)) == 0) {
		*slot = id;
		evtimer_add(gone->timer, &(struct timeval){.tv_sec = REST_S});
		return 0;
	}
	if (slot != NULL)
		gone->list.count--;
	return sw_folder_delete(gone->runs, sw_folder_name(id, run), err);
}
