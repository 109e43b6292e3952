/* What a forecast does in its process: after LOOKS_NS it stops looking ahead and tells what it has
 * found. The kernel ends it after HARD_CPU_S of processor time, or ALARM_S of any time. */
#include "server/forecast_child.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/now.h"
#include "base/number.h"

#define LOOKS_NS (2 * SW_NS_PER_S)
#define HARD_CPU_S 3u
#define ALARM_S 60u
#define MORE_BYTES ((uint64_t)2 << 30) /* a copy of the largest engine is below 1 GiB */

struct head {
	uint64_t rows;
	uint32_t gpus_shut, zero;
};

/* ---- in the child */

static bool has_time(void *begun_ns)
{
	return sw_now_monotonic_ns() - *(const int64_t *)begun_ns < LOOKS_NS;
}

static bool write_table(const struct sw_forecast_row *rows, size_t count, uint32_t gpus_shut)
{
	const struct head head = {.rows = count, .gpus_shut = gpus_shut};
	return sw_child_write(&head, sizeof head) && sw_child_write(rows, count * sizeof *rows);
}

/* Makes the jobs of the items. `ret_jobs`: the first of each. */
static int make_jobs(const struct sw_forecast_task *task, uint64_t *ret_jobs)
{
	size_t next = 0;
	int r = 0;
	for (size_t i = 0; r == 0 && i < task->item_count; i++) {
		ret_jobs[i] = 0;
		for (size_t end = next + task->item_records[i]; r == 0 && next < end; next++) {
			const struct sw_record *record = &task->records->items[next];
			uint64_t job = 0;
			r = sw_brain_apply(task->brain, task->now, record->kind, record->body, record->size, &job, NULL);
			if (ret_jobs[i] == 0)
				ret_jobs[i] = job;
		}
	}
	return r;
}

static bool try_items(const struct sw_forecast_task *task)
{
	SW_CLEANUP(sw_freep) uint64_t *jobs = calloc(task->item_count, sizeof *jobs);
	SW_CLEANUP(sw_freep) struct sw_forecast_row *rows = calloc(task->item_count, sizeof *rows);
	int64_t begun_ns = sw_now_monotonic_ns();
	struct sw_forecast_config config = {.now = task->now, .goes_on = has_time, .user = &begun_ns};
	struct sw_forecast found = {0};
	if (jobs == NULL || rows == NULL || make_jobs(task, jobs) < 0)
		return false;
	for (size_t i = 0; i < task->item_count; i++) {
		if (config.first == 0)
			config.first = jobs[i];
		config.last = jobs[i] > 0 ? jobs[i] : config.last;
	}
	if (config.last == 0 || sw_brain_forecast(task->brain, &config, &found, NULL) < 0)
		return false;
	for (size_t i = 0, at = 0; i < task->item_count; i++) {
		rows[i] = (struct sw_forecast_row){.starts_at = SW_TIME_NEVER, .why = SW_FORECAST_REFUSED};
		while (at < found.rows.count && found.rows.items[at].job < jobs[i])
			at++;
		if (at < found.rows.count && found.rows.items[at].job == jobs[i])
			rows[i] = found.rows.items[at];
	}
	return write_table(rows, task->item_count, found.gpus_shut);
}

static bool look_ahead(const struct sw_forecast_task *task)
{
	int64_t begun_ns = sw_now_monotonic_ns();
	const struct sw_forecast_config config = {.now = task->now, .goes_on = has_time, .user = &begun_ns};
	struct sw_forecast found = {0};
	return sw_brain_forecast(task->brain, &config, &found, NULL) == 0 &&
	       write_table(found.rows.items, found.rows.count, found.gpus_shut);
}

static bool run(void *work)
{
	const struct sw_forecast_task *task = work;
	return task->item_count > 0 ? try_items(task) : look_ahead(task);
}

/* ---- in the controller */

int sw_forecast_child_start(const struct sw_forecast_task *task, struct sw_child *ret_child, struct sw_err *err)
{
	const struct sw_child_task bounded = {.name = "sw-forecast",
					      .purpose = "a forecast",
					      .run = run,
					      .work = (void *)(uintptr_t)task,
					      .cpu_s = HARD_CPU_S,
					      .alarm_s = ALARM_S,
					      .more_bytes = MORE_BYTES};
	return sw_child_start(&bounded, ret_child, err);
}

int sw_forecast_child_end(struct sw_child *child, struct sw_forecast_table *ret_table, struct sw_err *err)
{
	struct sw_child_result result = {0};
	int r = sw_child_end(child, ret_table != NULL ? &result : NULL, err);
	if (r < 0)
		return r;
	const struct head *head = result.map;
	if (result.size < sizeof *head || head->rows != (result.size - sizeof *head) / sizeof(struct sw_forecast_row)) {
		munmap(result.map, result.size);
		return sw_err_set(err, SW_EIO, "its process left no whole table");
	}
	*ret_table = (struct sw_forecast_table){.rows = (const void *)(head + 1),
						.count = (size_t)head->rows,
						.gpus_shut = head->gpus_shut,
						.map = result.map,
						.size = result.size};
	return 0;
}

void sw_forecast_table_release(struct sw_forecast_table *table)
{
	if (table->map != NULL)
		munmap(table->map, table->size);
	*table = (struct sw_forecast_table){0};
}
