/* What the cluster has learned of jobs that share a GPU: every slowdown that was measured beside others, where the profiles of all of them are known, corrects what is predicted
 * (src/contention/learn.h).
 *
 * Figures for people: nothing that decides. So it is no part of the brain, and a record counts once, when it is new, and not when the journal is read again. What was learned is kept in a file of
 * its own beside the journal, written at most once a minute and at the end: a crash costs the measurements of a minute. A file that cannot be read is set aside, and learning starts anew.
 *
 * The model of a job is the one that it was submitted with or that was found then (models.c), else its name, as far as there is a profile. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "controller/server_state.h"

#define SAVE_S 60
#define LARGEST_FILE ((size_t)4 << 20)
/* What the runtime's smoothed figure is worth: so many iterations have passed since its neighbours were others. */
#define STEPS 32u

/* ---- who shares with whom */

/* Jobs on the same GPUs; the one that is meant is among them. */
struct company {
	const char *models[SW_LEARN_JOBS_MAX]; /* guaranteed ones first */
	size_t count, which;
	enum sw_predict_way way;
};

/* NULL: there is none. */
static const struct sw_profile *profile_of(const struct sw_server *server, const struct sw_job_view *view)
{
	const struct sw_profile *profile = sw_profiles_find(server->models.profiles, view->model);
	return profile->is_default ? NULL : profile;
}

static bool share_all(const struct sw_job_view *a, const struct sw_job_view *b)
{
	bool on_one_node = a->gpus == (uint32_t)__builtin_popcountll(a->gpu_mask) && b->gpus == (uint32_t)__builtin_popcountll(b->gpu_mask);
	return on_one_node && a->gpu_mask == b->gpu_mask && strcmp(a->node, b->node) == 0;
}

/* NULL, or why nothing can be told of them. */
static const char *gather(struct sw_server *server, uint64_t id, const uint64_t *others, size_t count, struct company *ret_company)
{
	struct sw_job_view own, views[SW_LEARN_JOBS_MAX];
	size_t guaranteed = 0;
	int64_t now_ns = sw_server_now(server);
	*ret_company = (struct company){0};
	if (count + 1 > SW_LEARN_JOBS_MAX)
		return "too many jobs: not predicted";
	if (!sw_brain_job(server->brain, now_ns, id, &own))
		return "not predicted";
	if (own.is_paused)
		return "paused: not predicted";
	if (count == 0)
		return "the others are paused: not predicted";
	for (size_t i = 0; i <= count; i++) {
		if (!sw_brain_job(server->brain, now_ns, i < count ? others[i] : id, &views[i]) || !share_all(&own, &views[i]))
			return "not all GPUs are shared: not predicted";
		if (profile_of(server, &views[i]) == NULL)
			return "no profile: not predicted";
		guaranteed += !views[i].is_opportunistic;
	}
	for (int opportunistic = 0; opportunistic < 2; opportunistic++)
		for (size_t i = 0; i <= count; i++) {
			if (views[i].is_opportunistic != (opportunistic == 1))
				continue;
			if (i == count)
				ret_company->which = ret_company->count;
			ret_company->models[ret_company->count++] = profile_of(server, &views[i])->name;
		}
	if (guaranteed > 1 && guaranteed <= count)
		return "several guaranteed jobs and others: not predicted";
	ret_company->way = guaranteed == 1 ? SW_WAY_GATE : SW_WAY_SLICES;
	return NULL;
}

static struct sw_learn_case case_of(const struct company *company)
{
	return (struct sw_learn_case){company->way, company->models, company->count, company->which};
}

uint32_t sw_learned_predict(struct sw_server *server, uint64_t id, const uint64_t *others, size_t count, const char **ret_why_not)
{
	struct company company;
	struct sw_learn_answer answer;
	*ret_why_not = gather(server, id, others, count, &company);
	if (*ret_why_not != NULL)
		return 0;
	const struct sw_learn_case about = case_of(&company);
	sw_learn_ask(server->learned.learn, &about, &answer);
	return answer.slow_milli;
}

/* ---- learning */

/* Whether the others are those who work on the job's GPUs now: when somebody left, the class of who stays may be another already. */
static bool are_there(const struct sw_server *server, uint64_t id, const struct sw_sync_jobs *others)
{
	struct sw_neighbour_view neighbours[SW_SYNC_JOBS_LISTED];
	size_t count = sw_brain_neighbours(server->brain, id, neighbours, SW_SYNC_JOBS_LISTED), met = 0;
	bool same = count <= SW_SYNC_JOBS_LISTED;
	for (size_t i = 0; same && i < count; i++)
		if (!neighbours[i].paused) {
			same = met < others->count && neighbours[i].job == others->items[met];
			met++;
		}
	return same && met == others->count;
}

static void learn_from(struct sw_server *server, uint64_t id)
{
	struct sw_speed_view speed;
	struct company company;
	if (!sw_brain_speed(server->brain, id, &speed) || speed.slow_milli == 0 || speed.beside.count == 0 ||
	    !are_there(server, id, &speed.beside) || gather(server, id, speed.beside.items, speed.beside.count, &company) != NULL)
		return;
	const struct sw_learn_case about = case_of(&company);
	/* What cannot be a slowdown is refused, and that is all there is to it. */
	if (sw_learn_add(server->learned.learn, &about, speed.slow_milli, STEPS, NULL) == 0 && !server->learned.dirty) {
		server->learned.dirty = true;
		evtimer_add(server->learned.timer, &(struct timeval){.tv_sec = SAVE_S});
	}
}

void sw_learned_note(struct sw_server *server, const char *body, size_t size)
{
	json_t *record = json_loadb(body, size, 0, NULL), *speed;
	size_t i;
	json_array_foreach(json_object_get(record, "speeds"), i, speed)
		learn_from(server, (uint64_t)json_integer_value(json_object_get(speed, "job")));
	json_decref(record);
}

/* ---- the file */

static int write_file(const char *path, const char *text, struct sw_err *err)
{
	SW_CLEANUP(sw_output_discardp) struct sw_output *output = NULL;
	int r = sw_output_open(path, &output, err);
	if (r < 0)
		return r;
	fputs(text, sw_output_stream(output));
	return sw_output_commit(SW_TAKE(output), err);
}

static void save(struct sw_server *server)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	struct sw_err err = {0};
	if (!server->learned.dirty || !server->learned.keeps)
		return;
	int r = sw_learn_write(server->learned.learn, &text, &err);
	if (r == 0)
		r = write_file(server->options->slowdowns_path, text, &err);
	if (r < 0)
		sw_server_note(server, "measured slowdowns are not kept: %s%s%s", err.fact, err.detail[0] != '\0' ? ": " : "", err.detail);
	server->learned.dirty = false;
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	(void)fd;
	(void)what;
	struct sw_server *server = user;
	SW_HOLDS_LOOP(server);
	save(server);
}

/* It is kept under another name, for somebody to look at; one that was set aside before is not overwritten. */
static void set_aside(struct sw_server *server, const struct sw_err *err)
{
	const char *path = server->options->slowdowns_path;
	char other[4200] = "";
	int n = 1;
	do {
		snprintf(other, sizeof other, "%s.bad%d", path, n);
	} while (access(other, F_OK) == 0 && ++n < 1000);
	bool moved = n < 1000 && rename(path, other) == 0;
	sw_server_note(server, "%s%s%s; learning starts anew, and the file is %s %s", err->fact, err->detail[0] != '\0' ? ": " : "",
		       err->detail, moved ? "kept as" : "left as", moved ? other : path);
	/* What cannot be moved away must not be written over. */
	server->learned.keeps = moved;
}

int sw_learned_know(struct sw_server *server, const struct sw_profiles *profiles, struct sw_err *err)
{
	SW_CLEANUP(sw_learn_freep) struct sw_learn *learn = NULL;
	SW_CLEANUP(sw_freep) char *text = NULL;
	struct sw_learned *learned = &server->learned;
	int r = sw_learn_new(profiles, &sw_predict_default, &learn, err);
	if (r == 0 && learned->learn != NULL)
		r = sw_learn_write(learned->learn, &text, err);
	if (r == 0 && text != NULL)
		r = sw_learn_read(learn, "what was learned", text, strlen(text), err);
	if (r < 0)
		return r;
	if (learned->learn != NULL)
		sw_learn_free(learned->learn);
	learned->learn = SW_TAKE(learn);
	return 0;
}

int sw_learned_start(struct sw_server *server, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	const char *path = server->options->slowdowns_path;
	struct sw_err problem = {0};
	size_t size = 0;
	server->learned.timer = evtimer_new(server->base, on_timer, server);
	if (server->learned.timer == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	server->learned.keeps = path != NULL;
	if (path == NULL || (access(path, F_OK) != 0 && errno == ENOENT))
		return 0;
	int r = sw_file_read(path, LARGEST_FILE, &text, &size, &problem);
	if (r == 0)
		r = sw_learn_read(server->learned.learn, path, text, size, &problem);
	if (r < 0)
		set_aside(server, &problem);
	return 0;
}

void sw_learned_stop(struct sw_server *server)
{
	if (server->learned.timer != NULL) {
		save(server);
		event_free(server->learned.timer);
	}
	if (server->learned.learn != NULL)
		sw_learn_free(server->learned.learn);
}
