/* What a restart of the controller costs, with and without a snapshot: a cluster of `nodes`,
 * `waiting` jobs behind a full one, `ended` ones before. Times are of this machine; the journal
 * lies in the folder given, or in /tmp. Prints one line of JSON.
 *
 *	bench_snapshot [nodes [waiting [ended [folder]]]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "brain/brain.h"
#include "store/journal.h"

#define GPUS 8
#define SECOND INT64_C(1000000000)

static const struct sw_brain_config config = {
	.policy = "las",
	.placement = "pack",
	.silence_ns = 30 * SECOND,
	.silence_margin_ns = 5 * SECOND,
	.retry_backoff_ns = 10 * SECOND,
};

struct bench {
	struct sw_brain *brain;
	struct sw_journal *journal;
	sw_ns now;
	uint64_t records;
};

static double read_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double seconds(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static double cpu_seconds(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

static void must(int r, const struct sw_err *err)
{
	if (r == 0)
		return;
	fprintf(stderr, "%s: %s\n", err->fact, err->detail);
	exit(1);
}

static void record(struct bench *bench, enum sw_record_kind kind, const char *body)
{
	struct sw_err err = {0};
	uint64_t seq;
	must(sw_journal_append(bench->journal, bench->now, kind, body, strlen(body), &seq), &err);
	if (++bench->records % 100 == 0)
		must(sw_journal_commit(bench->journal, &err), &err);
	must(sw_brain_apply(bench->brain, bench->now, kind, body, strlen(body), NULL, &err), &err);
}

static void add_node(struct bench *bench, unsigned n)
{
	char body[1024];
	int used = snprintf(
		body, sizeof body,
		"{\"name\":\"node%04u\",\"cpus\":128,\"memory_bytes\":1099511627776,\"gpu_memory_bytes\":85899345920,\"gpus\":[", n);
	for (unsigned g = 0; g < GPUS; g++)
		used += snprintf(body + used, sizeof body - (size_t)used, "%s\"GPU-00000000-0000-0000-%04u-%012u\"", g > 0 ? "," : "", n,
				 g);
	snprintf(body + used, sizeof body - (size_t)used, "]}");
	record(bench, SW_RECORD_NODE, body);
}

/* About what a real request is: a command, a place, some environment. */
static void submit(struct bench *bench, unsigned gpus)
{
	char body[1200];
	bench->now += SECOND / 100;
	snprintf(body, sizeof body,
		 "{\"uid\":1000,\"gid\":1000,\"request\":{\"command\":[\"python3\",\"train.py\",\"--epochs\",\"90\",\"--config\",\"configs/"
		 "resnet50.yaml\"],\"workdir\":\"/home/ada/project\",\"name\":\"train-%u\",\"gpus\":%u,\"env\":{\"PATH\":\"/usr/local/"
		 "bin:/usr/bin:/bin\",\"HOME\":\"/home/ada\",\"LANG\":\"C.UTF-8\"}}}",
		 (unsigned)(bench->records % 1000), gpus);
	record(bench, SW_RECORD_SUBMIT, body);
}

static void cancel_last(struct bench *bench)
{
	char body[64];
	snprintf(body, sizeof body, "{\"job\":%llu,\"by\":1000}", (unsigned long long)sw_brain_job_count(bench->brain));
	record(bench, SW_RECORD_CANCEL, body);
}

static int replay(void *user, uint64_t seq, int64_t at_ns, uint32_t kind, const void *bytes, size_t size)
{
	(void)seq;
	return sw_brain_apply(user, at_ns, (enum sw_record_kind)kind, bytes, size, NULL, NULL);
}

static unsigned argument(int argc, char **argv, int at, unsigned usual)
{
	return argc > at ? (unsigned)strtoul(argv[at], NULL, 10) : usual;
}

int main(int argc, char **argv)
{
	unsigned nodes = argument(argc, argv, 1, 1000), waiting = argument(argc, argv, 2, 50000), ended = argument(argc, argv, 3, 0);
	struct bench bench = {.now = INT64_C(1700000000) * SECOND};
	struct sw_err err = {0};
	char folder[4096], path[5000], rest[5100];
	snprintf(folder, sizeof folder, "%s/sharewell-bench-XXXXXX", argc > 4 ? argv[4] : "/tmp");
	if (mkdtemp(folder) == NULL)
		return 1;
	snprintf(path, sizeof path, "%s/journal.db", folder);
	must(sw_journal_open(path, &bench.journal, &err), &err);
	must(sw_brain_new(&config, &bench.brain, &err), &err);
	for (unsigned n = 0; n < nodes; n++)
		add_node(&bench, n);
	for (unsigned j = 0; j < ended; j++) {
		submit(&bench, 1);
		cancel_last(&bench);
	}
	for (unsigned j = 0; j < nodes + waiting; j++)
		submit(&bench, j < nodes ? GPUS : 1 + j % GPUS);
	must(sw_journal_commit(bench.journal, &err), &err);

	double at = seconds();
	struct sw_brain *again = NULL;
	must(sw_brain_new(&config, &again, &err), &err);
	must(sw_journal_replay(bench.journal, 1, replay, again, &err), &err);
	double replay_s = seconds() - at;
	sw_brain_free(again);

	at = seconds();
	double cpu = cpu_seconds();
	struct sw_pack pack = {0};
	sw_brain_save(bench.brain, &pack);
	double save_s = seconds() - at, save_cpu_s = cpu_seconds() - cpu;
	size_t size = 0, engine_size;
	unsigned char *bytes = sw_pack_take(&pack, &size);
	/* One before, so that records can go: they stay until two snapshots cover them. */
	void *before = calloc(1, 1);
	bool still = true;
	must(sw_journal_snapshot_begin(bench.journal, sw_journal_last_seq(bench.journal), before, 1, &err), &err);
	while (still)
		must(sw_journal_snapshot_step(bench.journal, &still, &err), &err);
	double longest_s = 0;
	bool more = true;
	must(sw_journal_snapshot_begin(bench.journal, sw_journal_last_seq(bench.journal), bytes, size, &err), &err);
	double write_s = seconds();
	while (more) {
		at = seconds();
		must(sw_journal_snapshot_step(bench.journal, &more, &err), &err);
		longest_s = seconds() - at > longest_s ? seconds() - at : longest_s;
	}
	write_s = seconds() - write_s;
	for (more = true; more;) {
		at = seconds();
		must(sw_journal_prune(bench.journal, sw_journal_last_seq(bench.journal) + 1, &more, &err), &err);
		longest_s = seconds() - at > longest_s ? seconds() - at : longest_s;
	}
	sw_journal_close(bench.journal);

	at = seconds();
	uint64_t seq;
	void *read_bytes = NULL;
	bool adopted;
	must(sw_journal_open(path, &bench.journal, &err), &err);
	must(sw_journal_snapshot_read(bench.journal, &seq, &read_bytes, &engine_size, &err), &err);
	double read_s = seconds() - at;
	must(sw_brain_load(&config, read_bytes, engine_size, &again, &adopted, &err), &err);
	double load_s = seconds() - at;
	bool same = sw_brain_log_hash(again) == sw_brain_log_hash(bench.brain) && !adopted;
	printf("{\"nodes\": %u, \"waiting\": %u, \"ended\": %u, \"records\": %llu, \"bytes\": %zu, \"save_ms\": %.1f, \"save_cpu_ms\": "
	       "%.1f, \"write_ms\": %.1f, "
	       "\"longest_step_ms\": %.1f, \"start_from_records_s\": %.3f, \"read_ms\": %.1f, \"start_from_snapshot_s\": %.3f, \"same\": "
	       "%s}\n",
	       nodes, waiting, ended, (unsigned long long)bench.records, size, save_s * 1e3, save_cpu_s * 1e3, write_s * 1e3,
	       longest_s * 1e3, replay_s, read_s * 1e3, load_s, same ? "true" : "false");
	sw_brain_free(again);
	sw_brain_free(bench.brain);
	sw_journal_close(bench.journal);
	free(read_bytes);
	unlink(path);
	snprintf(rest, sizeof rest, "%s.lock", path);
	unlink(rest);
	snprintf(rest, sizeof rest, "%s.mark", path);
	unlink(rest);
	rmdir(folder);
	return same ? 0 : 1;
}
