/* The storm's front: batches of rounds, and the table.
 *
 *	storm [--seed N] [--rounds N] [--batch N] [--placement pack|spread] [--print]
 *
 * Round i of a storm has the seed N + i. Without a placement rule batches take turns. $SHAREWELL is
 * the program, sharewell beside this one otherwise.
 */
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "storm.h"

struct options {
	uint64_t seed, rounds, batch;
	const char *placement;
	bool print;
};

static const char *const check_names[CHECKS] = {
	[CHECK_KEPT] = "what was acknowledged is there",
	[CHECK_ONCE] = "and nothing is there twice",
	[CHECK_ENDED] = "every job comes to an end",
	[CHECK_CODE] = "with the true exit code of its last run",
	[CHECK_STARTED_ONCE] = "no run is started twice",
	[CHECK_ALONE] = "no job runs twice at the same time",
	[CHECK_GPUS] = "no GPU is given twice, none is missing",
	[CHECK_STRANGERS] = "no run starts on a GPU that a stranger uses",
	[CHECK_OVER] = "no job runs after its end",
	[CHECK_RETRIES] = "only a job's own failures cost retries",
	[CHECK_WORK] = "no work is lost unless its owner allows it",
	[CHECK_MEMORY] = "GPU memory has what the job put there",
	[CHECK_REPLAY] = "a restart changes nothing",
	[CHECK_LEFT] = "no process is left",
	[CHECK_HEALTH] = "no job dies unless killed",
};

static uint64_t sum(const uint64_t *values, size_t count)
{
	uint64_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += values[i];
	return total;
}

static void print_table(const struct options *options, const struct tally *tally, double seconds)
{
	printf("\nstorm: %" PRIu64 " rounds, seeds %" PRIu64 " to %" PRIu64 ", %.0f s, %d nodes of %d GPUs\n\n", tally->rounds,
	       options->seed, options->seed + options->rounds - 1, seconds, NODES, GPUS_PER_NODE);
	printf("%-50s %10s\n", "killed (-9)", "times");
	for (int i = 0; i < KILL_KINDS; i++)
		printf("  %-48s %10" PRIu64 "\n", target_names[i], tally->kills[i]);
	printf("  %-48s %10" PRIu64 "\n", "away for about a lease", tally->outages);
	if (tally->stalls > 0)
		printf("  %-48s %10" PRIu64 "\n", "(rounds in which this machine stood still)", tally->stalls);
	printf("  %-48s %10" PRIu64 "\n", "processes outside the queue that came to GPUs", tally->strangers);
	printf("jobs\n");
	printf("  %-48s %10" PRIu64 "\n", "submits", tally->submits);
	printf("  %-48s %10" PRIu64 "\n", "repeated under their key for want of an answer", tally->repeats);
	printf("  %-48s %10" PRIu64 "\n", "without an answer", tally->unanswered);
	printf("  %-48s %10" PRIu64 "\n", "jobs acknowledged", tally->acknowledged);
	printf("  %-48s %10" PRIu64 "\n", "jobs ended", tally->jobs);
	printf("  %-48s %10" PRIu64 "\n", "runs (parts of gangs each)", tally->runs);
	printf("  %-48s %10" PRIu64 "\n", "of them again", tally->reruns);
	for (int verb = VERB_SUBMIT + 1; verb < VERBS; verb++)
		printf("  %-48s %10" PRIu64 "\n", verb_names[verb], tally->verbs[verb]);
	printf("%-7s %-42s %10s %10s\n", "held", "", "checked", "violated");
	for (int i = 0; i < CHECKS; i++)
		printf("%-7s %-42s %10" PRIu64 " %10" PRIu64 "\n", tally->violations[i] == 0 ? "ok" : "not ok", check_names[i],
		       tally->checked[i], tally->violations[i]);
}

/* ---- a batch */

static void wait_for_nodes(struct cluster *cluster)
{
	size_t up = 0;
	for (int64_t end_ns = boot_now_ns() + 30 * SW_NS_PER_S; up < NODES && boot_now_ns() < end_ns; rest_us(5000)) {
		json_t *answer;
		ask_patiently(cluster, "/v1/nodes", 30 * SW_NS_PER_S, &answer);
		up = json_array_size(json_object_get(answer, "nodes"));
		json_decref(answer);
	}
	if (up < NODES)
		violation(cluster, CHECK_HEALTH, "%zu of %d nodes have come", up, NODES);
}

/* The controller is killed once more: the table of all jobs of the batch is the
 * same before and after. */
static void check_replay(struct cluster *cluster)
{
	struct kill_plan plan = {.target = KILL_CONTROLLER};
	json_t *before = list_jobs(cluster, "");
	cluster_kill(cluster, &plan);
	while (cluster->daemons[0].was_killed) {
		cluster_pump(cluster);
		rest_us(1000);
	}
	json_t *after = list_jobs(cluster, "");
	cluster->tally->checked[CHECK_REPLAY] += json_array_size(before);
	for (size_t i = 0; i < json_array_size(before); i++) {
		const json_t *was = json_array_get(before, i), *is = json_array_get(after, i);
		if (json_equal(was, is))
			continue;
		char *old = json_dumps(was, JSON_COMPACT), *new = is != NULL ? json_dumps(is, JSON_COMPACT) : NULL;
		violation(cluster, CHECK_REPLAY, "the restart changed %s to %s", old, new != NULL ? new : "nothing");
		free(old);
		free(new);
	}
	json_decref(before);
	json_decref(after);
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *ftw)
{
	(void)status, (void)flag, (void)ftw;
	return remove(path);
}

static bool play_batch(const struct options *options, struct cluster *cluster, uint64_t first, uint64_t count)
{
	const char *parent = getenv("TMPDIR");
	cluster->placement = options->placement != NULL ? options->placement : first / options->batch % 2 == 0 ? "pack" : "spread";
	snprintf(cluster->folder, sizeof cluster->folder, "%s/storm.XXXXXX", parent != NULL ? parent : "/tmp");
	if (mkdtemp(cluster->folder) == NULL || !cluster_start(cluster)) {
		fprintf(stderr, "storm: cannot make a cluster in '%s': %s\n", cluster->folder, strerror(errno));
		return false;
	}
	uint64_t violations = sum(cluster->tally->violations, CHECKS);
	long witness_offset = 0;
	cluster->seed = first;
	wait_for_nodes(cluster);
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct round_plan plan;
		char prefix[32];
		draw_round(seed, &plan);
		if (options->print)
			print_round(&plan);
		play_round(cluster, &plan);
		snprintf(prefix, sizeof prefix, "r%" PRIu64 "-", seed);
		json_t *jobs = list_jobs(cluster, prefix);
		check_round(cluster, &plan, jobs, &witness_offset);
		json_decref(jobs);
	}
	check_replay(cluster);
	if (!cluster_stop(cluster)) {
		char names[600];
		cluster_name_all(names, sizeof names);
		violation(cluster, CHECK_LEFT, "processes are left although the daemons were told to end:%s", names);
	}
	cluster->tally->checked[CHECK_HEALTH]++;
	sw_vec_free(&cluster->victims);
	if (sum(cluster->tally->violations, CHECKS) == violations)
		nftw(cluster->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	else
		printf("  what is left of it: %s\n", cluster->folder);
	return true;
}

/* ---- options */

static bool read_options(int argc, char **argv, struct options *ret_options)
{
	*ret_options = (struct options){.seed = 1, .rounds = 500, .batch = 25};
	for (int i = 1; i < argc; i++) {
		uint64_t *number = strcmp(argv[i], "--seed") == 0     ? &ret_options->seed
				   : strcmp(argv[i], "--rounds") == 0 ? &ret_options->rounds
				   : strcmp(argv[i], "--batch") == 0  ? &ret_options->batch
								      : NULL;
		if (strcmp(argv[i], "--print") == 0)
			ret_options->print = true;
		else if (strcmp(argv[i], "--placement") == 0 && i + 1 < argc)
			ret_options->placement = argv[++i];
		else if (number == NULL || i + 1 >= argc || sw_parse_u64(argv[i + 1], strlen(argv[i + 1]), number) < 0)
			return false;
		else
			i++;
	}
	return ret_options->rounds > 0 && ret_options->batch > 0;
}

static bool find_programs(struct cluster *cluster)
{
	static char beside[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", cluster->self, sizeof cluster->self - 1);
	if (n <= 0)
		return false;
	cluster->self[n] = '\0';
	cluster->program = getenv("SHAREWELL");
	if (cluster->program == NULL) {
		snprintf(beside, sizeof beside, "%.*s/../sharewell", (int)(strrchr(cluster->self, '/') - cluster->self), cluster->self);
		cluster->program = beside;
	}
	int folder = (int)(strrchr(cluster->self, '/') - cluster->self);
	snprintf(cluster->job, sizeof cluster->job, "%.*s/storm_job", folder, cluster->self);
	snprintf(cluster->emu, sizeof cluster->emu, "%.*s/../emu", folder, cluster->self);
	return access(cluster->program, X_OK) == 0 && access(cluster->job, X_OK) == 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--controller") == 0)
		return run_controller(argv[2], argv[3]);
	struct options options;
	struct tally tally = {0};
	struct cluster cluster = {.tally = &tally};
	if (!read_options(argc, argv, &options) || !find_programs(&cluster)) {
		fprintf(stderr, "usage: storm [--seed N] [--rounds N] [--batch N] [--placement pack|spread] [--print], with $SHAREWELL the "
				"program\n");
		return 2;
	}
	/* Orphans come to this process, so none can hide. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	int64_t start_ns = boot_now_ns();
	bool good = true;
	for (uint64_t done = 0; good && done < options.rounds; done += options.batch) {
		uint64_t count = options.rounds - done < options.batch ? options.rounds - done : options.batch;
		good = play_batch(&options, &cluster, options.seed + done, count);
		if (isatty(2))
			fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " rounds ", done + count, options.rounds);
	}
	print_table(&options, &tally, (double)(boot_now_ns() - start_ns) / (double)SW_NS_PER_S);
	return good && sum(tally.violations, CHECKS) == 0 ? 0 : 1;
}
