#include "sim/fairness.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/number.h"

struct service {
	double span, work; /* GPU seconds: from submit to end, and of work */
};

static double slowdown(const struct sw_outcome *outcome)
{
	int64_t work_ns = outcome->work_ns > SW_FAIRNESS_SHORT_NS ? outcome->work_ns : SW_FAIRNESS_SHORT_NS;
	int64_t span_ns = outcome->end_ns - outcome->submit_ns;
	return span_ns > work_ns ? (double)span_ns / (double)work_ns : 1;
}

static void serve(struct service *service, const struct sw_outcome *outcome)
{
	service->span += (double)(outcome->end_ns - outcome->submit_ns) / SW_NS_PER_S * outcome->gpus;
	service->work += (double)outcome->work_ns / SW_NS_PER_S * outcome->gpus;
}

/* Jain's index over the tenants' slowdowns, and the worst of them relative to the cluster's. */
static void compare_tenants(const struct service *tenants, size_t count, const struct service *all, struct sw_summary *summary)
{
	double sum = 0, squares = 0, worst = 0;
	for (size_t i = 0; i < count; i++) {
		if (tenants[i].work <= 0)
			continue;
		double slow = tenants[i].span / tenants[i].work;
		sum += slow;
		squares += slow * slow;
		worst = slow > worst ? slow : worst;
		summary->tenants++;
	}
	if (summary->tenants == 0)
		return;
	summary->tenants_jain = sum * sum / ((double)summary->tenants * squares);
	summary->tenants_worst = worst / (all->span / all->work);
}

int sw_fairness_summarise(const struct sw_result *result, struct sw_summary *summary)
{
	uint32_t last = 0;
	for (size_t i = 0; i < result->outcomes.count; i++)
		last = result->outcomes.items[i].tenant > last ? result->outcomes.items[i].tenant : last;
	SW_CLEANUP(sw_freep) struct service *tenants = calloc((size_t)last + 1, sizeof *tenants);
	if (tenants == NULL)
		return SW_ENOMEM;
	struct service all = {0, 0};
	for (size_t i = 0; i < result->outcomes.count; i++) {
		const struct sw_outcome *outcome = &result->outcomes.items[i];
		if (outcome->state != SW_OUTCOME_FINISHED || outcome->work_ns <= 0)
			continue; /* the work of recorded jobs is not known */
		double slow = slowdown(outcome);
		summary->slowdown_worst = slow > summary->slowdown_worst ? slow : summary->slowdown_worst;
		serve(&tenants[outcome->tenant], outcome);
		serve(&all, outcome);
	}
	compare_tenants(tenants, (size_t)last + 1, &all, summary);
	summary->gpu_work = result->gpu_up_s > 0 ? all.work / result->gpu_up_s : 0;
	return 0;
}
