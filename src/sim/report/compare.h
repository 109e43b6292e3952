/* Which of several results are comparable, and which is the best: the same answers for
 * the table and the page. */
#ifndef SW_SIM_REPORT_COMPARE_H
#define SW_SIM_REPORT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/result.h"

enum sw_metric {
	SW_METRIC_JCT_AVG,
	SW_METRIC_JCT_MEDIAN,
	SW_METRIC_JCT_P95,
	SW_METRIC_JCT_P99,
	SW_METRIC_QUEUE_AVG,
	SW_METRIC_MAKESPAN,
	SW_METRIC_UTILIZATION,
	SW_METRIC_PREEMPTIONS,
	SW_METRIC_MIGRATIONS,
	SW_METRIC_FINISHED,
	SW_METRIC_CPU,
};

double sw_metric_value(const struct sw_result *result, enum sw_metric metric);

/* Whether the averages of result `index` may be held against the others': no other finished more
 * jobs, and there are some. */
bool sw_compare_fair(const struct sw_result *const *results, size_t count, size_t index);

/* Whether `index` has the best value of a metric in which being better means something (times,
 * utilisation), and some other result does not. */
bool sw_compare_best(const struct sw_result *const *results, size_t count, enum sw_metric metric, size_t index);

/* The result with the shortest average JCT among the fair ones, the first of equals; `count`
 * when nothing finished. */
size_t sw_compare_winner(const struct sw_result *const *results, size_t count);

/* What the others are held against: the policy "fifo", or else the fair one with the longest
 * average JCT; `count` when nothing finished. */
size_t sw_compare_baseline(const struct sw_result *const *results, size_t count);

#endif
