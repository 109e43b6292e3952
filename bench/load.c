/* Loads a controller through its socket and prints what came of it, as one JSON object.
 *
 *	bench_load submit SOCKET CLIENTS JOBS		each client submits one job after the other
 *	bench_load array SOCKET JOBS			one request for so many jobs
 *	bench_load finish SOCKET JOBS PROGRAM		an array of PROGRAM, until all have ended
 *	bench_load start SOCKET TIMES STAMP FILE	one job at a time on an idle cluster
 *
 * JOBS is how many in all. STAMP (stamp.c) writes into the pipe FILE when its job starts.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "client.h"

#define CLIENTS_MAX 1024

static unsigned long number(const char *text)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);
	if (end == text || *end != '\0' || value == 0 || value > 1000000)
		bench_fail("'%s' is not a number from 1 to 1000000", text);
	return value;
}

/* ---- submit */

struct submitter {
	pthread_t thread;
	const char *socket;
	size_t count;
	int64_t *times_ns;
};

static void *submit_all(void *context)
{
	struct submitter *submitter = context;
	struct bench_client client;
	bench_open(&client, submitter->socket);
	for (size_t i = 0; i < submitter->count; i++) {
		int64_t start_ns = bench_clock(CLOCK_MONOTONIC);
		bench_must(&client, "POST", "/v1/jobs", "{\"command\":[\"/bin/true\"],\"name\":\"load\",\"hold\":true}", 201);
		submitter->times_ns[i] = bench_clock(CLOCK_MONOTONIC) - start_ns;
	}
	bench_close(&client);
	return NULL;
}

static int submit(char **args)
{
	struct submitter submitters[CLIENTS_MAX];
	size_t clients = number(args[1]), each = number(args[2]) / clients;
	if (clients > CLIENTS_MAX || each == 0)
		bench_fail("at most %d clients, with a job at least for each", CLIENTS_MAX);
	int64_t *times_ns = calloc(clients * each, sizeof *times_ns);
	if (times_ns == NULL)
		bench_fail("out of memory");
	int64_t start_ns = bench_clock(CLOCK_MONOTONIC);
	for (size_t i = 0; i < clients; i++) {
		submitters[i] = (struct submitter){.socket = args[0], .count = each, .times_ns = times_ns + i * each};
		if (pthread_create(&submitters[i].thread, NULL, submit_all, &submitters[i]) != 0)
			bench_fail("cannot start a client");
	}
	for (size_t i = 0; i < clients; i++)
		pthread_join(submitters[i].thread, NULL);
	double took_s = (double)(bench_clock(CLOCK_MONOTONIC) - start_ns) / 1e9;
	printf("{\"jobs\": %zu, \"per_s\": %.1f", clients * each, (double)(clients * each) / took_s);
	bench_print_times("submit", times_ns, clients * each);
	printf("}\n");
	free(times_ns);
	return 0;
}

/* ---- array */

static int submit_array(char **args)
{
	struct bench_client client;
	char body[256];
	bench_open(&client, args[0]);
	snprintf(body, sizeof body, "{\"command\":[\"/bin/true\"],\"name\":\"array\",\"hold\":true,\"array\":\"1-%lu\"}", number(args[1]));
	int64_t start_ns = bench_clock(CLOCK_MONOTONIC);
	bench_must(&client, "POST", "/v1/jobs", body, 201);
	printf("{\"took_ms\": %.1f}\n", (double)(bench_clock(CLOCK_MONOTONIC) - start_ns) / 1e6);
	bench_close(&client);
	return 0;
}

/* ---- finish */

static unsigned long ended(struct bench_client *client)
{
	bench_must(client, "GET", "/v1/cluster", NULL, 200);
	return (unsigned long)(bench_number(client->text, "\"CD\"") + bench_number(client->text, "\"F\""));
}

static int finish(char **args)
{
	struct bench_client client;
	char body[1024];
	unsigned long count = number(args[1]);
	bench_open(&client, args[0]);
	unsigned long before = ended(&client);
	snprintf(body, sizeof body, "{\"command\":[\"%s\"],\"name\":\"finish\",\"gpus\":1,\"workdir\":\"/\",\"array\":\"1-%lu\"}", args[2],
		 count);
	int64_t start_ns = bench_clock(CLOCK_MONOTONIC);
	bench_must(&client, "POST", "/v1/jobs", body, 201);
	while (ended(&client) < before + count)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	double took_s = (double)(bench_clock(CLOCK_MONOTONIC) - start_ns) / 1e9;
	printf("{\"jobs\": %lu, \"took_s\": %.3f, \"per_s\": %.1f}\n", count, took_s, (double)count / took_s);
	bench_close(&client);
	return 0;
}

/* ---- start */

/* When the job says that it began. */
static int64_t read_stamp(int pipe)
{
	int64_t stamp_ns;
	if (read(pipe, &stamp_ns, sizeof stamp_ns) != (ssize_t)sizeof stamp_ns)
		bench_fail("no stamp came");
	return stamp_ns;
}

static int start(char **args)
{
	struct bench_client client;
	char body[2048];
	size_t times = number(args[1]);
	int64_t *started_ns = calloc(times, sizeof *started_ns), *answered_ns = calloc(times, sizeof *answered_ns);
	if (started_ns == NULL || answered_ns == NULL)
		bench_fail("out of memory");
	if (mkfifo(args[3], 0600) != 0 && errno != EEXIST)
		bench_fail("cannot make the pipe '%s': %s", args[3], strerror(errno));
	int pipe = open(args[3], O_RDWR | O_CLOEXEC); /* for writing too, so that it has no end */
	if (pipe < 0)
		bench_fail("cannot open '%s': %s", args[3], strerror(errno));
	bench_open(&client, args[0]);
	snprintf(body, sizeof body, "{\"command\":[\"%s\",\"%s\"],\"name\":\"start\",\"gpus\":1,\"workdir\":\"/\"}", args[2], args[3]);
	for (size_t i = 0; i < times; i++) {
		int64_t before_ns = bench_clock(CLOCK_REALTIME);
		bench_must(&client, "POST", "/v1/jobs", body, 201);
		answered_ns[i] = bench_clock(CLOCK_REALTIME) - before_ns;
		started_ns[i] = read_stamp(pipe) - before_ns;
		/* Until all is quiet again. */
		do
			nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		while (ended(&client) < i + 1);
	}
	printf("{\"times\": %zu", times);
	bench_print_times("started", started_ns, times);
	bench_print_times("answered", answered_ns, times);
	printf("}\n");
	bench_close(&client);
	free(started_ns);
	free(answered_ns);
	return 0;
}

int main(int count, char **args)
{
	static const struct {
		const char *name;
		int args;
		int (*run)(char **args);
	} verbs[] = {{"submit", 3, submit}, {"array", 2, submit_array}, {"finish", 3, finish}, {"start", 4, start}};
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (count - 2 == verbs[i].args && strcmp(args[1], verbs[i].name) == 0)
			return verbs[i].run(args + 2);
	bench_fail("usage: bench_load submit SOCKET CLIENTS JOBS | array SOCKET JOBS | finish SOCKET JOBS PROGRAM | start SOCKET TIMES "
		   "STAMP FILE");
}
