#include "system.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_state.h"

#define PEACE_NS (INT64_C(4) * 3600 * SW_NS_PER_S)

void sw_system_broke(struct system *s, const char *what, uint64_t job)
{
	if (s->broken == 0)
		s->broken = sw_err_set(s->err, SW_EBUG, "%s (job %llu) at %lld ms", what, (unsigned long long)job,
				       (long long)(s->now_ns / SW_NS_PER_MS));
}

void sw_system_check(struct system *s, int r, const char *what)
{
	if (r < 0)
		sw_system_broke(s, what, 0);
}

/* ---- network */

static bool is_cut_off(const struct system *s, uint32_t node)
{
	return s->now_ns < s->machines[node].cut_off_until_ns;
}

static void put_message(struct system *s, const struct message *message, const char *text, size_t size)
{
	if (s->message_count == MESSAGES_MAX)
		return; /* lost, like any other */
	struct message *slot = &s->messages[s->message_count++];
	*slot = *message;
	slot->text = malloc(size + 1);
	memcpy(slot->text, text, size);
	slot->size = size;
	slot->order = s->order++;
	slot->at_ns = s->now_ns + 100000 + (int64_t)sw_rng_below(&s->rng, (uint64_t)(storms(s) ? s->plan->delay_max_ns : SW_NS_PER_MS) + 1);
	s->score.messages++;
}

void sw_system_post(struct system *s, struct message message, const char *text, size_t size)
{
	if (is_cut_off(s, message.node) || (storms(s) && chance(s, s->plan->lose_milli)))
		return;
	put_message(s, &message, text, size);
	if (storms(s) && chance(s, s->plan->repeat_milli))
		put_message(s, &message, text, size);
}

/* ---- misfortune */

static void kill_a_supervisor(struct system *s, struct machine *machine)
{
	for (size_t p = 0; p < machine->process_count; p++) {
		struct process *process = &machine->processes[p];
		if (process->alive && chance(s, 300)) {
			process->alive = false; /* and its process with it; nothing is written down */
			if (machine->brain != NULL)
				sw_agent_brain_lost(machine->brain, process->id, true);
			s->score.crashes++;
			return;
		}
	}
}

static void misfortune(struct system *s)
{
	if (!storms(s))
		return;
	if (s->brain != NULL && sw_rng_below(&s->when_to_snapshot, 100) < 3)
		sw_system_controller_snapshots(s);
	if (s->plan->crash_controller && s->brain != NULL && chance(s, 8))
		sw_system_controller_dies(s);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		struct machine *machine = &s->machines[n];
		if (s->plan->crash_agents && machine->brain != NULL && chance(s, 8)) {
			sw_agent_brain_free(machine->brain);
			machine->brain = NULL;
			machine->back_at_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 70) * outage_second(s);
			s->score.crashes++;
		}
		if (s->plan->partitions && !is_cut_off(s, n) && chance(s, 5))
			machine->cut_off_until_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 90) * outage_second(s);
		if (s->plan->kill_supervisors && chance(s, 8))
			kill_a_supervisor(s, machine);
	}
}

/* What happens to a job whose node is lost, as fields of its request. */
static const char *draw_fate(struct system *s, char *text, size_t size)
{
	if (sw_rng_below(&s->fates, 1000) < s->plan->restart_milli)
		snprintf(text, size, ", \"on_lost\": \"restart\", \"lease\": %u, \"grace\": %u", 5 + (unsigned)sw_rng_below(&s->fates, 120),
			 1 + (unsigned)sw_rng_below(&s->fates, 20));
	else
		snprintf(text, size, "%s", sw_rng_below(&s->fates, 2) == 0 ? "" : ", \"on_lost\": \"wait\"");
	return text;
}

static void submit_some(struct system *s)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	while (s->brain != NULL && s->submitted < s->plan->jobs && chance(s, 400)) {
		char json[400], fate[80];
		/* Gangs over two nodes where there are two. */
		uint32_t gpus = 1 + (uint32_t)sw_rng_below(&s->rng, s->plan->nodes > 1 && chance(s, 100) ? 2 * GPUS
								    : chance(s, 500)			 ? 1
													 : GPUS);
		bool elastic = gpus <= GPUS && chance(s, 300);
		unsigned gib = chance(s, 150) ? 0 : 5u << sw_rng_below(&s->rng, 4);
		snprintf(json, sizeof json,
			 "{\"command\": [\"job\"], \"gpus\": %u, \"min_gpus\": %u, \"max_gpus\": %u, \"retries\": %u, "
			 "\"gpu_memory\": \"%uGiB\", \"preempt\": \"%s\", \"expected\": %u%s}",
			 gpus, elastic ? 1 : gpus, elastic ? GPUS : gpus, (unsigned)sw_rng_below(&s->rng, 2), gib,
			 chance(s, 600)	  ? "suspend"
			 : chance(s, 600) ? "requeue"
					  : "never",
			 1 + (unsigned)sw_rng_below(&s->rng, 90), draw_fate(s, fate, sizeof fate));
		struct sw_job_request *request = NULL;
		sw_records records = {0};
		uint64_t job = 0;
		s->submitted++;
		sw_system_check(s, sw_job_request_decode("test", json, strlen(json), &request, s->err), "a request cannot be read");
		if (request != NULL && sw_brain_propose_submit(s->brain, &user, request, &records, NULL) == 0) {
			s->codes[(s->journal.count + 1) % JOBS_MAX] = 0;
			sw_system_commit(s, &records, &job);
			s->memory[job % JOBS_MAX] = request->gpu_memory_bytes;
			s->leases_ms[job % JOBS_MAX] = request->lease_ns / SW_NS_PER_MS;
			s->codes[job % JOBS_MAX] = chance(s, 200) ? 1 + (uint32_t)sw_rng_below(&s->rng, 200) : 0;
			s->score.jobs_acknowledged++;
		}
		sw_job_request_free(request);
	}
}

/* Suspends the first job from this one on that can be suspended so that its GPUs forget it:
 * few can at any moment. */
static void propose_deep(struct system *s, uint64_t job)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	sw_records records = {0};
	for (; job <= sw_brain_job_count(s->brain); job++)
		if (sw_brain_propose_deep(s->brain, &user, job, &records, NULL) == 0) {
			sw_system_commit(s, &records, NULL);
			return;
		}
}

static void propose_change(struct system *s, enum sw_record_kind kind, uint64_t job)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	sw_records records = {0};
	if (kind == SW_RECORD_HOLD && chance(s, 500))
		propose_deep(s, job);
	else if (sw_brain_propose_change(s->brain, &user, kind, "change", job, &records, NULL) == 0)
		sw_system_commit(s, &records, NULL);
}

/* Several at once, among them some that have ended, and one maybe twice. */
static void propose_changes(struct system *s, enum sw_record_kind kind, const uint64_t *jobs, size_t count)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	/* A hold of several leaves runs alone, or stops them for certain. */
	bool hold = kind == SW_RECORD_HOLD, leaves = hold && chance(s, 300);
	const struct sw_change change = {.kind = kind, .verb = "change", .skips_ended = true, .leaves = leaves, .force = hold && !leaves};
	sw_records records = {0};
	sw_system_check(s, sw_brain_propose_changes(s->brain, &user, &change, jobs, count, &records, s->err), "changes are refused");
	sw_system_commit(s, &records, NULL);
}

static void propose_move(struct system *s, uint64_t job)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	sw_records records = {0};
	uint64_t mask = chance(s, 500) ? 0 : 1 + sw_rng_below(&s->rng, (1u << GPUS) - 1);
	if (sw_brain_propose_move(s->brain, &user, job, mask, &records, NULL) == 0)
		sw_system_commit(s, &records, NULL);
}

static void put_in_charge(struct system *s, const char *policy, const char *setting)
{
	static const struct sw_user user = {.is_operator = true};
	sw_records records = {0};
	sw_system_check(s, sw_brain_propose_policy(s->brain, &user, policy, &setting, setting != NULL, &records, s->err),
			"a policy is refused");
	sw_system_commit(s, &records, NULL);
}

/* An operator gives up a node, if it does not answer. */
static void remove_a_node(struct system *s)
{
	static const struct sw_user user = {.is_operator = true};
	sw_records records = {0};
	char name[16];
	snprintf(name, sizeof name, "n%u", (unsigned)sw_rng_below(&s->fates, s->plan->nodes));
	if (sw_brain_propose_remove(s->brain, &user, name, "gone", &records, NULL) < 0)
		return;
	sw_system_commit(s, &records, NULL);
	s->score.removals++;
}

/* Users suspend, resume, requeue and cancel; after the storm they let everything go. */
static void meddle(struct system *s)
{
	uint64_t jobs = s->brain != NULL ? sw_brain_job_count(s->brain) : 0;
	if (jobs == 0)
		return;
	if (s->journal.count < 40 && chance(s, 100)) { /* early, and again after some crashes */
		static const char *const names[] = {"las", "srtf", "chaos", "gandiva", "fifo"}, *const settings[] = {"thresholds=15,60",
														     NULL, "manners=100",
														     "quantum=5s", NULL};
		put_in_charge(s, names[s->plan->policy], settings[s->plan->policy]);
	}
	if (storms(s) && s->plan->removes && sw_rng_below(&s->fates, 100) == 0)
		remove_a_node(s);
	if (storms(s) && s->plan->meddling && chance(s, 200))
		propose_move(s, 1 + sw_rng_below(&s->rng, jobs));
	if (storms(s) && s->plan->meddling && chance(s, 60)) {
		static const enum sw_record_kind kinds[] = {SW_RECORD_HOLD,    SW_RECORD_HOLD,	  SW_RECORD_RELEASE,
							    SW_RECORD_RELEASE, SW_RECORD_REQUEUE, SW_RECORD_CANCEL};
		enum sw_record_kind kind = kinds[sw_rng_below(&s->rng, 6)];
		uint64_t some[5];
		size_t count = 1 + sw_rng_below(&s->rng, 5);
		for (size_t i = 0; i < count; i++) {
			some[i] = 1 + sw_rng_below(&s->rng, jobs);
			s->cancelled[some[i] % JOBS_MAX] |= kind == SW_RECORD_CANCEL;
		}
		if (count == 1)
			propose_change(s, kind, some[0]);
		else
			propose_changes(s, kind, some, count);
	}
	if (!storms(s) && !s->is_calm) {
		uint64_t all[JOBS_MAX];
		s->is_calm = true;
		for (uint64_t job = 1; job <= jobs; job++)
			all[job - 1] = job;
		propose_changes(s, SW_RECORD_RELEASE, all, jobs);
		if (s->plan->policy == SW_SYSTEM_CHAOS)
			put_in_charge(s, "fifo", NULL);
	}
}

/* ---- living */

static void deliver(struct system *s)
{
	for (;;) {
		size_t next = SIZE_MAX;
		for (size_t m = 0; m < s->message_count; m++)
			if (s->messages[m].at_ns <= s->now_ns &&
			    (next == SIZE_MAX || s->messages[m].at_ns < s->messages[next].at_ns ||
			     (s->messages[m].at_ns == s->messages[next].at_ns && s->messages[m].order < s->messages[next].order)))
				next = m;
		if (next == SIZE_MAX)
			return;
		struct message message = s->messages[next];
		s->messages[next] = s->messages[--s->message_count];
		if (message.to_controller)
			sw_system_controller_hears(s, &message);
		else
			sw_system_agent_hears(s, &message);
		free(message.text);
	}
}

static bool all_ended(struct system *s)
{
	if (s->brain == NULL || s->submitted < s->plan->jobs)
		return false;
	for (uint64_t job = 1; job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		if (sw_brain_job(s->brain, s->now_ns, job, &view) && view.ended_at == SW_TIME_NEVER)
			return false;
	}
	return true;
}

/* A job that completed did so because its process said 0; one that failed has the code that
 * its process gave. Both came to their own end: what a job would have said that was ended
 * from outside is not known. */
static void check_ends(struct system *s)
{
	if (sw_brain_job_count(s->brain) < s->score.jobs_acknowledged)
		sw_system_broke(s, "an acknowledged job is gone", 0);
	for (uint64_t job = 1; job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		sw_brain_job(s->brain, s->now_ns, job, &view);
		uint32_t truth = s->codes[job % JOBS_MAX];
		if (strcmp(view.state, "CD") == 0 && truth != 0)
			sw_system_broke(s, "a failed job counts as completed", job);
		/* By the policy in charge, when it came: it has never been given GPUs. */
		bool refused = s->plan->policy == SW_SYSTEM_CHAOS && strcmp(view.state, "F") == 0 && view.epoch == 0;
		if (strcmp(view.state, "F") == 0 && !refused && (view.signal != 0 || (uint32_t)view.code != truth))
			sw_system_broke(s, "a job has a wrong exit code", job);
		bool lost = strcmp(view.state, "NF") == 0 && s->score.removals > 0 && s->leases_ms[job % JOBS_MAX] == 0;
		s->score.lost += lost;
		if (lost || refused)
			continue;
		if (strcmp(view.state, "CA") != 0 && !s->ended[job % JOBS_MAX])
			sw_system_broke(s, "a job counts as ended that never came to its end", job);
		if (strcmp(view.state, "CD") != 0 && strcmp(view.state, "F") != 0 &&
		    !(strcmp(view.state, "CA") == 0 && s->cancelled[job % JOBS_MAX]))
			sw_system_broke(s, "a job ended in a state that was not asked for", job);
	}
}

/* After the storm all GPUs are put back. */
static void make_whole(struct system *s, struct machine *machine)
{
	if (storms(s) || machine->brain == NULL || machine->present == ALL_GPUS)
		return;
	sw_agent_brain_free(machine->brain);
	machine->brain = NULL;
	machine->back_at_ns = s->now_ns;
}

static void turn(struct system *s)
{
	misfortune(s);
	if (s->brain == NULL && s->now_ns >= s->controller_back_at_ns)
		sw_system_controller_starts(s);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		sw_system_processes_turn(s, &s->machines[n]);
		make_whole(s, &s->machines[n]);
		if (s->machines[n].brain == NULL && s->now_ns >= s->machines[n].back_at_ns)
			sw_system_agent_starts(s, n);
	}
	submit_some(s);
	meddle(s);
	/* Several rounds a turn, so that words and answers meet within it. */
	for (int rounds = 0; rounds < 4 && s->broken == 0; rounds++) {
		deliver(s);
		sw_system_controller_turn(s);
		for (uint32_t n = 0; n < s->plan->nodes; n++)
			sw_system_agent_turn(s, n);
		s->now_ns += SW_NS_PER_MS;
	}
	if (s->brain != NULL && s->broken == 0 && chance(s, 50))
		sw_system_check(s, sw_brain_validate(s->brain, s->err), "the controller's brain is unsound");
}

static void clean_up(struct system *s)
{
	for (size_t m = 0; m < s->message_count; m++)
		free(s->messages[m].text);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		if (s->machines[n].brain != NULL)
			sw_agent_brain_free(s->machines[n].brain);
		if (s->machines[n].parked.waits)
			sw_sync_free(s->machines[n].parked.sync);
	}
	if (s->brain != NULL)
		sw_brain_free(s->brain);
	for (size_t r = 0; r < s->journal.count; r++)
		free(s->journal.items[r].record.body);
	sw_vec_free(&s->journal);
	free(s->snapshot);
	free(s);
}

struct sw_system_plan sw_system_draw(uint64_t seed)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed ^ UINT64_C(0x5e5));
	return (struct sw_system_plan){
		.seed = seed,
		.nodes = 1 + (uint32_t)sw_rng_below(&rng, NODES_MAX),
		.jobs = 5 + (uint32_t)sw_rng_below(&rng, 40),
		.storm_ns = (60 + (int64_t)sw_rng_below(&rng, 900)) * SW_NS_PER_S,
		.lose_milli = (uint32_t)sw_rng_below(&rng, 4) * 100,
		.repeat_milli = (uint32_t)sw_rng_below(&rng, 4) * 100,
		.delay_max_ns = (int64_t)sw_rng_below(&rng, 3) * 4 * SW_NS_PER_S + SW_NS_PER_MS,
		.crash_controller = sw_rng_below(&rng, 2) == 0,
		.crash_agents = sw_rng_below(&rng, 2) == 0,
		.kill_supervisors = sw_rng_below(&rng, 2) == 0,
		.partitions = sw_rng_below(&rng, 2) == 0,
		.meddling = sw_rng_below(&rng, 2) == 0,
		.policy = (enum sw_system_policy)sw_rng_below(&rng, 4),
		.refits = seed % 3 == 0,
		.removes = seed % 5 == 0,
		.restart_milli = (uint32_t)(seed % 3) * 400,
		.outage_max_ns = (90 + (int64_t)(seed % 4) * 600) * SW_NS_PER_S,
	};
}

int sw_system_live(const struct sw_system_plan *plan, struct sw_system_score *ret_score, struct sw_err *err)
{
	struct system *s = calloc(1, sizeof *s);
	if (s == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	s->plan = plan;
	s->err = err;
	s->now_ns = 1000 * SW_NS_PER_S;
	s->storm_ends_ns = s->now_ns + plan->storm_ns;
	sw_rng_seed(&s->rng, plan->seed);
	sw_rng_seed(&s->when_to_snapshot, plan->seed + 1);
	sw_rng_seed(&s->which_gpus, plan->seed + 2);
	sw_rng_seed(&s->fates, plan->seed + 3);
	for (uint32_t n = 0; n < plan->nodes; n++)
		s->machines[n].clock_ahead_ns = (int64_t)sw_rng_below(&s->rng, 1000000) * SW_NS_PER_S;
	while (s->broken == 0 && !(s->now_ns > s->storm_ends_ns && all_ended(s)) && s->now_ns < s->storm_ends_ns + PEACE_NS) {
		turn(s);
		s->now_ns += 250 * SW_NS_PER_MS;
	}
	for (uint64_t job = 1; s->broken == 0 && s->brain != NULL && job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		char why[200];
		if (!sw_brain_job(s->brain, s->now_ns, job, &view) || view.ended_at != SW_TIME_NEVER)
			continue;
		sw_brain_explain(s->brain, s->now_ns, job, why, sizeof why);
		sw_system_broke(s, "a job never ended", job);
		sw_err_detail(err, "state %s, epoch %u: %s", view.state, view.epoch, why);
	}
	if (s->broken == 0) {
		check_ends(s);
		sw_system_check(s, sw_brain_validate(s->brain, err), "the controller's brain is unsound");
	}
	int r = s->broken;
	s->score.ended_after_ns = s->now_ns - 1000 * SW_NS_PER_S;
	*ret_score = s->score;
	clean_up(s);
	return r;
}
