/* Nodes for people. The list of all of them may have megabytes: it is written in slices, once for
 * all clients that asked before it was begun.
 *
 *  1. One that asks after it was begun waits for the next: the answer is never
 *     older than the question.
 *  2. One list is written at a time, and one text is kept for all that read it.
 */
#include <string.h>

#include "api/views.h"
#include "base/now.h"
#include "base/number.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/devices.h"
#include "server/nodes.h"
#include "server/state.h"
#include "server/views.h"

#define SLICE_NS (5 * SW_NS_PER_MS)

/* One that waits for the list. */
struct sw_node_reader {
	TAILQ_ENTRY(sw_node_reader) link;
	struct sw_server *server;
	struct sw_conn *conn;
	bool is_next; /* waits for the list after this one */
};

static void write_text(struct sw_json *json, const char *key, const char *text)
{
	sw_json_key(json, key);
	if (text[0] != '\0')
		sw_json_string(json, text);
	else
		sw_json_null(json);
}

static void write_strangers(struct sw_json *json, const struct sw_machine *machine, const char *uuid)
{
	sw_json_key(json, "strangers");
	sw_json_array(json);
	for (size_t s = 0; s < machine->strangers.count; s++) {
		const struct sw_stranger *stranger = &machine->strangers.items[s];
		if (strcmp(stranger->gpu, uuid) != 0)
			continue;
		sw_json_object(json);
		sw_json_key(json, "pid");
		if (stranger->pid != 0)
			sw_json_u64(json, stranger->pid);
		else
			sw_json_null(json);
		write_text(json, "user", stranger->user);
		write_text(json, "program", stranger->program);
		sw_json_key_u64(json, "memory_bytes", stranger->memory_bytes);
		sw_write_time(json, "since", stranger->since_ns);
		sw_json_end_object(json);
	}
	sw_json_end_array(json);
}

/* Whether it takes jobs, and what is on it that is not ours. The agent and the brain number GPUs
 * alike, except while that changes. */
static void write_shut(struct sw_server *server, struct sw_json *json, uint32_t node, const struct sw_node_view *view, uint32_t index,
		       const char *uuid)
{
	struct sw_shut_view shut;
	uint32_t g = index;
	if (g >= view->gpus || strcmp(sw_brain_gpu_uuid(server->brain, node, g), uuid) != 0)
		for (g = 0; g < view->gpus && strcmp(sw_brain_gpu_uuid(server->brain, node, g), uuid) != 0;)
			g++;
	bool is_shut = g < view->gpus && sw_brain_gpu_shut(server->brain, node, g, &shut);
	write_text(json, "shut", is_shut ? sw_shut_name(shut.why) : "");
	write_text(json, "shut_by", is_shut ? shut.by : "");
	if (is_shut)
		sw_write_time(json, "shut_since", shut.since_ns);
}

static void write_device(struct sw_server *server, struct sw_json *json, uint32_t node, const struct sw_node_view *view,
			 const struct sw_machine *machine, size_t index)
{
	const struct sw_device *device = &machine->devices.items[index];
	sw_json_object(json);
	sw_json_key_u64(json, "index", index);
	sw_json_key_string(json, "uuid", device->uuid);
	sw_json_key(json, "name");
	if (device->name != NULL)
		sw_json_string(json, device->name);
	else
		sw_json_null(json);
	sw_json_key_u64(json, "memory_bytes", device->memory_bytes);
	if (device->sampled) {
		sw_json_key_u64(json, "memory_used_bytes", device->memory_used_bytes);
		sw_json_key(json, "busy");
		sw_json_decimal(json, device->busy_milli, 1000);
		sw_json_key(json, "power_w");
		sw_json_decimal(json, device->power_mw, 1000);
		sw_json_key_i64(json, "temperature_c", device->temperature_c);
		sw_write_time(json, "sampled_at", device->sampled_at_ns);
	}
	write_shut(server, json, node, view, (uint32_t)index, device->uuid);
	write_strangers(json, machine, device->uuid);
	sw_json_end_object(json);
}

void sw_write_node(struct sw_server *server, struct sw_json *json, uint32_t node, const struct sw_node_view *view)
{
	const struct sw_machine *machine = sw_machines_find(&server->machines, view->name);
	const struct sw_node_row row = {
		.name = view->name,
		.up = view->up,
		.unreachable = view->silent,
		.closed = view->closed,
		.in_use = view->in_use,
		.reason = view->reason,
		.gpus = view->gpus,
		.gpus_free = view->gpus_free,
		.gpus_shut = view->gpus_shut,
		.cpus = view->cpus,
		.memory_bytes = view->memory_bytes,
		.heard_at_ns = view->heard_at,
		.knows_host = machine != NULL && machine->host_limit_bytes > 0,
		.gpu_host_bytes = machine != NULL ? machine->host_bytes : 0,
		.gpu_host_limit_bytes = machine != NULL ? machine->host_limit_bytes : 0,
	};
	sw_json_object(json);
	sw_encode_row(json, &sw_node_table, &row);
	sw_json_key(json, "devices");
	sw_json_array(json);
	for (size_t d = 0; machine != NULL && d < machine->devices.count; d++)
		write_device(server, json, node, view, machine, d);
	sw_json_end_array(json);
	sw_json_end_object(json);
}

/* ---- the list */

static void free_reader(struct sw_node_reader *reader)
{
	struct sw_node_lists *lists = &reader->server->node_lists;
	TAILQ_REMOVE(reader->is_next ? &lists->next : &lists->readers, reader, link);
	free(reader);
}

static void reader_left(void *attached)
{
	free_reader(attached);
}

/* Those that wait for the next list wait for this one. */
static void begin_list(struct sw_node_lists *lists)
{
	struct sw_node_reader *reader;
	TAILQ_CONCAT(&lists->readers, &lists->next, link);
	TAILQ_FOREACH(reader, &lists->readers, link)
	reader->is_next = false;
	lists->at = 0;
	lists->json = (struct sw_json){0};
	sw_json_object(&lists->json);
	sw_json_key(&lists->json, "nodes");
	sw_json_array(&lists->json);
}

static void end_list(struct sw_server *server)
{
	struct sw_node_lists *lists = &server->node_lists;
	struct sw_node_reader *reader;
	sw_json_end_array(&lists->json);
	sw_json_end_object(&lists->json);
	sw_json_bytes(&lists->json, "\n", 1);
	struct sw_shared *shared = sw_shared_take(&lists->json);
	while ((reader = TAILQ_FIRST(&lists->readers)) != NULL) {
		struct sw_conn *conn = reader->conn;
		sw_conn_detach(conn);
		free_reader(reader);
		sw_conn_reply_shared(conn, 200, shared);
	}
	sw_shared_drop(shared);
}

/* As many nodes as fit into the time. */
static void write_some(struct sw_server *server)
{
	struct sw_node_lists *lists = &server->node_lists;
	struct sw_node_view view;
	int64_t until_ns = sw_now_boot_ns() + SLICE_NS;
	lists->is_busy = true;
	while (sw_brain_node(server->brain, lists->at, &view)) {
		if (!view.removed)
			sw_write_node(server, &lists->json, lists->at, &view);
		lists->at++;
		if (sw_now_boot_ns() > until_ns) {
			lists->is_busy = false;
			evtimer_add(lists->step, &(struct timeval){0});
			return;
		}
	}
	end_list(server);
	lists->is_busy = false;
	/* By a timer: others are heard before. */
	if (!TAILQ_EMPTY(&lists->next))
		evtimer_add(lists->step, &(struct timeval){0});
}

static void on_step(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	struct sw_node_lists *lists = &server->node_lists;
	if (TAILQ_EMPTY(&lists->readers) && TAILQ_EMPTY(&lists->next)) {
		sw_json_release(&lists->json);
		return;
	}
	if (TAILQ_EMPTY(&lists->readers)) {
		sw_json_release(&lists->json);
		begin_list(lists);
	}
	write_some(server);
}

void sw_handle_nodes(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_node_lists *lists = &server->node_lists;
	struct sw_node_reader *reader = calloc(1, sizeof *reader);
	if (reader == NULL) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
		return;
	}
	/* A client that hears the end of one list may ask for the next in the same moment. */
	bool rests = !lists->is_busy && !evtimer_pending(lists->step, NULL);
	*reader = (struct sw_node_reader){.server = server, .conn = conn, .is_next = true};
	TAILQ_INSERT_TAIL(&lists->next, reader, link);
	sw_conn_attach(conn, reader, reader_left, true);
	/* A short list is there at once. */
	if (rests) {
		begin_list(lists);
		write_some(server);
	}
}

int sw_nodes_start(struct sw_server *server, struct sw_err *err)
{
	struct sw_node_lists *lists = &server->node_lists;
	TAILQ_INIT(&lists->readers);
	TAILQ_INIT(&lists->next);
	lists->step = evtimer_new(server->base, on_step, server);
	return lists->step != NULL ? 0 : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_nodes_stop(struct sw_server *server)
{
	if (server->node_lists.step != NULL)
		event_free(server->node_lists.step);
	sw_json_release(&server->node_lists.json);
}
