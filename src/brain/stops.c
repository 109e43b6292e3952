/* The last stop of a job: that its run was suspended, stopped or moved, by which user, for what,
 * and what comes next. It is for people (show, why) and for the job's own log.
 *
 * What is noted is part of the state, made by the records that stop the run. The words
 * are made when they are asked for: names of users are the driver's affair. Nothing is
 * decided by what stands here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brain/runs.h"
#include "brain/state.h"
#include "brain/stops.h"

void sw_stop_begin(struct sw_brain *brain, const json_t *body)
{
	const json_t *by = json_object_get(body, "by"), *job = json_object_get(body, "job");
	bool is_person = json_is_integer(by) && json_integer_value(by) >= 0; /* -1: the controller itself */
	brain->actor = is_person ? (uint32_t)json_integer_value(by) : SW_NOBODY;
	brain->acts_on = is_person ? (uint64_t)json_integer_value(job) : 0;
}

int sw_stop_note(struct sw_brain *brain, uint32_t id, enum sw_stop_kind kind, enum sw_stop_cause cause, uint64_t job)
{
	struct sw_live *live = &brain->jobs.items[id];
	bool by_person = brain->acts_on == id + UINT64_C(1);
	if (live->stop == NULL && (live->stop = malloc(sizeof *live->stop)) == NULL)
		return SW_ENOMEM;
	*live->stop = (struct sw_stop){
		.kind = (uint8_t)kind,
		.cause = (uint8_t)(by_person ? SW_STOPPED_BY_PERSON : cause),
		.by = by_person ? brain->actor : SW_NOBODY,
		.job = by_person ? 0 : job,
		.epoch = live->epoch,
		.at = brain->now,
		.until = kind == SW_STOP_MOVED ? brain->now : SW_TIME_NEVER,
	};
	return 0;
}

void sw_stop_name(struct sw_live *live, uint64_t job)
{
	if (live->stop != NULL && live->stop->cause == SW_STOPPED_BY_POLICY && live->stop->until == SW_TIME_NEVER)
		live->stop->job = job;
}

void sw_stop_end(const struct sw_brain *brain, struct sw_live *live)
{
	if (live->stop != NULL && live->stop->until == SW_TIME_NEVER)
		live->stop->until = brain->now;
}

void sw_stop_pack(struct sw_pack *pack, struct sw_live *live)
{
	bool has_stop = live->stop != NULL;
	sw_pack_bool(pack, &has_stop);
	if (!has_stop || pack->failed != 0)
		return;
	if (pack->reads)
		live->stop = calloc(1, sizeof *live->stop);
	struct sw_stop *stop = live->stop;
	if (stop == NULL) {
		pack->failed = SW_ENOMEM;
		return;
	}
	sw_pack_u8(pack, &stop->kind);
	sw_pack_u8(pack, &stop->cause);
	sw_pack_u32(pack, &stop->by);
	sw_pack_u32(pack, &stop->epoch);
	sw_pack_u64(pack, &stop->job);
	sw_pack_near(pack, &stop->at, live->submitted_at);
	sw_pack_near(pack, &stop->until, live->submitted_at);
	if (stop->kind > SW_STOP_MOVED || stop->cause > SW_STOPPED_BY_NODE)
		sw_pack_fail(pack);
}

/* ---- words */

char *sw_stop_user(const struct sw_brain *brain, uint32_t uid, char *text, size_t size)
{
	const char *name = brain->config.user_name != NULL ? brain->config.user_name(brain->config.user_context, uid) : NULL;
	if (name != NULL && name[0] != '\0')
		snprintf(text, size, "%.64s", name);
	else
		snprintf(text, size, "%" PRIu32, uid);
	return text;
}

/* "job 7 (guaranteed, user ann)", for the owner of a job that was stopped for it. Of another user's
 * job no more than lists of jobs show to all users: "job 7 (user ann)". */
static void name_job(const struct sw_brain *brain, uint64_t job, uint32_t viewer, char *text, size_t size)
{
	const struct sw_live *live = sw_brain_live(brain, job);
	char user[72];
	if (live == NULL) {
		snprintf(text, size, "job %" PRIu64, job);
		return;
	}
	bool guaranteed = sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(job - 1)})->job_class == SW_CLASS_GUARANTEED;
	const char *class_name = live->uid != viewer ? "" : guaranteed ? "guaranteed, " : "opportunistic, ";
	sw_stop_user(brain, live->uid, user, sizeof user);
	snprintf(text, size, "job %" PRIu64 " (%suser %s)", job, class_name, user);
}

static void say_by(const struct sw_brain *brain, const struct sw_live *live, char text[SW_STOP_WORDS])
{
	const struct sw_stop *stop = live->stop;
	char name[120];
	switch ((enum sw_stop_cause)stop->cause) {
	case SW_STOPPED_BY_PERSON:
		sw_stop_user(brain, stop->by, name, sizeof name);
		snprintf(text, SW_STOP_WORDS, "by %s %s", stop->by == live->uid ? "user" : "operator", name);
		break;
	case SW_STOPPED_BY_POLICY:
		name_job(brain, stop->job, live->uid, name, sizeof name);
		if (stop->job != 0)
			snprintf(text, SW_STOP_WORDS, "for %s", name);
		else
			snprintf(text, SW_STOP_WORDS, "by policy %s", sw_brain_policy(brain));
		break;
	case SW_STOPPED_BY_ANOTHER:
		snprintf(text, SW_STOP_WORDS, "since the GPU memory of another job could not leave its GPUs");
		break;
	case SW_STOPPED_BY_NODE:
		snprintf(text, SW_STOP_WORDS, "since its node was lost, or has other GPUs now");
		break;
	}
}

static void say_next(const struct sw_brain *brain, uint64_t id, char text[SW_STOP_WORDS])
{
	const struct sw_live *live = sw_brain_live(brain, id);
	bool stands = live->stop->kind == SW_STOP_SUSPENDED;
	uint64_t occupant = sw_brain_is_suspended(brain, live) ? sw_brain_occupant(brain, (uint32_t)(id - 1)) : 0;
	text[0] = '\0';
	if (live->stop->kind > SW_STOP_ANEW || live->stop->until != SW_TIME_NEVER)
		return;
	if (live->ended_at != SW_TIME_NEVER)
		snprintf(text, SW_STOP_WORDS, "it does not start again");
	else if (live->user_held)
		snprintf(text, SW_STOP_WORDS, "it %s after 'sharewell resume %" PRIu64 "'", stands ? "goes on" : "starts anew", id);
	else if (stands && occupant != 0)
		snprintf(text, SW_STOP_WORDS, "it goes on when job %" PRIu64 " ends or makes way", occupant);
	else
		snprintf(text, SW_STOP_WORDS,
			 stands ? "it goes on when the policy chooses it again" : "it starts anew when there are GPUs for it");
}

bool sw_brain_stop(const struct sw_brain *brain, uint64_t id, struct sw_stop_view *ret_view)
{
	static const char *const kinds[] = {"suspended", "stopped", "cancelled", "moved"};
	static const char *const causes[] = {"user", "policy", "policy", "node"};
	const struct sw_live *live = sw_brain_live(brain, id);
	const struct sw_stop *stop = live != NULL ? live->stop : NULL;
	if (stop == NULL)
		return false;
	bool is_operator = stop->cause == SW_STOPPED_BY_PERSON && stop->by != live->uid;
	*ret_view = (struct sw_stop_view){
		.kind = kinds[stop->kind],
		.by = is_operator ? "operator" : causes[stop->cause],
		.uid = stop->by,
		.job = stop->job,
		.at = stop->at,
		.until = stop->until,
	};
	say_by(brain, live, ret_view->why);
	say_next(brain, id, ret_view->next);
	return true;
}

char *sw_stop_order_words(const struct sw_brain *brain, struct sw_run_id run, char text[SW_SYNC_WHY_MAX + 1])
{
	struct sw_stop_view view;
	const struct sw_live *live = sw_brain_live(brain, run.job);
	if (live == NULL || live->stop == NULL || live->stop->epoch != run.epoch || !sw_brain_stop(brain, run.job, &view))
		return NULL;
	snprintf(text, SW_SYNC_WHY_MAX + 1, "%.180s%s%s%.100s", view.why, live->stop->kind == SW_STOP_CANCELLED ? " (cancel)" : "",
		 view.next[0] != '\0' ? ": " : "", view.next);
	return text;
}
