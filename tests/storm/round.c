/* Plays a round: clients in threads, kills here, then waits until every job has ended. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "storm.h"

#define ROUND_PATIENCE_NS (90 * SW_NS_PER_S)
#define ANSWER_PATIENCE_NS (30 * SW_NS_PER_S)
enum { STEP_US = 4000, STRAY_PATIENCE_S = 15 };

static void carry_out_kills(struct cluster *cluster, const struct round_plan *plan, int64_t start_ns)
{
	for (size_t i = 0; i < plan->kill_count; i++) {
		int64_t at_ns = start_ns + (int64_t)plan->kills[i].at_us * SW_NS_PER_US;
		for (int64_t now_ns; (now_ns = boot_now_ns()) < at_ns;) {
			int64_t left_us = (at_ns - now_ns) / SW_NS_PER_US;
			rest_us(left_us < STEP_US ? left_us : STEP_US);
			cluster_pump(cluster);
		}
		cluster_kill(cluster, &plan->kills[i]);
	}
}

/* A page may be short, or empty, and not the last one. */
static size_t count_active(struct cluster *cluster)
{
	size_t count = 0;
	for (json_int_t cursor = 0;;) {
		char path[100];
		json_t *answer;
		snprintf(path, sizeof path, "/v1/jobs?state=active&limit=1000&cursor=%lld", (long long)cursor);
		if (ask_patiently(cluster, path, ANSWER_PATIENCE_NS, &answer) == 0)
			return SIZE_MAX;
		count += json_array_size(json_object_get(answer, "jobs"));
		cursor = json_integer_value(json_object_get(answer, "next"));
		json_decref(answer);
		if (cursor == 0)
			return count;
	}
}

static void wait_for_ends(struct cluster *cluster)
{
	size_t active = SIZE_MAX;
	for (int64_t end_ns = boot_now_ns() + ROUND_PATIENCE_NS; active > 0 && boot_now_ns() < end_ns; rest_us(STEP_US)) {
		active = count_active(cluster);
		cluster_pump(cluster);
	}
	if (active > 0)
		violation(cluster, CHECK_ENDED, "%zu jobs have not ended after %d s", active, (int)(ROUND_PATIENCE_NS / SW_NS_PER_S));
}

/* Supervisors end a moment after their jobs; jobs that were cancelled after their grace. */
static void wait_for_silence(struct cluster *cluster)
{
	char names[400];
	size_t left = SIZE_MAX;
	for (int64_t end_ns = boot_now_ns() + STRAY_PATIENCE_S * SW_NS_PER_S; left > 0 && boot_now_ns() < end_ns; rest_us(STEP_US)) {
		cluster_pump(cluster);
		left = cluster_processes(cluster, names, sizeof names);
	}
	cluster->tally->checked[CHECK_LEFT]++;
	if (left > 0)
		violation(cluster, CHECK_LEFT, "%zu processes are left although all jobs have ended:%s", left, names);
}

json_t *list_jobs(struct cluster *cluster, const char *prefix)
{
	json_t *all = json_array(), *next = NULL;
	char path[200];
	json_int_t cursor = 0;
	do {
		json_t *answer;
		snprintf(path, sizeof path, "/v1/jobs?limit=1000&name=%s*&cursor=%" PRIu64, prefix, (uint64_t)cursor);
		if (ask_patiently(cluster, path, ANSWER_PATIENCE_NS, &answer) == 0) {
			violation(cluster, CHECK_HEALTH, "the controller does not answer");
			return all;
		}
		json_array_extend(all, json_object_get(answer, "jobs"));
		next = json_object_get(answer, "next");
		bool more = json_is_integer(next);
		cursor = json_integer_value(next);
		json_decref(answer);
		next = more ? all : NULL;
	} while (next != NULL);
	return all;
}

void play_round(struct cluster *cluster, struct round_plan *plan)
{
	pthread_t threads[CLIENTS];
	struct client clients[CLIENTS];
	cluster->seed = plan->seed;
	cluster->victims.count = 0;
	cluster->pumped_at_ns = 0;
	cluster->has_stalled = false;
	stranger_prepare(cluster, &plan->stranger);
	int64_t start_ns = boot_now_ns();
	stranger_begin(cluster, start_ns);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		clients[i] = (struct client){cluster, plan, i, start_ns};
		if (pthread_create(&threads[i], NULL, run_client, &clients[i]) != 0)
			violation(cluster, CHECK_HEALTH, "no thread for a client");
	}
	carry_out_kills(cluster, plan, start_ns);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct timespec soon;
		do {
			cluster_pump(cluster);
			clock_gettime(CLOCK_REALTIME, &soon);
			soon.tv_nsec += (long)STEP_US * 1000;
			soon.tv_sec += soon.tv_nsec / SW_NS_PER_S;
			soon.tv_nsec %= SW_NS_PER_S;
		} while (pthread_timedjoin_np(threads[i], NULL, &soon) != 0);
	}
	wait_for_ends(cluster);
	stranger_leave(cluster);
	wait_for_silence(cluster);
}
