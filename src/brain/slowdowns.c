/* What the cluster learns of jobs that share a GPU. Every slowdown that was measured beside others
 * corrects what is predicted (contention/learn.h), for policies and for people. The profiles of all
 * of the jobs must be known.
 *
 * Policies decide by it, so it is state like all else. It follows from the records of speeds while
 * they are applied, live or from the journal, and is a part of the snapshot.
 *
 *  1. Lessons are taken in together: the regression is made anew at most once in LEARN_NS
 *     of the journal's time, or for every SW_LESSONS_MAX of them. The caller, and the
 *     moment, change nothing.
 *  2. Nothing is learned, or predicted, of jobs that do not share all of their GPUs, and of paused
 *     ones. Nor is it of several guaranteed jobs with others beside them.
 */
#include "brain/slowdowns.h"
#include "base/number.h"
#include "brain/state.h"
#include "contention/crowd.h"

#define LEARN_NS (5 * SW_NS_PER_S)
/* What the runtime's smoothed figure is worth: so many iterations have passed since its
 * neighbours were others. */
#define STEPS 32u

/* ---- which jobs share with which */

static const struct sw_job *job_of(const struct sw_brain *brain, uint64_t id)
{
	return sw_engine_job(brain->engine, (struct sw_job_id){(uint32_t)(id - 1)});
}

static bool share_all(const struct sw_brain *brain, const struct sw_live *a, const struct sw_live *b)
{
	return b != NULL && a->run_count == 1 && b->run_count == 1 && a->runs[0].node == b->runs[0].node &&
	       a->runs[0].mask == b->runs[0].mask && !sw_brain_is_suspended(brain, a) && !sw_brain_is_suspended(brain, b);
}

/* The job and the others, guaranteed ones first. NULL, or why nothing can be told of them. */
static const char *gather(const struct sw_brain *brain, uint64_t id, const uint64_t *others, size_t count, struct sw_lesson *ret_lesson)
{
	const struct sw_live *own = sw_brain_live(brain, id);
	struct sw_lesson lesson = {.count = 0};
	size_t guaranteed = 0;
	if (brain->profiles == NULL || own == NULL)
		return "not predicted";
	if (count + 1 > SW_LEARN_JOBS_MAX)
		return "too many jobs: not predicted";
	if (job_of(brain, id)->paused)
		return "paused: not predicted";
	if (count == 0)
		return "the others are paused: not predicted";
	for (int job_class = SW_CLASS_GUARANTEED; job_class <= SW_CLASS_OPPORTUNISTIC; job_class++)
		for (size_t i = 0; i <= count; i++) {
			uint64_t one = i < count ? others[i] : id;
			if (!share_all(brain, own, sw_brain_live(brain, one)))
				return "not all GPUs are shared: not predicted";
			const struct sw_job *job = job_of(brain, one);
			if (sw_profiles_by_number(brain->profiles, job->model)->is_default)
				return "no profile: not predicted";
			if (job->job_class != job_class)
				continue;
			if (i == count)
				lesson.which = lesson.count;
			lesson.models[lesson.count++] = job->model;
			guaranteed += job_class == SW_CLASS_GUARANTEED;
		}
	if (guaranteed > 1 && guaranteed <= count)
		return "several guaranteed jobs and others: not predicted";
	lesson.way = guaranteed == 1 ? SW_WAY_GATE : SW_WAY_SLICES;
	*ret_lesson = lesson;
	return NULL;
}

/* False: a profile is there no longer. */
static bool name_models(const struct sw_brain *brain, const struct sw_lesson *lesson, const char *names[SW_LEARN_JOBS_MAX],
			struct sw_learn_case *ret_case)
{
	for (uint32_t i = 0; i < lesson->count; i++) {
		const struct sw_profile *profile = sw_profiles_by_number(brain->profiles, lesson->models[i]);
		if (profile->is_default)
			return false;
		names[i] = profile->name;
	}
	*ret_case = (struct sw_learn_case){(enum sw_predict_way)lesson->way, names, lesson->count, lesson->which};
	return true;
}

const char *sw_brain_predict(const struct sw_brain *brain, uint64_t id, const uint64_t *others, size_t count,
			     struct sw_learn_answer *ret_answer)
{
	struct sw_lesson lesson;
	struct sw_learn_case about;
	const char *names[SW_LEARN_JOBS_MAX];
	const char *why_not = gather(brain, id, others, count, &lesson);
	if (why_not == NULL && name_models(brain, &lesson, names, &about))
		sw_learn_ask(brain->learn, &about, ret_answer);
	return why_not;
}

struct sw_learn *sw_brain_learned(const struct sw_brain *brain)
{
	return brain->learn;
}

/* ---- learning */

/* Whether the others are those that work on the job's GPUs now. When a job left, the class of those
 * that stay may be another already. */
static bool are_there(const struct sw_brain *brain, uint64_t id, const struct sw_sync_jobs *others)
{
	struct sw_neighbour_view neighbours[SW_SYNC_JOBS_LISTED];
	size_t count = sw_brain_neighbours(brain, id, neighbours, SW_SYNC_JOBS_LISTED), met = 0;
	bool same = count <= SW_SYNC_JOBS_LISTED;
	for (size_t i = 0; same && i < count; i++)
		if (!neighbours[i].paused) {
			same = met < others->count && neighbours[i].job == others->items[met];
			met++;
		}
	return same && met == others->count;
}

static void take_in(struct sw_brain *brain)
{
	for (uint32_t i = 0; i < brain->lesson_count; i++) {
		struct sw_learn_case about;
		const char *names[SW_LEARN_JOBS_MAX];
		/* What cannot be a slowdown is refused, and that is all there is to it. */
		if (name_models(brain, &brain->lessons[i], names, &about))
			(void)sw_learn_add(brain->learn, &about, brain->lessons[i].slow_milli, STEPS, NULL);
	}
	brain->lesson_count = 0;
	brain->learned_at = brain->now;
	sw_crowd_forget(brain->crowd);
}

void sw_brain_observe(struct sw_brain *brain, uint64_t id)
{
	struct sw_speed_view speed;
	struct sw_lesson lesson;
	if (!sw_brain_speed(brain, id, &speed) || speed.slow_milli == 0 || speed.beside.count == 0 ||
	    !are_there(brain, id, &speed.beside) || gather(brain, id, speed.beside.items, speed.beside.count, &lesson) != NULL)
		return;
	if (brain->lesson_count == SW_LESSONS_MAX)
		take_in(brain);
	lesson.slow_milli = speed.slow_milli;
	brain->lessons[brain->lesson_count++] = lesson;
}

sw_ns sw_brain_learns_at(const struct sw_brain *brain)
{
	return brain->lesson_count > 0 ? brain->learned_at + LEARN_NS : SW_TIME_NEVER;
}

void sw_brain_learn(struct sw_brain *brain)
{
	if (sw_brain_learns_at(brain) <= brain->now)
		take_in(brain);
}

/* ---- as bytes */

static void pack_lesson(struct sw_pack *pack, struct sw_lesson *lesson)
{
	sw_pack_u8(pack, &lesson->way);
	sw_pack_u8(pack, &lesson->count);
	sw_pack_u8(pack, &lesson->which);
	sw_pack_u32(pack, &lesson->slow_milli);
	if (lesson->way >= SW_WAY_COUNT || lesson->count > SW_LEARN_JOBS_MAX || lesson->which >= lesson->count)
		sw_pack_fail(pack);
	for (uint32_t i = 0; i < lesson->count && pack->failed == 0; i++)
		sw_pack_u32(pack, &lesson->models[i]);
}

void sw_brain_pack_learned(struct sw_pack *pack, struct sw_brain *brain)
{
	sw_learn_pack(pack, brain->learn);
	sw_pack_near(pack, &brain->learned_at, brain->now);
	sw_pack_u32(pack, &brain->lesson_count);
	if (brain->lesson_count > SW_LESSONS_MAX || brain->learned_at > brain->now)
		sw_pack_fail(pack);
	for (uint32_t i = 0; i < brain->lesson_count && pack->failed == 0; i++)
		pack_lesson(pack, &brain->lessons[i]);
	/* A brain without profiles learns nothing more. */
	if (pack->reads && brain->profiles == NULL)
		brain->lesson_count = 0;
}
