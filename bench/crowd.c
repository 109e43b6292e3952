/* Many agents and many jobs before one controller: AGENTS agents with 8 GPUs each, all of
 * them busy, JOBS jobs that wait, a client that pages through them, and one that cancels
 * many of them in the end.
 *
 *	bench_crowd SOCKET AGENTS JOBS SECONDS
 *
 * Each agent speaks the real protocol over a connection of its own: it says what it has, takes what
 * it is given, and reports every second, with a sample of every GPU and every run, whether or not
 * the controller still keeps its last question. Of every agent a job ends every GPUS_OF_AN_AGENT *
 * ENDS_EVERY_S seconds; another takes its place. Prints one JSON object.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "api/sync.h"
#include "base/number.h"
#include "client.h"

enum { GPUS = 8, RUNS_MAX = 32, ARRAY = 10000, PAGE = 100, CANCELLED = 10000 };
#define REPORT_NS SW_NS_PER_S
#define ENDS_EVERY_NS (60 * SW_NS_PER_S)
#define HASTY_NS (100 * SW_NS_PER_MS)

struct agent {
	int fd; /* -1: none */
	bool asks, knows_inventory, is_due;
	char node[16], instance[16];
	char uuids[GPUS][48];
	uint64_t number, have;
	int64_t report_at_ns, asked_at_ns, end_at_ns;
	struct sw_sync_run runs[RUNS_MAX];
	const char *gpus[RUNS_MAX];
	size_t run_count;
	char *text; /* of the answer, as far as it has come */
	size_t used, capacity;
};

struct crowd {
	const char *socket;
	int epoll;
	struct agent *agents;
	size_t count;
	uint64_t syncs, answers, ended;
	size_t ready; /* agents whose node is known */
};

static int64_t now_ns(void)
{
	return bench_clock(CLOCK_MONOTONIC);
}

/* ---- what an agent says */

static size_t make_samples(const struct agent *agent, struct sw_sync_sample *samples)
{
	size_t count = 0;
	int64_t at_ns = bench_clock(CLOCK_REALTIME);
	for (size_t g = 0; g < GPUS; g++)
		samples[count++] = (struct sw_sync_sample){.at_ns = at_ns,
							   .gpu = agent->uuids[g],
							   .memory_bytes = (UINT64_C(30) << 30) + (agent->number << 20),
							   .busy_milli = 900 + (uint32_t)(agent->number % 100),
							   .power_mw = 400000 + (uint32_t)agent->number,
							   .temperature_c = 60 + (int32_t)(agent->number % 10)};
	for (size_t r = 0; r < agent->run_count; r++) {
		struct sw_sync_sample sample = {.at_ns = at_ns,
						.has_run = true,
						.run = agent->runs[r].id,
						.memory_bytes = UINT64_C(4) << 30,
						.busy_milli = 1700,
						.processes = 3};
		samples[count++] = sample;
		sample.gpu = agent->gpus[r];
		samples[count++] = sample;
	}
	return count;
}

static char *make_sync(struct agent *agent, size_t *ret_size)
{
	struct sw_sync_gpu gpus[GPUS];
	for (size_t g = 0; g < GPUS; g++)
		gpus[g] = (struct sw_sync_gpu){.uuid = agent->uuids[g], .name = "Emulated A100", .memory_bytes = UINT64_C(80) << 30};
	const struct sw_sync_inventory inventory = {gpus, GPUS, 64, UINT64_C(512) << 30};
	struct sw_sync_sample samples[GPUS + 2 * RUNS_MAX];
	struct sw_sync sync = {.node = agent->node,
			       .instance = agent->instance,
			       .number = ++agent->number,
			       .have = agent->have,
			       .inventory = agent->knows_inventory ? NULL : &inventory,
			       .runs = agent->runs,
			       .run_count = agent->run_count,
			       .samples = samples};
	sync.sample_count = make_samples(agent, samples);
	char *text = NULL;
	if (sw_sync_encode(&sync, &text, ret_size, NULL) < 0)
		bench_fail("cannot write a sync");
	return text;
}

static void hang_up(struct agent *agent)
{
	if (agent->fd >= 0)
		close(agent->fd);
	agent->fd = -1;
	agent->asks = false;
	agent->used = 0;
}

/* As the real one: a question that is still open is given up, with its connection. */
static void ask(struct crowd *crowd, struct agent *agent)
{
	char head[200];
	size_t size;
	if (agent->asks)
		hang_up(agent);
	if (agent->fd < 0) {
		agent->fd = bench_connect(crowd->socket);
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = agent};
		if (epoll_ctl(crowd->epoll, EPOLL_CTL_ADD, agent->fd, &event) != 0)
			bench_fail("epoll: %s", strerror(errno));
	}
	SW_CLEANUP(sw_freep) char *text = make_sync(agent, &size);
	int n = snprintf(head, sizeof head, "POST /v1/agents/sync HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", size);
	bench_send(agent->fd, head, (size_t)n);
	bench_send(agent->fd, text, size);
	agent->asks = true;
	agent->asked_at_ns = now_ns();
	crowd->syncs++;
}

/* ---- what it hears */

static struct sw_sync_run *find_run(struct agent *agent, struct sw_run_id id)
{
	for (size_t r = 0; r < agent->run_count; r++)
		if (sw_run_id_compare(agent->runs[r].id, id) == 0)
			return &agent->runs[r];
	return NULL;
}

static const char *own_uuid(const struct agent *agent, const struct sw_want *want)
{
	for (size_t g = 0; g < GPUS; g++)
		if (want->gpus.count > 0 && strcmp(agent->uuids[g], want->gpus.items[0]) == 0)
			return agent->uuids[g];
	bench_fail("%s was given a GPU that it does not have", agent->node);
}

/* True: there is something new to say. */
static bool heed(struct agent *agent, const struct sw_want *want)
{
	struct sw_sync_run *run = find_run(agent, want->id);
	if (want->want == SW_WANT_RUN && run == NULL) {
		if (agent->run_count == RUNS_MAX)
			bench_fail("%s was given too many runs", agent->node);
		agent->gpus[agent->run_count] = own_uuid(agent, want);
		agent->runs[agent->run_count++] = (struct sw_sync_run){
			.id = want->id, .state = SW_RUN_RUNNING, .pid = 1000, .started_at_ns = bench_clock(CLOCK_REALTIME), .reason = ""};
		return true;
	}
	if (want->want == SW_WANT_FORGET && run != NULL) {
		size_t place = (size_t)(run - agent->runs);
		*run = agent->runs[--agent->run_count];
		agent->gpus[place] = agent->gpus[agent->run_count];
		return false;
	}
	if (want->want == SW_WANT_STOP && run != NULL && run->state != SW_RUN_EXITED) {
		run->state = SW_RUN_EXITED;
		run->signal = 15;
		run->reason = SW_REASON_STOPPED;
		run->ended_at_ns = bench_clock(CLOCK_REALTIME);
		return true;
	}
	return false;
}

static void hear(struct crowd *crowd, struct agent *agent, const char *text, size_t size)
{
	struct sw_err err = {0};
	SW_CLEANUP(sw_answer_freep) struct sw_answer_message *answer = NULL;
	if (sw_answer_decode(text, size, &answer, &err) < 0)
		bench_fail("%s: %s: %.200s", err.fact, err.detail, text);
	crowd->answers++;
	crowd->ready += !agent->knows_inventory;
	agent->knows_inventory = true;
	agent->have = answer->version;
	bool news = false;
	for (size_t w = 0; w < answer->want_count; w++)
		news = heed(agent, &answer->wants[w]) || news;
	agent->asks = false;
	if (news || now_ns() - agent->asked_at_ns > HASTY_NS)
		ask(crowd, agent);
}

static void on_bytes(struct crowd *crowd, struct agent *agent)
{
	if (agent->capacity - agent->used < 65536) {
		agent->capacity = agent->capacity * 2 + 65536;
		agent->text = realloc(agent->text, agent->capacity + 1);
		if (agent->text == NULL)
			bench_fail("out of memory");
	}
	ssize_t n = recv(agent->fd, agent->text + agent->used, agent->capacity - agent->used, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		bench_fail("the controller hung up on %s", agent->node);
	agent->used += (size_t)n;
	agent->text[agent->used] = '\0';
	size_t head = 0, whole = bench_answer_size(agent->text, &head);
	if (whole == 0 || agent->used < whole)
		return;
	agent->used = 0;
	if (atoi(agent->text + 9) == 200)
		hear(crowd, agent, agent->text + head, whole - head);
	else
		bench_fail("%s was answered: %.300s", agent->node, agent->text);
}

/* ---- time */

static void end_one(struct crowd *crowd, struct agent *agent)
{
	for (size_t r = 0; r < agent->run_count; r++)
		if (agent->runs[r].state == SW_RUN_RUNNING) {
			agent->runs[r].state = SW_RUN_EXITED;
			agent->runs[r].ended_at_ns = bench_clock(CLOCK_REALTIME);
			crowd->ended++;
			return;
		}
}

/* Turns the crowd's wheel until the time is over, or all are known. */
static void turn(struct crowd *crowd, int64_t until_ns, bool until_ready)
{
	struct epoll_event events[256];
	while (now_ns() < until_ns && !(until_ready && crowd->ready == crowd->count)) {
		int count = epoll_wait(crowd->epoll, events, 256, 1);
		for (int i = 0; i < count; i++)
			on_bytes(crowd, events[i].data.ptr);
		int64_t now = now_ns();
		for (size_t i = 0; i < crowd->count; i++) {
			struct agent *agent = &crowd->agents[i];
			if (now < agent->report_at_ns)
				continue;
			agent->report_at_ns += REPORT_NS;
			if (agent->report_at_ns < now)
				agent->report_at_ns = now + REPORT_NS;
			if (now >= agent->end_at_ns) {
				agent->end_at_ns = now + ENDS_EVERY_NS;
				end_one(crowd, agent);
			}
			ask(crowd, agent);
		}
	}
}

static void make_agents(struct crowd *crowd)
{
	int64_t now = now_ns();
	crowd->epoll = epoll_create1(EPOLL_CLOEXEC);
	crowd->agents = calloc(crowd->count, sizeof *crowd->agents);
	if (crowd->epoll < 0 || crowd->agents == NULL)
		bench_fail("cannot make %zu agents", crowd->count);
	for (size_t i = 0; i < crowd->count; i++) {
		struct agent *agent = &crowd->agents[i];
		*agent = (struct agent){.fd = -1,
					.report_at_ns = now + (int64_t)i * REPORT_NS / (int64_t)crowd->count,
					.end_at_ns = now + (int64_t)i * ENDS_EVERY_NS / (int64_t)crowd->count};
		snprintf(agent->node, sizeof agent->node, "node%zu", i);
		snprintf(agent->instance, sizeof agent->instance, "1");
		for (size_t g = 0; g < GPUS; g++)
			snprintf(agent->uuids[g], sizeof agent->uuids[g], "GPU-%08zx-0000-0000-0000-%012zx", i, g);
	}
}

/* ---- people */

/* Asks for pages of what waits, one after the other and from the beginning again, and now and then
 * for the cluster as a whole. */
struct reader {
	const char *socket;
	atomic_bool stop;
	int64_t *pages_ns, *others_ns;
	size_t pages, others, most;
};

static int64_t time_one(struct bench_client *client, const char *target)
{
	int64_t start_ns = now_ns();
	bench_must(client, "GET", target, NULL, 200);
	return now_ns() - start_ns;
}

static void *read_pages(void *context)
{
	struct reader *reader = context;
	struct bench_client client;
	bench_open(&client, reader->socket);
	double cursor = 0;
	for (unsigned i = 0; !atomic_load(&reader->stop) && reader->pages < reader->most && reader->others < reader->most; i++) {
		char target[128];
		snprintf(target, sizeof target, "/v1/jobs?state=active&limit=%d&cursor=%.0f", PAGE, cursor);
		reader->pages_ns[reader->pages++] = time_one(&client, target);
		cursor = bench_next(client.text);
		if (i % 20 == 0)
			reader->others_ns[reader->others++] = time_one(&client, i % 40 == 0 ? "/v1/cluster" : "/v1/nodes");
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	bench_close(&client);
	return NULL;
}

/* As the command line sends it: with an environment, some 2 KiB of it. */
static void write_job(char *body, size_t size, size_t members)
{
	int used =
		snprintf(body, size,
			 "{\"command\":[\"python3\",\"train.py\",\"--epochs\",\"90\"],\"name\":\"crowd\",\"gpus\":1,\"workdir\":\"/tmp\",");
	used += snprintf(body + used, size - (size_t)used, "\"array\":\"1-%zu\",\"env\":{\"HOME\":\"/root\"", members);
	for (int i = 0; i < 40; i++)
		used += snprintf(body + used, size - (size_t)used, ",\"VARIABLE_%d\":\"/some/where/that/is/not/so/near/%d\"", i, i);
	snprintf(body + used, size - (size_t)used, "}}");
}

static void *submit_jobs(void *context)
{
	struct reader *reader = context; /* `most` jobs */
	struct bench_client client;
	bench_open(&client, reader->socket);
	for (size_t done = 0; done < reader->most; done += ARRAY) {
		char body[8192];
		write_job(body, sizeof body, reader->most - done < ARRAY ? reader->most - done : ARRAY);
		bench_must(&client, "POST", "/v1/jobs", body, 201);
	}
	bench_close(&client);
	atomic_store(&reader->stop, true);
	return NULL;
}

/* Cancels the oldest jobs, of which many run: some with a request each, ten
 * times as many with one. */
struct canceller {
	const char *socket;
	atomic_bool stop;
	uint64_t *ids;
	size_t most, count, ran;
	int64_t together_ns, singly_ns;
};

/* The oldest that have not ended. */
static void find_jobs(struct canceller *canceller, struct bench_client *client, size_t wanted)
{
	double cursor = 0;
	canceller->count = canceller->ran = 0;
	while (canceller->count < wanted) {
		char target[128];
		snprintf(target, sizeof target, "/v1/jobs?state=active&limit=1000&cursor=%.0f", cursor);
		bench_must(client, "GET", target, NULL, 200);
		for (const char *job = strstr(client->text, "{\"id\":"); job != NULL && canceller->count < wanted;
		     job = strstr(job + 1, "{\"id\":")) {
			canceller->ids[canceller->count++] = strtoul(job + 6, NULL, 10);
			canceller->ran += strncmp(strstr(job, "\"state\":") + 8, "\"R\"", 3) == 0;
		}
		cursor = bench_next(client->text);
		if (cursor <= 0 && canceller->count < wanted)
			bench_fail("there are only %zu jobs to cancel", canceller->count);
	}
}

static void *cancel_jobs(void *context)
{
	struct canceller *canceller = context;
	struct bench_client client;
	bench_open(&client, canceller->socket);
	find_jobs(canceller, &client, canceller->most / 10);
	int64_t start_ns = now_ns();
	for (size_t i = 0; i < canceller->count; i++) {
		char target[64];
		snprintf(target, sizeof target, "/v1/jobs/%llu/cancel", (unsigned long long)canceller->ids[i]);
		int status = bench_ask(&client, "POST", target, NULL);
		if (status != 200 && status != 409) /* it may have ended just now */
			bench_fail("a cancel was answered with %d: %.300s", status, client.text);
	}
	canceller->singly_ns = now_ns() - start_ns;
	find_jobs(canceller, &client, canceller->most);
	char *body = malloc(64 + canceller->most * 12), *end = body;
	if (body == NULL)
		bench_fail("out of memory");
	end += sprintf(end, "{\"verb\":\"cancel\",\"skip_ended\":true,\"jobs\":[");
	for (size_t i = 0; i < canceller->count; i++)
		end += sprintf(end, "%s%llu", i == 0 ? "" : ",", (unsigned long long)canceller->ids[i]);
	sprintf(end, "]}");
	start_ns = now_ns();
	bench_must(&client, "POST", "/v1/jobs/change", body, 200);
	canceller->together_ns = now_ns() - start_ns;
	free(body);
	bench_close(&client);
	atomic_store(&canceller->stop, true);
	return NULL;
}

/* ---- the controller as the system sees it */

static pid_t pid_of(const char *socket)
{
	struct ucred peer = {0};
	socklen_t size = sizeof peer;
	int fd = bench_connect(socket);
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	close(fd);
	return peer.pid;
}

static void read_proc(pid_t pid, const char *name, char text[4096])
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	FILE *file = fopen(path, "r");
	size_t size = file != NULL ? fread(text, 1, 4095, file) : 0;
	text[size] = '\0';
	if (file != NULL)
		fclose(file);
}

static double cpu_s(pid_t pid)
{
	char text[4096];
	unsigned long user = 0, system = 0;
	read_proc(pid, "stat", text);
	const char *end = strrchr(text, ')');
	if (end != NULL)
		sscanf(end + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static double loop_max_ms(const char *socket)
{
	struct bench_client client;
	bench_open(&client, socket);
	bench_must(&client, "GET", "/metrics", NULL, 200);
	double seconds = bench_number(client.text, "\nsharewell_loop_seconds_max");
	bench_close(&client);
	return seconds * 1000;
}

int main(int count, char **args)
{
	if (count != 5)
		bench_fail("usage: bench_crowd SOCKET AGENTS JOBS SECONDS");
	struct crowd crowd = {.socket = args[1], .count = strtoul(args[2], NULL, 10)};
	size_t jobs = strtoul(args[3], NULL, 10);
	int64_t seconds = strtol(args[4], NULL, 10);
	pthread_t thread;
	pid_t pid = pid_of(crowd.socket);
	make_agents(&crowd);
	int64_t start_ns = now_ns();
	turn(&crowd, start_ns + 60 * SW_NS_PER_S, true);
	int64_t joined_ns = now_ns();
	struct reader submitter = {.socket = crowd.socket, .most = jobs + crowd.count * GPUS};
	pthread_create(&thread, NULL, submit_jobs, &submitter);
	while (!atomic_load(&submitter.stop))
		turn(&crowd, now_ns() + 100 * SW_NS_PER_MS, false);
	pthread_join(thread, NULL);
	int64_t submitted_ns = now_ns();
	/* All have what runs, and have said so. */
	turn(&crowd, now_ns() + 3 * SW_NS_PER_S, false);
	double filling_max_ms = loop_max_ms(crowd.socket);

	struct reader reader = {.socket = crowd.socket, .most = 1000000};
	reader.pages_ns = calloc(reader.most, sizeof *reader.pages_ns);
	reader.others_ns = calloc(reader.most, sizeof *reader.others_ns);
	if (reader.pages_ns == NULL || reader.others_ns == NULL)
		bench_fail("out of memory");
	pthread_create(&thread, NULL, read_pages, &reader);
	double cpu_before_s = cpu_s(pid);
	uint64_t syncs_before = crowd.syncs;
	int64_t steady_ns = now_ns();
	turn(&crowd, steady_ns + seconds * SW_NS_PER_S, false);
	double took_s = (double)(now_ns() - steady_ns) / 1e9;
	double cpu = (cpu_s(pid) - cpu_before_s) / took_s;
	atomic_store(&reader.stop, true);
	pthread_join(thread, NULL);

	size_t running = 0;
	for (size_t i = 0; i < crowd.count; i++)
		running += crowd.agents[i].run_count;
	double reading_max_ms = loop_max_ms(crowd.socket);
	struct canceller canceller = {.socket = crowd.socket, .ids = calloc(CANCELLED, sizeof *canceller.ids)};
	canceller.most = jobs < 2 * CANCELLED ? jobs / 2 : CANCELLED;
	if (canceller.ids == NULL)
		bench_fail("out of memory");
	pthread_create(&thread, NULL, cancel_jobs, &canceller);
	while (!atomic_load(&canceller.stop))
		turn(&crowd, now_ns() + 100 * SW_NS_PER_MS, false);
	pthread_join(thread, NULL);
	turn(&crowd, now_ns() + 3 * SW_NS_PER_S, false); /* others take their places */
	char status[4096];
	read_proc(pid, "status", status);
	printf("{\"agents\": %zu, \"running\": %zu, \"joined_s\": %.2f, \"submitted_s\": %.2f, \"syncs_per_s\": %.0f, \"ended\": %llu",
	       crowd.count, running, (double)(joined_ns - start_ns) / 1e9, (double)(submitted_ns - joined_ns) / 1e9,
	       (double)(crowd.syncs - syncs_before) / took_s, (unsigned long long)crowd.ended);
	printf(", \"pages\": %zu", reader.pages);
	bench_print_times("page", reader.pages_ns, reader.pages);
	bench_print_times("other", reader.others_ns, reader.others);
	printf(", \"cancelled\": %zu, \"cancelled_ms\": %.1f, \"cancelled_ran\": %zu, \"cancelled_singly_ms\": %.1f", canceller.most,
	       (double)canceller.together_ns / 1e6, canceller.ran, (double)canceller.singly_ns / 1e6 * 10);
	printf(", \"filling_loop_max_ms\": %.1f, \"reading_loop_max_ms\": %.1f, \"loop_max_ms\": %.1f, \"rss_mb\": %.0f, \"peak_mb\": "
	       "%.0f, \"cpu\": %.3f}\n",
	       filling_max_ms, reading_max_ms, loop_max_ms(crowd.socket), bench_number(status, "VmRSS") / 1024,
	       bench_number(status, "VmHWM") / 1024, cpu);
	return 0;
}
