/* Simulations side by side. Each is a function of its own config and shares only what is not
 * written. So threads need nothing but a counter to take work from and a condition to wake the
 * thread that draws. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sim.h"

#define DRAW_INTERVAL_NS (100 * SW_NS_PER_MS)

struct run {
	struct sw_sim_config config;
	struct sw_result **result;
	_Atomic uint64_t ended;
	atomic_bool running;
	int code;
	struct sw_err err;
};

struct pool {
	struct run *runs;
	size_t count;
	atomic_size_t next;
	atomic_bool stop;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t done; /* under the lock */
};

static void *work(void *argument)
{
	struct pool *pool = argument;
	for (size_t i; (i = atomic_fetch_add(&pool->next, 1)) < pool->count;) {
		struct run *run = &pool->runs[i];
		atomic_store(&run->running, true);
		run->code = sw_simulate(&run->config, run->result, &run->err);
		atomic_store(&run->running, false);
		/* Others need not finish what will not be seen. */
		if (run->code < 0)
			atomic_store(&pool->stop, true);
		pthread_mutex_lock(&pool->lock);
		pool->done++;
		pthread_cond_signal(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
	}
	return NULL;
}

/* "las, srtf; 3 of 7 done" */
static void label_of(const struct pool *pool, size_t done, char *text, size_t size)
{
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < pool->count && used < size; i++)
		if (atomic_load(&pool->runs[i].running))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", pool->runs[i].config.policy->name);
	if (used < size && pool->count > 1)
		snprintf(text + used, size - used, "%s%zu of %zu done", used > 0 ? "; " : "", done, pool->count);
}

static void draw(const struct pool *pool, size_t done, struct sw_cli_progress *progress)
{
	char label[200];
	uint64_t ended = 0;
	for (size_t i = 0; i < pool->count; i++)
		ended += atomic_load_explicit(&pool->runs[i].ended, memory_order_relaxed);
	label_of(pool, done, label, sizeof label);
	sw_cli_progress_draw(progress, ended, label);
}

/* Waits for the last, drawing and listening for interruptions meanwhile. */
static void attend(struct pool *pool, struct sw_cli_progress *progress)
{
	pthread_mutex_lock(&pool->lock);
	while (pool->done < pool->count) {
		struct timespec until;
		clock_gettime(CLOCK_MONOTONIC, &until);
		int64_t ns = until.tv_nsec + DRAW_INTERVAL_NS;
		until.tv_sec += ns / SW_NS_PER_S;
		until.tv_nsec = ns % SW_NS_PER_S;
		pthread_cond_timedwait(&pool->changed, &pool->lock, &until);
		size_t done = pool->done;
		pthread_mutex_unlock(&pool->lock);
		if (sw_cli_interrupted() != 0)
			atomic_store(&pool->stop, true);
		if (progress != NULL)
			draw(pool, done, progress);
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	/* Short work may be over before it was looked at. */
	if (progress != NULL)
		draw(pool, pool->count, progress);
}

static int run_pool(struct pool *pool, size_t threads, struct sw_cli_progress *progress, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) pthread_t *workers = calloc(threads, sizeof *workers);
	size_t started = 0;
	while (workers != NULL && started < threads && pthread_create(&workers[started], NULL, work, pool) == 0)
		started++;
	if (started == 0)
		return sw_err_set(err, SW_ENOMEM, "cannot start a thread");
	attend(pool, progress);
	for (size_t i = 0; i < started; i++)
		pthread_join(workers[i], NULL);
	return 0;
}

/* What went wrong first; that others were stopped because of it is no news. */
static int judge(const struct pool *pool, struct sw_err *err)
{
	if (sw_cli_interrupted() != 0)
		return sw_err_set(err, SW_ESTOPPED, "interrupted; nothing was written");
	int code = 0;
	for (size_t i = 0; i < pool->count && (code == 0 || code == SW_ESTOPPED); i++) {
		const struct run *run = &pool->runs[i];
		if (run->code < 0) {
			code = run->code;
			if (err != NULL)
				*err = run->err;
		}
	}
	return code;
}

static void init_pool(struct pool *pool)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&pool->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&pool->lock, NULL);
}

static size_t thread_count(uint64_t asked, size_t runs)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	size_t threads = asked > 0 ? (size_t)asked : cores > 0 ? (size_t)cores : 1;
	return threads < runs ? threads : runs;
}

int sw_cli_run_study(const struct sw_cli_study *study, const struct sw_cli_sim_values *values, bool progress, struct sw_result **results,
		     struct sw_err *err)
{
	size_t count = study->contenders.count;
	SW_CLEANUP(sw_freep) struct run *runs = calloc(count, sizeof *runs);
	if (runs == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	struct pool pool = {.runs = runs, .count = count};
	init_pool(&pool);
	for (size_t i = 0; i < count; i++) {
		runs[i].result = &results[i];
		runs[i].config = (struct sw_sim_config){
			.trace = study->trace,
			.topology = study->topology,
			.gpu_types = (const char *const *)study->cluster->gpu_types.items,
			.gpu_type_count = study->cluster->gpu_types.count,
			.profiles = study->profiles,
			.world = study->world,
			.policy = study->contenders.items[i].policy,
			.params = study->contenders.items[i].params,
			.placement = study->placement,
			.quotas = study->quotas.items,
			.quota_count = study->quotas.count,
			.seed = values->seed,
			.cluster = study->cluster_text,
			.validate = values->validate,
			.list_job_events = values->events_out != NULL,
			.time_decisions = values->stats,
			.ended = &runs[i].ended,
			.stop = &pool.stop,
		};
	}
	struct sw_cli_progress bar;
	sw_cli_catch_interrupts();
	sw_cli_progress_start(&bar, (uint64_t)count * study->trace->jobs.count);
	int r = run_pool(&pool, thread_count(values->threads, count), progress ? &bar : NULL, err);
	sw_cli_progress_end(&bar);
	pthread_cond_destroy(&pool.changed);
	pthread_mutex_destroy(&pool.lock);
	return r < 0 ? r : judge(&pool, err);
}
