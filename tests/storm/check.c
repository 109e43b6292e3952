/* What must hold after a round: what the jobs saw themselves against what the
 * controller says of them. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "storm.h"

/* One part of a run, as its own words have it. */
struct seen {
	char name[24], node[16];
	uint64_t job;
	uint32_t epoch, gpus;
	pid_t pid;
	bool has_ended;
	uint32_t code, signal;
};

struct evidence {
	struct cluster *cluster;
	const struct round_plan *plan;
	SW_VEC(struct seen) runs;
};

/* ---- reading what the jobs said */

static struct seen *find_part(struct evidence *evidence, uint64_t job, uint32_t epoch, const char *node)
{
	for (size_t i = 0; i < evidence->runs.count; i++) {
		struct seen *run = &evidence->runs.items[i];
		if (run->job == job && run->epoch == epoch && strcmp(run->node, node) == 0)
			return run;
	}
	return NULL;
}

static void read_start(struct evidence *evidence, const char *line)
{
	struct seen run = {0};
	char gpus[1000];
	long pid;
	int64_t started_ns;
	if (sscanf(line, "S %23s %" SCNu64 " %" SCNu32 " %15s %ld %" SCNd64 " %999s", run.name, &run.job, &run.epoch, run.node, &pid,
		   &started_ns, gpus) != 7)
		return;
	stranger_check(evidence->cluster, run.node, gpus, started_ns, line);
	char prefix[24];
	snprintf(prefix, sizeof prefix, "r%" PRIu64 "-", evidence->plan->seed);
	if (strncmp(run.name, prefix, strlen(prefix)) != 0) {
		violation(evidence->cluster, CHECK_OVER, "job %" PRIu64 " (%s) of an earlier round had ended and ran again, epoch %" PRIu32,
			  run.job, run.name, run.epoch);
		return;
	}
	run.pid = (pid_t)pid;
	run.gpus = 1;
	for (const char *at = gpus; (at = strchr(at, ',')) != NULL; at++)
		run.gpus++;
	struct seen *slot = sw_vec_push(&evidence->runs);
	if (slot != NULL)
		*slot = run;
	evidence->cluster->tally->runs++;
	evidence->cluster->tally->reruns += run.epoch > 1;
	for (enum check check = CHECK_STARTED_ONCE; check <= CHECK_GPUS; check++)
		evidence->cluster->tally->checked[check]++;
}

static void read_end(struct evidence *evidence, const char *line)
{
	struct seen said = {0};
	if (sscanf(line, "E %*s %" SCNu64 " %" SCNu32 " %15s %*d %" SCNu32 " %" SCNu32, &said.job, &said.epoch, said.node, &said.code,
		   &said.signal) != 5)
		return;
	struct seen *run = find_part(evidence, said.job, said.epoch, said.node);
	if (run == NULL)
		return;
	run->has_ended = true;
	run->code = said.code;
	run->signal = said.signal;
}

static const struct job_plan *plan_of_id(const struct evidence *evidence, uint64_t job)
{
	for (size_t j = 0; j < evidence->plan->job_count; j++)
		for (size_t i = 0; i < evidence->plan->jobs[j].id_count; i++)
			if (evidence->plan->jobs[j].ids[i] == job)
				return &evidence->plan->jobs[j];
	return NULL;
}

/* Whether a move was asked for the job that still has the lock of the GPU: it took its
 * locks where it started. */
static bool may_have_moved(const struct evidence *evidence, const char *line)
{
	const char *holder = strstr(line, "is used by run ");
	uint64_t job;
	if (holder == NULL || sscanf(holder, "is used by run %" SCNu64, &job) != 1)
		return false;
	const struct job_plan *plan = plan_of_id(evidence, job);
	return plan != NULL && plan->was_sent[VERB_MOVE];
}

/* Whether the storm killed the process that took the lock, or its supervisor, of a run that may be
 * suspended: its children stand still then, have the lock until they are killed by and by, and
 * others may be on its GPUs. */
static bool may_have_stood(const struct evidence *evidence, const char *line)
{
	const char *holder = strstr(line, "is used by run ");
	uint64_t job;
	uint32_t epoch;
	long pid;
	if (holder == NULL || sscanf(holder, "is used by run %" SCNu64 ".%" SCNu32 " process %ld", &job, &epoch, &pid) != 3)
		return false;
	const struct job_plan *plan = plan_of_id(evidence, job);
	if (plan == NULL || (!plan->was_sent[VERB_SUSPEND] && (plan->keep == KEEP_NEVER || plan->keep == KEEP_REQUEUE)))
		return false;
	for (size_t v = 0; v < evidence->cluster->victims.count; v++) {
		const struct victim *victim = &evidence->cluster->victims.items[v];
		bool is_its_own = victim->target == KILL_JOB && victim->pid == (pid_t)pid;
		if (is_its_own || (victim->target == KILL_SUPERVISOR && victim->job == job && victim->epoch == epoch))
			return true;
	}
	return false;
}

static void read_accusation(struct evidence *evidence, const char *line)
{
	static const struct {
		const char *word;
		enum check check;
	} words[] = {
		{"V started-twice ", CHECK_STARTED_ONCE}, {"V job ", CHECK_ALONE}, {"V gpu ", CHECK_GPUS}, {"V memory ", CHECK_MEMORY}};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strncmp(line, words[i].word, strlen(words[i].word)) == 0 &&
		    !(words[i].check == CHECK_GPUS && (may_have_moved(evidence, line) || may_have_stood(evidence, line))))
			violation(evidence->cluster, words[i].check, "seen by a job: %s", line + 2);
}

static void read_witness(struct evidence *evidence, long *offset)
{
	char path[PATH_MAX], line[1200];
	snprintf(path, sizeof path, "%s/witness", evidence->cluster->folder);
	SW_CLEANUP(sw_fclosep) FILE *file = fopen(path, "re");
	if (file == NULL || fseek(file, *offset, SEEK_SET) != 0) {
		violation(evidence->cluster, CHECK_HEALTH, "the witness cannot be read");
		return;
	}
	while (fgets(line, sizeof line, file) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'S')
			read_start(evidence, line);
		else if (line[0] == 'E')
			read_end(evidence, line);
		else
			read_accusation(evidence, line);
	}
	*offset = ftell(file);
}

/* ---- one job */

/* As the controller shows it. */
struct shown {
	uint64_t id;
	const char *name, *state, *reason;
	uint32_t epoch, code, signal;
};

static void read_shown(const json_t *job, struct shown *ret_shown)
{
	*ret_shown = (struct shown){
		.id = (uint64_t)json_integer_value(json_object_get(job, "id")),
		.name = json_string_value(json_object_get(job, "name")),
		.state = json_string_value(json_object_get(job, "state")),
		.reason = json_string_value(json_object_get(job, "reason")),
		.epoch = (uint32_t)json_integer_value(json_object_get(job, "epoch")),
		.code = (uint32_t)json_integer_value(json_object_get(job, "code")),
		.signal = (uint32_t)json_integer_value(json_object_get(job, "signal")),
	};
}

/* Whether one of its processes that is the run's first one was killed by the storm. */
static bool was_killed(const struct evidence *evidence, uint64_t job, uint32_t epoch)
{
	for (size_t v = 0; v < evidence->cluster->victims.count; v++) {
		const struct victim *victim = &evidence->cluster->victims.items[v];
		if (victim->job != job || victim->epoch != epoch || (victim->target != KILL_JOB && victim->target != KILL_WRITER))
			continue;
		size_t parts = 0;
		for (size_t i = 0; i < evidence->runs.count; i++) {
			const struct seen *run = &evidence->runs.items[i];
			if (run->job != job || run->epoch != epoch)
				continue;
			parts++;
			if (run->pid == victim->pid)
				return true;
		}
		/* One that had not come to say that it starts: no other could be it. */
		if (parts < NODES)
			return true;
	}
	return false;
}

static bool lost_supervisor(const struct evidence *evidence, uint64_t job, uint32_t epoch)
{
	for (size_t v = 0; v < evidence->cluster->victims.count; v++) {
		const struct victim *victim = &evidence->cluster->victims.items[v];
		if (victim->job == job && victim->epoch == epoch && victim->target == KILL_SUPERVISOR)
			return true;
	}
	return false;
}

/* What an epoch came to, all its parts together. */
struct epoch_end {
	uint32_t parts, ended, code, signal, gpus;
};

static struct epoch_end sum_up(const struct evidence *evidence, uint64_t job, uint32_t epoch)
{
	struct epoch_end end = {0};
	for (size_t i = 0; i < evidence->runs.count; i++) {
		const struct seen *run = &evidence->runs.items[i];
		if (run->job != job || run->epoch != epoch)
			continue;
		end.parts++;
		end.ended += run->has_ended;
		end.code = run->code > end.code ? run->code : end.code;
		end.signal = run->signal > end.signal ? run->signal : end.signal;
		end.gpus += run->gpus;
	}
	return end;
}

/* The recorded end is that of the last run, as that run itself said. */
static void check_code(struct evidence *evidence, const struct shown *shown)
{
	struct epoch_end end = sum_up(evidence, shown->id, shown->epoch);
	bool killed = was_killed(evidence, shown->id, shown->epoch);
	bool has_truth = end.parts > 0 && end.ended == end.parts && end.code == shown->code && end.signal == shown->signal;
	/* One that was killed says nothing more, the other parts of its gang do; the highest
	 * number stands for all. */
	bool has_kill = killed && end.code == shown->code && shown->signal == (end.signal > SIGKILL ? end.signal : SIGKILL);
	bool completed = strcmp(shown->state, "CD") == 0;
	bool is_good = completed ? has_truth && shown->code == 0 && shown->signal == 0 : has_truth || has_kill;
	if (!is_good)
		violation(evidence->cluster, CHECK_CODE,
			  "job %" PRIu64 " (%s) is %s with exit code %" PRIu32 ", signal %" PRIu32 ", reason '%s' in epoch %" PRIu32
			  "; itself it said: %" PRIu32 " of %" PRIu32 " parts ended, code %" PRIu32 ", signal %" PRIu32,
			  shown->id, shown->name, shown->state, shown->code, shown->signal, shown->reason, shown->epoch, end.ended,
			  end.parts, end.code, end.signal);
}

/* No run had more GPUs than were asked for, and the one that counts had all of them. */
static void check_gpus(struct evidence *evidence, const struct shown *shown, const struct job_plan *plan)
{
	bool is_cancelled = strcmp(shown->state, "CA") == 0;
	for (uint32_t epoch = 1; epoch <= shown->epoch; epoch++) {
		struct epoch_end end = sum_up(evidence, shown->id, epoch);
		bool counts = epoch == shown->epoch && !is_cancelled && !was_killed(evidence, shown->id, epoch);
		if (end.gpus > plan->gpus || (counts && end.gpus != plan->gpus))
			violation(evidence->cluster, CHECK_GPUS,
				  "job %" PRIu64 " (%s) asked for %" PRIu32 " GPUs and had %" PRIu32 " in epoch %" PRIu32, shown->id,
				  shown->name, plan->gpus, end.gpus, epoch);
	}
}

/* Runs that ended badly by their own doing use up retries, others do not; and what ended
 * undisturbed is not run again for nothing. */
static void check_retries(struct evidence *evidence, const struct shown *shown, const struct job_plan *plan)
{
	uint32_t failures = 0, sure_failures = 0;
	for (uint32_t epoch = 1; epoch <= shown->epoch; epoch++) {
		struct epoch_end end = sum_up(evidence, shown->id, epoch);
		/* A suspend stops a run that is just starting, if its owner allows it to
		 * start anew; and one that ends by a signal while it is to stand still
		 * counts as killed there. */
		bool disturbed =
			lost_supervisor(evidence, shown->id, epoch) || plan->was_sent[VERB_REQUEUE] || plan->was_sent[VERB_SUSPEND];
		bool killed = was_killed(evidence, shown->id, epoch);
		bool failed = killed || (end.ended > 0 && (end.code > 0 || end.signal > 0));
		failures += failed;
		bool is_whole = end.parts > 0 && end.ended == end.parts && end.gpus == plan->gpus;
		sure_failures += failed && !disturbed && is_whole;
		if (epoch < shown->epoch && !failed && !disturbed && is_whole)
			violation(evidence->cluster, CHECK_RETRIES,
				  "job %" PRIu64 " (%s) ended well in epoch %" PRIu32 " and was run again", shown->id, shown->name, epoch);
	}
	/* How often it may be tried again is for the classes of failures to say (docs/failures.md);
	 * that it failed at all is for the witnesses. */
	if (strcmp(shown->state, "F") == 0 && failures == 0)
		violation(evidence->cluster, CHECK_RETRIES,
			  "job %" PRIu64 " (%s) failed for good after %" PRIu32 " failures of its own, %" PRIu32 " retries", shown->id,
			  shown->name, failures, plan->retries);
	if (sure_failures > plan->retries + 1)
		violation(evidence->cluster, CHECK_RETRIES, "job %" PRIu64 " (%s) failed %" PRIu32 " times with %" PRIu32 " retries",
			  shown->id, shown->name, sure_failures, plan->retries);
}

/* How much a run had done, by its own count; whole, where it ended by itself. */
static uint64_t work_ms(const struct evidence *evidence, uint64_t job, uint32_t epoch)
{
	uint64_t most = 0;
	for (size_t i = 0; i < evidence->runs.count; i++) {
		const struct seen *run = &evidence->runs.items[i];
		char path[PATH_MAX];
		uint64_t done = 0;
		snprintf(path, sizeof path, "%s/work/%" PRIu64 ".%" PRIu32 ".%s", evidence->cluster->folder, job, epoch, run->node);
		SW_CLEANUP(sw_fclosep) FILE *file = run->job == job && run->epoch == epoch ? fopen(path, "re") : NULL;
		if (file != NULL && fread(&done, sizeof done, 1, file) == 1 && done > most)
			most = done;
	}
	return most;
}

/* A run that began is the last one unless it failed by itself, the storm killed it, or its owner
 * allowed another: no work is lost. Outages, of whatever length, are no excuse. */
static void check_work(struct evidence *evidence, const struct shown *shown, const struct job_plan *plan)
{
	for (uint32_t epoch = 1; epoch < shown->epoch; epoch++) {
		struct epoch_end end = sum_up(evidence, shown->id, epoch);
		if (end.parts == 0)
			continue;
		bool failed = end.ended > 0 && (end.code > 0 || end.signal > 0);
		bool killed = was_killed(evidence, shown->id, epoch) || lost_supervisor(evidence, shown->id, epoch);
		bool allowed = plan->keep == KEEP_REQUEUE || plan->was_sent[VERB_REQUEUE];
		/* Only runs that it could accuse are counted. */
		evidence->cluster->tally->checked[CHECK_WORK] += !allowed;
		if (!failed && !killed && !allowed)
			violation(evidence->cluster, CHECK_WORK,
				  "job %" PRIu64 " (%s) lost %" PRIu64 " ms of work in epoch %" PRIu32 " and began anew, reason '%s'",
				  shown->id, shown->name, work_ms(evidence, shown->id, epoch), epoch, shown->reason);
	}
}

static void check_job(struct evidence *evidence, const struct shown *shown, const struct job_plan *plan)
{
	struct tally *tally = evidence->cluster->tally;
	bool failed = strcmp(shown->state, "F") == 0, completed = strcmp(shown->state, "CD") == 0,
	     cancelled = strcmp(shown->state, "CA") == 0;
	tally->jobs++;
	tally->checked[CHECK_ENDED]++;
	if (!failed && !completed && !(cancelled && plan->was_sent[VERB_CANCEL])) {
		violation(evidence->cluster, CHECK_ENDED, "job %" PRIu64 " (%s) is %s, reason '%s'", shown->id, shown->name, shown->state,
			  shown->reason);
		return;
	}
	tally->checked[CHECK_OVER]++;
	for (size_t i = 0; i < evidence->runs.count; i++)
		if (evidence->runs.items[i].job == shown->id && evidence->runs.items[i].epoch > shown->epoch)
			violation(evidence->cluster, CHECK_OVER,
				  "job %" PRIu64 " (%s) ended in epoch %" PRIu32 " and ran in epoch %" PRIu32, shown->id, shown->name,
				  shown->epoch, evidence->runs.items[i].epoch);
	check_gpus(evidence, shown, plan);
	check_work(evidence, shown, plan);
	tally->checked[CHECK_MEMORY] += plan->gpu_kib > 0;
	if (cancelled)
		return;
	tally->checked[CHECK_CODE]++;
	check_code(evidence, shown);
	tally->checked[CHECK_RETRIES]++;
	check_retries(evidence, shown, plan);
}

/* ---- all of them */

static const struct job_plan *plan_of(const struct round_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->job_count; i++)
		if (strcmp(plan->jobs[i].name, name) == 0)
			return &plan->jobs[i];
	return NULL;
}

static size_t count_named(const json_t *jobs, const char *name)
{
	size_t count = 0, i;
	const json_t *job;
	json_array_foreach(jobs, i, job) count += strcmp(json_string_value(json_object_get(job, "name")), name) == 0;
	return count;
}

static bool has_id(const json_t *jobs, const char *name, uint64_t id)
{
	size_t i;
	const json_t *job;
	json_array_foreach(jobs, i, job)
	{
		if ((uint64_t)json_integer_value(json_object_get(job, "id")) == id)
			return strcmp(json_string_value(json_object_get(job, "name")), name) == 0;
	}
	return false;
}

/* A client that heard yes finds all jobs, once; one that heard nothing all or none. */
static void check_submit(struct cluster *cluster, const struct job_plan *plan, const json_t *jobs)
{
	size_t asked = plan->array > 0 ? plan->array : 1, found = count_named(jobs, plan->name);
	struct tally *tally = cluster->tally;
	tally->submits++;
	tally->acknowledged += plan->sent == SENT_ACKNOWLEDGED ? asked : 0;
	tally->repeats += plan->repeats;
	tally->unanswered += plan->sent == SENT_UNANSWERED;
	for (int verb = 0; verb < VERBS; verb++)
		tally->verbs[verb] += plan->was_sent[verb];
	if (plan->sent == SENT_REFUSED || plan->sent == SENT_NOT)
		violation(cluster, CHECK_HEALTH, "%s was %s", plan->name, plan->sent == SENT_REFUSED ? "refused" : "never taken");
	if (plan->sent == SENT_ACKNOWLEDGED) {
		tally->checked[CHECK_KEPT]++;
		bool is_kept = plan->id_count == asked;
		for (size_t i = 0; i < plan->id_count; i++)
			is_kept = is_kept && has_id(jobs, plan->name, plan->ids[i]);
		if (!is_kept)
			violation(cluster, CHECK_KEPT, "%s was acknowledged with %zu jobs, and is not known as such", plan->name,
				  plan->id_count);
	}
	tally->checked[CHECK_ONCE]++;
	if (found != asked && !(found == 0 && plan->sent != SENT_ACKNOWLEDGED))
		violation(cluster, CHECK_ONCE, "%s asked for %zu jobs and there are %zu", plan->name, asked, found);
}

/* What a controller of this round said of its own state. */
static void check_soundness(struct cluster *cluster)
{
	char path[PATH_MAX], line[1200];
	snprintf(path, sizeof path, "%s/unsound", cluster->folder);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		return;
	while (fgets(line, sizeof line, file) != NULL)
		violation(cluster, CHECK_HEALTH, "%.*s", (int)strcspn(line, "\n"), line);
	fclose(file);
	unlink(path);
}

void check_round(struct cluster *cluster, const struct round_plan *plan, const json_t *jobs, long *witness_offset)
{
	struct evidence evidence = {.cluster = cluster, .plan = plan};
	read_witness(&evidence, witness_offset);
	check_soundness(cluster);
	for (size_t i = 0; i < plan->job_count; i++)
		check_submit(cluster, &plan->jobs[i], jobs);
	size_t i;
	const json_t *job;
	json_array_foreach(jobs, i, job)
	{
		struct shown shown;
		read_shown(job, &shown);
		const struct job_plan *found = plan_of(plan, shown.name);
		if (found != NULL)
			check_job(&evidence, &shown, found);
	}
	cluster->tally->rounds++;
	cluster->tally->outages += plan->has_outage;
	cluster->tally->stalls += cluster->has_stalled;
	sw_vec_free(&evidence.runs);
}
