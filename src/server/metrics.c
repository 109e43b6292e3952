/* Figures for Prometheus: ours as sharewell_*, those of GPUs under the names that DCGM's exporter
 * gave them, so that dashboards made for it work. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "api/fields.h"
#include "api/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "server/answers.h"
#include "server/connection.h"
#include "server/forecasts.h"
#include "server/metrics.h"
#include "server/state.h"
#include "server/uses.h"
#include "server/views.h"

__attribute__((format(printf, 2, 3))) static void print(struct sw_json *text, const char *fmt, ...)
{
	char line[512];
	va_list args;
	va_start(args, fmt);
	int size = vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	if (size > 0 && (size_t)size < sizeof line)
		sw_json_bytes(text, line, (size_t)size);
}

static void head(struct sw_json *text, const char *name, const char *type, const char *help)
{
	print(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void figure(struct sw_json *text, const char *name, const char *type, const char *help, uint64_t value)
{
	head(text, name, type, help);
	print(text, "%s %" PRIu64 "\n", name, value);
}

/* A label's value: backslash and quote are escaped. Agents name nodes and GPUs, so what could harm
 * a terminal or a page is left out. That is control characters (those of two bytes too), markup,
 * and bytes that are not UTF-8. */
static const char *label(const char *value, char buffer[300])
{
	size_t used = 0, size = strlen(value);
	while (size > 0 && used < 290) {
		size_t length = sw_utf8_length(value, size), step = length > 0 ? length : 1;
		if (length > 0 && !sw_has_control(value, length) && strchr("<>&", value[0]) == NULL) {
			if (value[0] == '"' || value[0] == '\\')
				buffer[used++] = '\\';
			memcpy(buffer + used, value, length);
			used += length;
		}
		value += step;
		size -= step;
	}
	buffer[used] = '\0';
	return buffer;
}

static void write_cluster(struct sw_server *server, struct sw_json *text)
{
	uint64_t counts[SW_STATES], up = 0, down = 0, unreachable = 0, gpus = 0, gpus_free = 0;
	struct sw_node_view view;
	sw_count_jobs(server, counts);
	head(text, "sharewell_jobs", "gauge", "Jobs by state.");
	for (unsigned s = 0; s < SW_STATES; s++)
		print(text, "sharewell_jobs{state=\"%s\"} %" PRIu64 "\n", sw_state_names[s].full, counts[s]);
	for (uint32_t n = 0; sw_brain_node(server->brain, n, &view); n++) {
		up += view.up && !view.silent;
		unreachable += view.silent;
		down += !view.up && !view.removed;
		gpus += view.up ? view.gpus : 0;
		gpus_free += view.up ? view.gpus_free : 0;
	}
	head(text, "sharewell_nodes", "gauge", "Nodes by state.");
	print(text,
	      "sharewell_nodes{state=\"up\"} %" PRIu64 "\nsharewell_nodes{state=\"unreachable\"} %" PRIu64
	      "\nsharewell_nodes{state=\"down\"} %" PRIu64 "\n",
	      up, unreachable, down);
	figure(text, "sharewell_gpus", "gauge", "GPUs of the nodes that are up.", gpus);
	figure(text, "sharewell_gpus_free", "gauge", "GPUs of those that no job holds.", gpus_free);
}

static void write_seconds(struct sw_json *text, const char *name, const char *type, const char *help, int64_t ns)
{
	head(text, name, type, help);
	print(text, "%s %" PRId64 ".%09" PRId64 "\n", name, ns / SW_NS_PER_S, ns % SW_NS_PER_S);
}

/* Of the rounds that are over. */
static void write_loop(const struct sw_loop *loop, struct sw_json *text)
{
	uint64_t count = 0;
	head(text, "sharewell_loop_seconds", "histogram", "How long the loop was held at one go.");
	for (size_t b = 0; b < SW_LOOP_BOUNDS; b++) {
		count += loop->rounds[b];
		print(text, "sharewell_loop_seconds_bucket{le=\"%" PRId64 ".%03" PRId64 "\"} %" PRIu64 "\n",
		      sw_loop_bounds_ns[b] / SW_NS_PER_S, sw_loop_bounds_ns[b] / SW_NS_PER_MS % 1000, count);
	}
	count += loop->rounds[SW_LOOP_BOUNDS];
	print(text, "sharewell_loop_seconds_bucket{le=\"+Inf\"} %" PRIu64 "\n", count);
	print(text, "sharewell_loop_seconds_sum %" PRId64 ".%09" PRId64 "\n", loop->total_ns / SW_NS_PER_S, loop->total_ns % SW_NS_PER_S);
	print(text, "sharewell_loop_seconds_count %" PRIu64 "\n", count);
	write_seconds(text, "sharewell_loop_seconds_max", "gauge", "The longest that the loop was held at one go.", loop->longest_ns);
	write_seconds(text, "sharewell_loop_cpu_seconds_max", "gauge",
		      "The same in time of the processor: without what others on the machine and the disk took.", loop->longest_cpu_ns);
}

/* What callers take, by their class, and what was refused for want of room: few lines, however
 * many callers there are. */
static void write_callers(struct sw_server *server, struct sw_json *text)
{
	static const char *const classes[SW_CALLER_CLASSES] = {"stranger", "user", "owner", "agent"};
	const struct sw_callers *callers = &server->callers;
	uint32_t streams = 0;
	head(text, "sharewell_http_callers_connections", "gauge", "Open connections by the kind of caller.");
	for (int c = 0; c < SW_CALLER_CLASSES; c++)
		print(text, "sharewell_http_callers_connections{caller=\"%s\"} %" PRIu32 "\n", classes[c], callers->conn_count[c]);
	head(text, "sharewell_http_callers_connections_max", "gauge", "Places for connections of each kind of caller.");
	for (int c = 0; c < SW_CALLER_CLASSES; c++)
		print(text, "sharewell_http_callers_connections_max{caller=\"%s\"} %" PRIu32 "\n", classes[c], callers->conn_most[c]);
	for (int c = 0; c < SW_CALLER_CLASSES; c++)
		streams += callers->stream_count[c];
	figure(text, "sharewell_http_streams", "gauge", "Open streams of events and logs.", streams);
	head(text, "sharewell_user_bound", "gauge", "What one user may take at once; 'controller --bounds' sets it.");
	for (int b = 0; b < SW_USER_BOUNDS; b++)
		print(text, "sharewell_user_bound{bound=\"%s\"} %" PRIu64 "\n", sw_user_bound_rows[b].name, callers->bounds[b]);
	head(text, "sharewell_bound_refused_total", "counter",
	     "Requests and connections refused for want of room: of the user's own bound, or of all.");
	for (int b = 0; b < SW_USER_BOUNDS; b++)
		for (int all = 0; all < 2; all++)
			print(text, "sharewell_bound_refused_total{bound=\"%s\",of=\"%s\"} %" PRIu64 "\n", sw_user_bound_rows[b].name,
			      all ? "cluster" : "user", callers->refused[b][all]);
	figure(text, "sharewell_accepts_failed_total", "counter", "Connections that could not be taken for want of files or memory.",
	       server->figures.accepts_failed);
}

static void write_forecasts(const struct sw_forecast_figures *figures, struct sw_json *text)
{
	figure(text, "sharewell_forecasts_total", "counter", "Forecasts begun since the start.", figures->runs);
	figure(text, "sharewell_forecasts_failed_total", "counter", "Those that came to nothing: no process, or its limits.",
	       figures->failed);
	write_seconds(text, "sharewell_forecast_seconds_max", "gauge", "The longest that one took, in a process of its own.",
		      figures->longest_ns);
	write_seconds(text, "sharewell_forecast_held_seconds_max", "gauge", "The longest that one held up the loop at one go.",
		      figures->held_ns);
}

static void write_own(struct sw_server *server, struct sw_json *text)
{
	const struct sw_figures *figures = &server->figures;
	head(text, "sharewell_http_requests_total", "counter", "Requests by operation.");
	for (size_t i = 0; i < SW_ROUTES; i++)
		print(text, "sharewell_http_requests_total{operation=\"%s\"} %" PRIu64 "\n", sw_routes[i].name, figures->requests[i]);
	figure(text, "sharewell_http_refused_total", "counter", "Requests that were malformed, unauthorised or too large.",
	       figures->refused);
	figure(text, "sharewell_tls_handshakes_failed_total", "counter", "Connections that did not get as far as a request.",
	       figures->handshakes_failed);
	if (server->tls != NULL)
		figure(text, "sharewell_tls_certificate_ends_seconds", "gauge", "When the certificate ends, in seconds since 1970.",
		       (uint64_t)sw_tls_ends_at_s(server->tls));
	figure(text, "sharewell_http_connections", "gauge", "Open connections.", server->conn_count);
	write_callers(server, text);
	figure(text, "sharewell_journal_seq", "counter", "Number of the last record.", server->batch.applied_seq);
	figure(text, "sharewell_journal_records_total", "counter", "Records stored since the start.", figures->records);
	figure(text, "sharewell_journal_commits_total", "counter", "Commits since the start, each with one fsync.", figures->commits);
	figure(text, "sharewell_journal_commits_failed_total", "counter", "Commits that failed, for lack of space or otherwise.",
	       figures->commits_failed);
	figure(text, "sharewell_journal_failing", "gauge", "1 while the journal cannot be written.", server->batch.failing);
	write_seconds(text, "sharewell_journal_commit_seconds_total", "counter", "Time spent in commits.", figures->commit_ns);
	write_seconds(text, "sharewell_journal_commit_seconds_max", "gauge", "The longest commit.", figures->commit_longest_ns);
	figure(text, "sharewell_journal_aside", "gauge", "Records that could not be applied or read, and are set aside.",
	       sw_journal_aside_count(server->journal));
	figure(text, "sharewell_journal_mark_failing", "gauge", "1 while the mark beside the journal cannot be written.",
	       sw_journal_mark_error(server->journal) != 0);
	figure(text, "sharewell_state_rebuilds_total", "counter",
	       "How often a record that failed half of the way made the state be made anew.", figures->rebuilds);
	figure(text, "sharewell_snapshots_damaged_total", "counter", "Snapshots that could not be used at the start.",
	       figures->snapshots_damaged);
	figure(text, "sharewell_snapshots_total", "counter", "Snapshots stored since the start.", figures->snapshots);
	figure(text, "sharewell_snapshot_seq", "gauge", "Number of the last record that the last snapshot covers.", server->snapshots.seq);
	figure(text, "sharewell_snapshot_bytes", "gauge", "Size of the last snapshot.", server->snapshots.size);
	write_seconds(text, "sharewell_snapshot_seconds_max", "gauge", "The longest that a snapshot held up the loop at one go.",
		      figures->snapshot_longest_ns);
	write_forecasts(sw_forecasts_figures(server), text);
	write_seconds(text, "sharewell_turn_seconds_max", "gauge", "The longest that the loop stored and applied at one go.",
		      figures->batch_longest_ns);
	write_loop(&server->loop, text);
}

/* One figure of every GPU that was sampled. */
static void write_devices(struct sw_server *server, struct sw_json *text, const char *name, const char *help,
			  int64_t (*value)(const struct sw_device *device), bool in_thousandths)
{
	bool started = false;
	char host[300], model[300], uuid[300];
	for (size_t m = 0; m < server->machines.count; m++) {
		const struct sw_machine *machine = &server->machines.items[m];
		for (size_t d = 0; d < machine->devices.count; d++) {
			const struct sw_device *device = &machine->devices.items[d];
			if (!device->sampled)
				continue;
			if (!started)
				head(text, name, "gauge", help);
			started = true;
			int64_t number = value(device);
			print(text, "%s{gpu=\"%zu\",UUID=\"%s\",", name, d, label(device->uuid, uuid));
			print(text, "modelName=\"%s\",", label(device->name != NULL ? device->name : "", model));
			print(text, "Hostname=\"%s\"} ", label(machine->name, host));
			if (in_thousandths)
				print(text, "%" PRId64 ".%03" PRId64 "\n", number / 1000, number % 1000);
			else
				print(text, "%" PRId64 "\n", number);
		}
	}
}

/* GPUs that take no jobs, by why; and what is on them from outside the queue. */
static void write_shut(struct sw_server *server, struct sw_json *text)
{
	uint64_t counts[SW_SHUT_KINDS] = {0};
	struct sw_node_view node;
	struct sw_shut_view shut;
	char host[300], uuid[300];
	for (uint32_t n = 0; sw_brain_node(server->brain, n, &node); n++)
		for (uint32_t g = 0; node.up && g < node.gpus; g++)
			if (sw_brain_gpu_shut(server->brain, n, g, &shut))
				counts[shut.why]++;
	head(text, "sharewell_gpus_shut", "gauge", "GPUs of the nodes that are up that take no jobs, by why.");
	for (unsigned why = 0; why < SW_SHUT_KINDS; why++)
		print(text, "sharewell_gpus_shut{why=\"%s\"} %" PRIu64 "\n", sw_shut_name((enum sw_shut)why), counts[why]);
	head(text, "sharewell_gpu_stranger_bytes", "gauge", "Memory of a GPU that processes outside the queue hold.");
	for (size_t m = 0; m < server->machines.count; m++) {
		const struct sw_machine *machine = &server->machines.items[m];
		for (size_t d = 0; d < machine->devices.count; d++) {
			uint64_t bytes = 0, count = 0;
			for (size_t s = 0; s < machine->strangers.count; s++)
				if (strcmp(machine->strangers.items[s].gpu, machine->devices.items[d].uuid) == 0) {
					bytes += machine->strangers.items[s].memory_bytes;
					count++;
				}
			if (count > 0)
				print(text, "sharewell_gpu_stranger_bytes{gpu=\"%zu\",UUID=\"%s\",Hostname=\"%s\"} %" PRIu64 "\n", d,
				      label(machine->devices.items[d].uuid, uuid), label(machine->name, host), bytes);
		}
	}
}

/* How long agents take to look at their GPUs and processes. */
static void write_looks(struct sw_server *server, struct sw_json *text)
{
	char host[300];
	head(text, "sharewell_node_look_seconds", "gauge", "The last look of an agent at its GPUs and processes took.");
	for (size_t m = 0; m < server->machines.count; m++) {
		const struct sw_machine *machine = &server->machines.items[m];
		if (machine->look_ns > 0)
			print(text, "sharewell_node_look_seconds{Hostname=\"%s\"} %" PRId64 ".%09" PRId64 "\n", label(machine->name, host),
			      machine->look_ns / SW_NS_PER_S, machine->look_ns % SW_NS_PER_S);
	}
}

/* The host memory of every node whose agent told of it. */
static void write_host_memory(struct sw_server *server, struct sw_json *text, const char *name, const char *help, bool limit)
{
	bool started = false;
	char host[300];
	for (size_t m = 0; m < server->machines.count; m++) {
		const struct sw_machine *machine = &server->machines.items[m];
		if (machine->host_limit_bytes == 0)
			continue;
		if (!started)
			head(text, name, "gauge", help);
		started = true;
		print(text, "%s{Hostname=\"%s\"} %" PRIu64 "\n", name, label(machine->name, host),
		      limit ? machine->host_limit_bytes : machine->host_bytes);
	}
}

/* Which figure of a use. */
enum use_figure { USE_MEMORY, USE_HOST, USE_OUTSIDE, USE_TRESPASS, USE_LIMIT, USE_ITERATION };

static uint64_t figure_of(const struct sw_use *use, enum use_figure which)
{
	switch (which) {
	case USE_MEMORY:
		return use->memory_bytes;
	case USE_HOST:
		return use->host_bytes;
	case USE_OUTSIDE:
		return use->outside;
	case USE_TRESPASS:
		return use->trespass;
	case USE_LIMIT:
		return use->limit_bytes;
	default:
		return use->iteration_ns;
	}
}

static size_t index_of(const struct sw_machine *machine, const char *uuid)
{
	size_t d = 0;
	while (d < machine->devices.count && strcmp(machine->devices.items[d].uuid, uuid) != 0)
		d++;
	return d;
}

/* One figure of every job on each of its GPUs. Numbers of jobs only: a reader of this may not know
 * more of other people's. */
static void write_uses(struct sw_server *server, struct sw_json *text, const char *name, const char *help, enum use_figure which)
{
	bool started = false;
	char host[300], uuid[300];
	for (size_t m = 0; m < server->machines.count; m++) {
		const struct sw_machine *machine = &server->machines.items[m];
		for (size_t u = 0; u < machine->uses.count; u++) {
			const struct sw_use *use = &machine->uses.items[u];
			uint64_t value = figure_of(use, which);
			/* A limit or an iteration of nothing is one that is not known. */
			if ((value == 0 && which >= USE_LIMIT) || !sw_use_is_current(server->brain, machine, use))
				continue;
			if (!started)
				head(text, name, "gauge", help);
			started = true;
			print(text, "%s{job=\"%" PRIu64 "\",gpu=\"%zu\",UUID=\"%s\",", name, use->run.job, index_of(machine, use->gpu),
			      label(use->gpu, uuid));
			print(text, "Hostname=\"%s\"} ", label(machine->name, host));
			if (which == USE_ITERATION)
				print(text, "%" PRIu64 ".%09" PRIu64 "\n", value / SW_NS_PER_S, value % SW_NS_PER_S);
			else
				print(text, "%" PRIu64 "\n", value);
		}
	}
}

/* How well the slowdowns of jobs that share GPUs are known, and how large they are. */
static void write_slowdowns(struct sw_server *server, struct sw_json *text)
{
	struct sw_learn_error error;
	bool started = false;
	sw_learn_error(sw_brain_learned(server->brain), &error);
	figure(text, "sharewell_slowdown_sets", "gauge", "Jobs beside others whose slowdown was measured, by their models.", error.count);
	if (error.count > 0) {
		const struct {
			const char *by, *quantile;
			uint32_t milli;
		} lines[] = {{"learned", "0.5", error.median_milli},
			     {"learned", "1", error.worst_milli},
			     {"profiles", "0.5", error.prior_median_milli},
			     {"profiles", "1", error.prior_worst_milli}};
		head(text, "sharewell_slowdown_error_ratio", "gauge", "How wrong predicted slowdowns are, each from all other sets.");
		for (size_t i = 0; i < 4; i++)
			print(text, "sharewell_slowdown_error_ratio{by=\"%s\",quantile=\"%s\"} %" PRIu32 ".%03" PRIu32 "\n", lines[i].by,
			      lines[i].quantile, lines[i].milli / 1000, lines[i].milli % 1000);
	}
	struct sw_speed_view speed;
	for (uint64_t id = sw_brain_next_job(server->brain, 1); id != 0; id = sw_brain_next_job(server->brain, id + 1)) {
		if (!sw_brain_speed(server->brain, id, &speed) || speed.slow_milli == 0)
			continue;
		if (!started)
			head(text, "sharewell_job_slowdown_ratio", "gauge", "How many times as long as alone iterations of a job take.");
		started = true;
		print(text, "sharewell_job_slowdown_ratio{job=\"%" PRIu64 "\"} %" PRIu32 ".%03" PRIu32 "\n", id, speed.slow_milli / 1000,
		      speed.slow_milli % 1000);
	}
}

static int64_t busy_percent(const struct sw_device *device)
{
	return device->busy_milli / 10;
}

static int64_t used_mib(const struct sw_device *device)
{
	return (int64_t)(device->memory_used_bytes >> 20);
}

static int64_t free_mib(const struct sw_device *device)
{
	return device->memory_bytes > device->memory_used_bytes ? (int64_t)((device->memory_bytes - device->memory_used_bytes) >> 20) : 0;
}

static int64_t power_mw(const struct sw_device *device)
{
	return device->power_mw;
}

static int64_t temperature(const struct sw_device *device)
{
	return device->temperature_c;
}

void sw_handle_metrics(struct sw_server *server, struct sw_conn *conn)
{
	struct sw_json text = {0};
	write_cluster(server, &text);
	write_own(server, &text);
	write_devices(server, &text, "DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", busy_percent, false);
	write_devices(server, &text, "DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", used_mib, false);
	write_devices(server, &text, "DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", free_mib, false);
	write_devices(server, &text, "DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", power_mw, true);
	write_devices(server, &text, "DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", temperature, false);
	write_uses(server, &text, "sharewell_job_gpu_memory_bytes", "Memory that a job holds on a GPU.", USE_MEMORY);
	write_uses(server, &text, "sharewell_job_gpu_host_bytes", "Contents of its memory there that lie in host memory.", USE_HOST);
	write_uses(server, &text, "sharewell_job_gpu_limit_bytes", "Memory that a job may hold on a GPU.", USE_LIMIT);
	write_uses(server, &text, "sharewell_job_gpu_outside_processes", "Processes of a job that use a GPU outside the runtime.",
		   USE_OUTSIDE);
	write_uses(server, &text, "sharewell_job_gpu_trespass", "1 where a job uses a GPU that it was not given.", USE_TRESPASS);
	write_shut(server, &text);
	write_looks(server, &text);
	write_uses(server, &text, "sharewell_job_iteration_seconds", "One step of a job's repeating work.", USE_ITERATION);
	write_host_memory(server, &text, "sharewell_node_gpu_host_bytes",
			  "Host memory that contents of GPUs take, also what is made ahead for them.", false);
	write_host_memory(server, &text, "sharewell_node_gpu_host_limit_bytes", "Host memory that they may take.", true);
	write_slowdowns(server, &text);
	if (text.failed) {
		struct sw_err err = {0};
		sw_err_set(&err, SW_ENOMEM, "out of memory");
		sw_conn_reply_error(conn, 503, &err);
	} else {
		sw_conn_reply(conn, 200, sw_routes[SW_ROUTE_METRICS].media, NULL, text.text, text.size);
	}
	sw_json_release(&text);
}
