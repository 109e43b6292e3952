/* The storm: a cluster of real processes whose parts are killed (-9) at random moments while jobs
 * are submitted, and what must hold all the same.
 *
 * A round is drawn from its seed: jobs, which client submits them when, and what is killed
 * when. The plan of a seed is always the same; how the processes of the machine interleave
 * is not, so a replay plays the same plan and not the same race. Rounds share a cluster, a
 * batch of them at a time.
 *
 * Each job is a witness of its own (job.c, a program without sanitizers, since the GPU runtime is
 * preloaded into it): it notes when it starts and ends, counts its work, and holds locks on its
 * run, its job and its GPUs while any of its processes lives. Locks die with their holders, so they
 * tell of two at once whichever process is killed.
 */
#ifndef SW_TESTS_STORM_H
#define SW_TESTS_STORM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/number.h"
#include "base/vec.h"

enum { NODES = 2, GPUS_PER_NODE = 4, ROUND_JOBS = 10, ROUND_KILLS = 6, CLIENTS = 4, ARRAY_MAX = 4 };

/* ---- the plan of a round (draw.c) */

enum children { CHILDREN_PLAIN, CHILDREN_AWAY /* sessions of their own */, CHILDREN_BARE /* without environment */, CHILDREN_KINDS };

enum sent { SENT_NOT, SENT_UNANSWERED, SENT_ACKNOWLEDGED, SENT_REFUSED };

/* What its owner allows to be done to it while it runs. */
enum keep { KEEP_DEFAULT, KEEP_NEVER, KEEP_SUSPEND, KEEP_REQUEUE, KEEP_KINDS };

/* What a client does to a job that it submitted. What was suspended or held goes on in the end. */
enum verb { VERB_SUBMIT, VERB_CANCEL, VERB_REQUEUE, VERB_SUSPEND, VERB_RESUME, VERB_HOLD, VERB_RELEASE, VERB_MOVE, VERBS };
extern const char *const verb_names[VERBS];

struct job_plan {
	char name[24];
	uint32_t client;
	uint32_t gpus;
	uint32_t duration_ms;
	uint32_t code, signal; /* how its failing runs end */
	uint32_t fails;	       /* the first so many epochs */
	uint32_t retries;
	uint32_t array; /* members; 0: it is none */
	uint32_t children;
	enum children child_kind;
	bool is_deaf; /* ignores SIGTERM */
	bool has_key; /* its submit names a key, and is repeated until there is an answer */
	uint32_t grace_ms;
	enum keep keep;
	uint32_t gpu_kib;      /* of GPU memory that it fills and looks at in the end; 0: none */
	uint32_t at_us[VERBS]; /* when; 0: not */

	/* What became of it; written by its client, read when that has ended. */
	enum sent sent;
	bool was_sent[VERBS];
	uint32_t repeats;
	size_t id_count;
	uint64_t ids[ARRAY_MAX];
};

enum target { KILL_CONTROLLER, KILL_AGENT, KILL_NURSERY, KILL_SUPERVISOR, KILL_WRITER, KILL_JOB, KILL_ALL /* but the jobs */, KILL_KINDS };
extern const char *const target_names[KILL_KINDS];

struct kill_plan {
	enum target target;
	uint32_t at_us;
	uint32_t pick;		/* which of several */
	uint32_t back_after_us; /* controller and agent: started again then */
};

/* A process outside the queue that uses a GPU for a while. */
struct stranger_plan {
	uint32_t node, gpu;
	uint32_t at_us, stay_us; /* the latter 0: there is none */
	bool is_first;		 /* it is there, and seen, before the round begins */
};

struct round_plan {
	uint64_t seed;
	bool has_outage; /* one kill keeps its victim away for longer than a lease */
	size_t job_count, kill_count;
	struct job_plan jobs[ROUND_JOBS];
	struct kill_plan kills[ROUND_KILLS];
	struct stranger_plan stranger;
};

void draw_round(uint64_t seed, struct round_plan *ret_plan);
void print_round(const struct round_plan *plan);

/* ---- what is counted */

enum check {
	CHECK_KEPT,
	CHECK_ONCE,
	CHECK_ENDED,
	CHECK_CODE,
	CHECK_STARTED_ONCE,
	CHECK_ALONE,
	CHECK_GPUS,
	CHECK_STRANGERS,
	CHECK_OVER,
	CHECK_RETRIES,
	CHECK_WORK,
	CHECK_MEMORY,
	CHECK_REPLAY,
	CHECK_LEFT,
	CHECK_HEALTH,
	CHECKS,
};

struct tally {
	uint64_t rounds, submits, jobs, acknowledged, unanswered, repeats, runs, reruns, outages, stalls, strangers;
	uint64_t verbs[VERBS];
	uint64_t kills[KILL_KINDS], missed_kills;
	uint64_t checked[CHECKS], violations[CHECKS];
};

/* ---- the cluster (cluster.c) */

enum daemon_kind { DAEMON_CONTROLLER, DAEMON_AGENT };

struct daemon {
	enum daemon_kind kind;
	char name[16];
	pid_t pid;		   /* 0: it does not run */
	int64_t back_at_ns;	   /* when it is started, while it does not */
	bool was_killed, was_told; /* the latter: to end by itself */
};

/* A process that was killed on purpose. */
struct victim {
	enum target target;
	uint64_t job;
	uint32_t epoch;
	pid_t pid;
};

/* The stranger of the round (stranger.c). */
struct stranger {
	struct stranger_plan plan;
	pid_t pid; /* 0: it is not there */
	int64_t comes_at_ns, leaves_at_ns, left_at_ns;
	bool is_seen;  /* by the controller, before the round began */
	bool has_left; /* it was told to */
};

/* The UUID of an emulated GPU, by the name of its node and its index. */
#define GPU_UUID "GPU-e300000%s-0000-0000-0000-00000000000%d"

struct cluster {
	const char *program; /* sharewell */
	char self[PATH_MAX]; /* this program */
	char job[PATH_MAX];  /* that of its jobs, beside it */
	char emu[PATH_MAX];  /* the folder of the emulated driver */
	char folder[PATH_MAX / 2];
	char socket[PATH_MAX];
	char ledger[PATH_MAX];		  /* of host memory; not the machine's */
	struct daemon daemons[1 + NODES]; /* the controller first */
	const char *placement;		  /* the rule of this batch */
	uint64_t seed;			  /* of the round that is played, for messages */
	struct tally *tally;
	int64_t pumped_at_ns;
	struct stranger stranger;
	bool has_stalled;	       /* in this round: the machine stood still for so long that leases may have run out */
	SW_VEC(struct victim) victims; /* of the round */
};

int64_t boot_now_ns(void);
void rest_us(int64_t us);

/* A new folder and all daemons; false: it cannot be made. */
bool cluster_start(struct cluster *cluster);
/* Ends the daemons; false: they do not end. */
bool cluster_stop(struct cluster *cluster);
/* Takes up the dead, starts those whose time has come. */
void cluster_pump(struct cluster *cluster);
/* Carries out a kill. */
void cluster_kill(struct cluster *cluster, const struct kill_plan *kill);
/* How many supervisors, log writers and processes of jobs there are. */
size_t cluster_processes(struct cluster *cluster, char *names, size_t size);
/* All processes, daemons and the dead included, with their states and parents. */
void cluster_name_all(char *names, size_t size);
/* The controller of a storm: that of Sharewell with a short lease and a short back-off. */
int run_controller(const char *folder, const char *placement);

/* Takes the plan of a round; returns once one that is there first is seen. */
void stranger_prepare(struct cluster *cluster, const struct stranger_plan *plan);
/* The round begins. */
void stranger_begin(struct cluster *cluster, int64_t start_ns);
/* Lets it come and go; cluster_pump() calls it. */
void stranger_pump(struct cluster *cluster, int64_t now_ns);
void stranger_leave(struct cluster *cluster);
/* A run that started while the controller knew of a stranger does not have its GPU;
 * `run` is for the message. */
void stranger_check(struct cluster *cluster, const char *node, const char *gpus, int64_t started_ns, const char *run);

__attribute__((format(printf, 3, 4))) void violation(struct cluster *cluster, enum check check, const char *fmt, ...);

/* ---- clients (client.c) */

/* One request, with a key unless that is NULL; the status of the answer, 0: none came although the
 * request was sent (or part of it), -1: none was there. The caller frees the body. */
int ask(const char *socket, const char *method, const char *path, const char *body, const char *key, json_t **ret_answer);
/* The same again and again until there is an answer; 0: none within `patience_ns`. */
int ask_patiently(struct cluster *cluster, const char *path, int64_t patience_ns, json_t **ret_answer);

/* What one client does in a round, in a thread of its own. */
struct client {
	const struct cluster *cluster;
	struct round_plan *plan;
	uint32_t number;
	int64_t start_ns;
};
void *run_client(void *client);

/* ---- rounds and checks */

/* round.c */
void play_round(struct cluster *cluster, struct round_plan *plan);
/* All jobs whose name begins with `prefix`, as the controller lists them; NULL: no answer.
 * The caller releases it. */
json_t *list_jobs(struct cluster *cluster, const char *prefix);

/* check.c */
void check_round(struct cluster *cluster, const struct round_plan *plan, const json_t *jobs, long *witness_offset);

#endif
