/* What an agent tells the controller (the sync) and what it hears back (the answer): plain
 * structs and their JSON.
 *
 * Both are complete each time: the sync holds every run that the agent knows, the answer every wish
 * for its node. Messages may be lost, repeated or late without harm. Decoding is strict about what
 * it knows: a wrong type or range is named with its place, "jobs[3].epoch". It ignores fields that
 * it does not know, so that neighbouring versions understand each other. The structs of src/agent
 * on disk (spec.json, status.json, exit.json) use the same forms.
 *
 * Runs and wishes are read one by one. One that cannot be read stands in `unread` with the reason,
 * and the others are as if it were not there: one order, one fate. Nothing may be concluded from
 * the absence of a run that stands in `unread`, nor of any run while one there has no id.
 *
 * Decoded structs own everything they point to and are freed as a whole; structs that are only
 * encoded point to what their maker owns. Times named _at_ns are CLOCK_REALTIME; a deadline named
 * _boot_ns is CLOCK_BOOTTIME of the node.
 */
#ifndef SW_API_SYNC_H
#define SW_API_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

#define SW_SYNC_RUNS_MAX 4096u
#define SW_SYNC_WANTS_MAX 4096u
#define SW_SYNC_GPUS_MAX 256u
#define SW_SYNC_SAMPLES_MAX 8192u
#define SW_SYNC_STRANGERS_MAX 256u
#define SW_SYNC_PLACES_MAX 1024u /* bytes of a list of GPUs, by their UUIDs */
#define SW_SYNC_NAME_MAX 255u	 /* bytes of a node's name, a GPU's name */
#define SW_SYNC_UUID_MAX 47u	 /* bytes of a GPU's UUID */
#define SW_SYNC_HOME_MAX 32u	 /* bytes of the id of an agent's folder */
#define SW_SYNC_WHY_MAX 299u	 /* bytes of the reason of a wish, for people */
#define SW_SYNC_TOKEN_MAX 15u	 /* bytes of the id of a token */
#define SW_SYNC_PATH_MAX 4095u
#define SW_SYNC_JOB_MAX ((UINT64_C(1) << 53) - 1)
#define SW_SYNC_BYTES_MAX ((size_t)16 << 20)
#define SW_ANSWER_BYTES_MAX ((size_t)64 << 20)
/* New orders are added to an answer until they are so many, or have so many bytes as text. The
 * agent asks again for the others. */
#define SW_ANSWER_ORDERS_MAX 256u
#define SW_ANSWER_ORDERS_BYTES ((size_t)1 << 20)
#define SW_LEASE_MS_MAX INT64_C(86400000)
/* What an agent of version 0.1 gives all its runs with every answer. Other agents take it as a sign
 * that the controller counts leases by run. */
#define SW_LEASE_OF_OLD_MS SW_LEASE_MS_MAX

/* One execution of a job: it is started at most once. A job that runs again does
 * so under a higher epoch. */
struct sw_run_id {
	uint64_t job;
	uint32_t epoch;
};

static inline int sw_run_id_compare(struct sw_run_id a, struct sw_run_id b)
{
	if (a.job != b.job)
		return a.job < b.job ? -1 : 1;
	return a.epoch < b.epoch ? -1 : a.epoch > b.epoch;
}

/* A member of a list that could not be read. */
struct sw_unread {
	struct sw_run_id id;
	bool has_id;	 /* that much could be read */
	const char *why; /* a sentence for people */
};

struct sw_texts {
	const char **items; /* NULL behind the last */
	size_t count;
};

/* ---- what the agent tells */

struct sw_sync_gpu {
	const char *uuid;
	const char *name;
	uint64_t memory_bytes;
	uint32_t link_group; /* GPUs of one number are joined by fast links */
};

struct sw_sync_inventory {
	struct sw_sync_gpu *gpus;
	size_t gpu_count;
	uint32_t cpus;
	uint64_t memory_bytes;
};

enum sw_run_state {
	SW_RUN_STARTING = 0, /* asked for, not yet running: it may wait for its GPUs */
	SW_RUN_RUNNING,
	SW_RUN_SUSPENDED, /* all its processes stand still */
	SW_RUN_EXITED,	  /* none of its processes is left */
};

/* Where a run that is suspended, or is to be, stands with its GPUs. */
enum sw_run_depth {
	SW_DEPTH_USUAL = 0, /* its contexts stay there, and what memory cannot leave */
	SW_DEPTH_LEAVING,   /* it is being taken off them whole */
	SW_DEPTH_OFF,	    /* the driver has taken off all that was left there */
	/* that was wished and cannot be: it is suspended as usual, and `detail` says
	 * why. Only agents say this */
	SW_DEPTH_REFUSED,
};

/* Why a run ended, where it was not the job's own doing ("" then). */
#define SW_REASON_STOPPED "stopped" /* as the controller wished */
#define SW_REASON_TIME_LIMIT "time-limit"
#define SW_REASON_TRESPASS "trespass"		    /* it used a GPU that it was not given, and the operator has such jobs stopped */
#define SW_REASON_MEMORY_LIMIT "memory-limit"	    /* of its control group */
#define SW_REASON_LEASE "lease"			    /* its own lease ran out */
#define SW_REASON_LAUNCH "launch"		    /* its command could not be started; `detail` says why */
#define SW_REASON_NEVER_STARTED "never-started"	    /* and never will be, under this epoch */
#define SW_REASON_STALE "stale-epoch"		    /* the epoch was used or passed before: not started */
#define SW_REASON_SUPERVISOR_LOST "supervisor-lost" /* its supervisor died: the true exit code is unknown */
#define SW_REASON_ORDER "order"			    /* its order could not be read or made; `detail` says why */
#define SW_REASON_REPORT "report"		    /* its end was reported, but not readably: the true exit code is unknown */
#define SW_REASON_SHUTDOWN "shutdown"		    /* the supervisor was terminated, as a machine that shuts down does */

#define SW_SYNC_JOBS_LISTED 8u
struct sw_sync_jobs {
	uint64_t items[SW_SYNC_JOBS_LISTED];
	uint32_t count;
};

/* How a run gets on, where the GPU runtime has found its iterations. As many neighbours as can be
 * listed stand for that many or more. */
struct sw_sync_speed {
	int64_t iteration_ns;	    /* one takes, beside these; 0: not known, or not since others came or went */
	int64_t alone_ns;	    /* one took while it had its GPUs alone and nothing held it back; 0: never measured */
	uint64_t iterations;	    /* that had ended when this was found */
	struct sw_sync_jobs beside; /* that used its GPUs too, ascending */
};

struct sw_sync_run {
	struct sw_run_id id;
	enum sw_run_state state;
	enum sw_run_depth depth;
	uint32_t code;			    /* exit code, 0 to 255 */
	uint32_t signal;		    /* that ended it; 0: none */
	uint32_t pid;			    /* of its first process; 0: none yet */
	int64_t started_at_ns, ended_at_ns; /* 0: not yet */
	const char *reason;		    /* one of SW_REASON_..., or ""; never NULL once decoded */
	const char *detail;		    /* a sentence for people; may be NULL */
	/* Of GPUs, by their UUIDs with commas between them, in the order in
	 * which the run knows them: */
	const char *gpus;   /* that it has, if it was moved since it started; NULL: those of its order */
	const char *moving; /* that it is on its way to; NULL: it is not */
	/* why it could not be moved when that was wished last; NULL: it could. Agents say
	 * so while the wish stands */
	const char *unmoved;
	bool movable; /* its supervisor would try */
	/* suspended, it leaves its GPUs' memory to others: the GPU runtime is in all of its
	 * processes that use GPUs */
	bool frees;
	bool held;		  /* it is suspended, and its GPUs' memory could not leave; `detail` says why */
	const char *failure;	  /* the class of its failure (src/failure); NULL: it did not fail, or was not looked at */
	const char *failure_line; /* of its log that gave it away; NULL */
	const char *failure_path; /* of the input at fault; NULL */
	uint64_t log_bytes;	  /* written by the job so far */
	uint64_t max_rss_bytes;
	uint64_t cpu_ns;
	struct sw_sync_speed speed;
	const char *unread; /* of a decoded one: why a part of it could not be read, and is as if it were not there; NULL */
};

/* One look at something: a GPU (`gpu` alone), a run (`run` alone), or a run on a GPU (both). Of
 * neither: host memory that contents of GPUs take on the node, and may (`limit_bytes`). */
struct sw_sync_sample {
	int64_t at_ns;
	const char *gpu; /* UUID; NULL: not of a GPU */
	bool has_run;
	struct sw_run_id run;
	uint64_t memory_bytes; /* in use: of the GPU, or resident on the host */
	uint32_t busy_milli;   /* thousandths of a GPU, or of one core */
	uint32_t power_mw;
	int32_t temperature_c;
	uint32_t processes;
	/* Of a run on a GPU; 0: unknown. */
	uint64_t limit_bytes;  /* of the GPU's memory that it may hold, as it is kept to now */
	uint64_t host_bytes;   /* contents of its GPU memory that lie in host memory */
	uint64_t iteration_ns; /* one step of its repeating work */
	uint32_t outside;      /* of its processes use the GPU outside the runtime */
	bool trespass;	       /* the GPU is none of the run's own */
	/* The same, as the GPU runtime counts it. */
	bool runtime;		       /* the rest is known */
	bool suspended;		       /* none of its processes works */
	bool moving;		       /* its memory is on its way to or from the GPU */
	uint64_t charged_bytes;	       /* what counts against the limit */
	uint64_t fixed_bytes;	       /* the part of it that cannot leave */
	uint64_t wanted_bytes;	       /* for contexts that are waited with, since the GPU is full */
	uint64_t peak_bytes;	       /* the most so far */
	uint64_t floor_bytes;	       /* the least within an iteration, on all its GPUs */
	uint64_t iterations, launches; /* so far */
	uint32_t share_milli;	       /* of the GPU's time that it may take now; 0: it stands still */
	bool yields;		       /* only while guaranteed jobs beside it do not work */
	bool watched;		       /* it says when it works, for those that yield */
};

/* Why a GPU takes no jobs. */
enum sw_shut {
	SW_SHUT_STRANGER = 0, /* processes outside the queue use it */
	SW_SHUT_EXCLUDED,     /* the operator keeps it back */
	SW_SHUT_DEAD,	      /* it does not answer its driver */
	SW_SHUT_SILENT,	      /* the driver as a whole does not answer */
};
#define SW_SHUT_KINDS 4u

struct sw_sync_shut {
	const char *gpu; /* UUID */
	enum sw_shut why;
	int64_t since_ns;
	const char *detail; /* for people; may be NULL */
};

/* A process outside the queue on a GPU. */
struct sw_sync_stranger {
	const char *gpu;     /* UUID */
	uint32_t pid;	     /* 0: not known, as where the driver counts in another namespace than the agent */
	const char *user;    /* may be NULL: not known */
	const char *program; /* may be NULL: not known */
	uint64_t memory_bytes;
	int64_t since_ns; /* when it was seen first */
};

struct sw_sync {
	const char *node;
	const char *home;     /* the id of the agent's state folder, which has its runs; NULL: of version 0.1 */
	uint64_t start;	      /* how often an agent was started there; 0: of version 0.1 */
	const char *instance; /* of this start; of agents without a home it sorts behind those of earlier starts (strcmp) */
	uint64_t number;      /* grows by 1 within an instance, from 1 */
	uint64_t have;	      /* version of the wishes that it works on; 0: none, so the answer must hold every spec */
	bool leases;	      /* it keeps the leases of its runs (spec.lease_ms); those of version 0.1 do not */
	const struct sw_sync_inventory *inventory; /* NULL: as before */
	struct sw_sync_run *runs;
	size_t run_count;
	struct sw_sync_sample *samples;
	size_t sample_count;
	/* Between an agent and its sampler, beside an inventory: */
	uint32_t missing;	   /* GPUs that the driver has and that do not answer it */
	bool silent;		   /* there is no driver, or it does not answer */
	const char *about;	   /* the GPUs in one line for people; may be NULL */
	int64_t look_ns;	   /* the last look at GPUs and processes took; 0: not known */
	bool looked;		   /* the agent knows which GPUs take no jobs: those below, and no others */
	struct sw_sync_shut *shut; /* each GPU once */
	size_t shut_count;
	struct sw_sync_stranger *strangers; /* on GPUs that are shut for it, or that jobs share with them */
	size_t stranger_count;
	/* Only of a decoded sync: */
	char token[SW_SYNC_TOKEN_MAX + 1]; /* the id of the token that it came with, by the controller; "": it came through the socket */
	const char *inventory_unread;	   /* why the inventory could not be read; NULL: it could, or there was none */
	struct sw_unread *unread;	   /* runs */
	size_t unread_count;
	void *owner; /* what a decoded sync points to; NULL in one that was made by hand */
};

/* ---- what it hears */

enum sw_suspend_mode {
	SW_SUSPEND_SIGSTOP = 0,
	SW_SUSPEND_NONE, /* must not be suspended: a wish to do so is not carried out */
};

/* How to run a job, with everything decided. sw_run_spec_defaults() gives what may be left out. */
struct sw_run_spec {
	const char *name;
	struct sw_texts argv; /* at least one */
	struct sw_texts env;  /* NAME=VALUE */
	const char *workdir;
	uint32_t uid, gid;
	uint32_t umask;
	uint32_t stop_signal;
	int64_t grace_ms; /* between that and SIGKILL */
	/* it may go on for so long after the controller's last word, counted from when the
	 * agent asked; 0: for ever */
	int64_t lease_ms;
	const char *stdout_path;  /* NULL: out.log in the run's folder */
	const char *stderr_path;  /* NULL: where standard output goes, in one stream */
	uint64_t log_limit_bytes; /* of each file; beyond it the middle is left out */
	int64_t time_limit_ms;	  /* of time not suspended; 0: none */
	int64_t warn_ms;	  /* before that, warn_signal is sent; 0: none */
	uint32_t warn_signal;
	enum sw_suspend_mode suspend;
	uint64_t memory_bytes;	   /* 0: no limit */
	uint64_t open_files;	   /* 0: as the agent's own */
	uint64_t core_bytes;	   /* of a core file */
	uint64_t gpu_memory_bytes; /* of each of its GPUs; 0: it did not say */
	uint32_t cpus;		   /* 0: no limit */
	bool append;		   /* to files that exist, instead of beginning them anew */
	bool slurm_env;		   /* SLURM_* variables beside SHAREWELL_* */
	bool opportunistic;	   /* gives way to guaranteed jobs on its GPUs */
	bool bare_gpu;		   /* without the GPU runtime */
};

enum sw_want_kind {
	SW_WANT_RUN = 0,
	SW_WANT_SUSPEND,
	SW_WANT_STOP,
	SW_WANT_FORGET, /* its exit is recorded: delete its traces */
};

struct sw_want {
	struct sw_run_id id;
	enum sw_want_kind want;
	struct sw_texts gpus; /* UUIDs */
	const struct sw_run_spec
		/* with SW_WANT_RUN; NULL: for a run that the sync reported, or one whose order
		 * comes with a later answer */
		*spec;
	int64_t grace_ms;	  /* of a stop; -1: the spec's */
	uint32_t signal;	  /* of a stop; 0: the spec's */
	uint64_t gpu_limit_bytes; /* of each GPU's memory; 0: as the spec says */
	uint32_t gpu_share_milli; /* thousandths of each GPU's time; 0: all of it */
	bool upgraded;		  /* guaranteed by now, whatever the spec says */
	bool paused;		  /* stands still on its GPUs, within its memory limit */
	bool deep;		  /* with SW_WANT_SUSPEND: off its GPUs whole, if that can be */
	bool held;		  /* with SW_WANT_SUSPEND: it is known that its GPUs' memory could not leave */
	const char *
		/* of a suspend, a stop or a move: where it comes from, why, what comes next; for
		 * the job's log. "for job 7 (user ann): it goes on when that job ends"; NULL */
		why;
	/* with SW_WANT_RUN: why there is no order that could be carried out: the
	 * run ends with that; NULL */
	const char *unfit;
};

struct sw_answer_message {
	uint64_t version; /* of the wishes; from 1 */
	/* SW_LEASE_OF_OLD_MS; less: the controller is of version 0.1, and runs all
	 * jobs of a silent node anew */
	int64_t lease_ms;
	int64_t retry_ms;      /* when to sync again if the answer came at once and brought nothing new */
	struct sw_want *wants; /* all of them: a run that is not among them must stop */
	size_t want_count;
	struct sw_unread *unread; /* of a decoded answer: wishes */
	size_t unread_count;
	void *owner;
};

/* ---- JSON */

int sw_sync_decode(const char *text, size_t size, struct sw_sync **ret_sync, struct sw_err *err);
/* The same in steps of at most a millisecond or two: until *ret_sync is written. The text must stay
 * where it is until then. */
struct sw_sync_reader;
int sw_sync_reader_new(const char *text, size_t size, struct sw_sync_reader **ret_reader, struct sw_err *err);
int sw_sync_reader_step(struct sw_sync_reader *reader, struct sw_sync **ret_sync, struct sw_err *err);
size_t sw_sync_reader_at(const struct sw_sync_reader *reader); /* bytes that are read */
void sw_sync_reader_free(struct sw_sync_reader *reader);
SW_DEFINE_FREEP(struct sw_sync_reader, sw_sync_reader_free)
/* The caller frees *ret_text (free()); it is NUL-terminated. SW_ENOMEM or SW_ELIMIT. A sync that
 * would be too long goes without its samples, and then without the sentences for people. What
 * became of the runs is always told. */
int sw_sync_encode(const struct sw_sync *sync, char **ret_text, size_t *ret_size, struct sw_err *err);
void sw_sync_free(struct sw_sync *sync); /* of a decoded one */
SW_DEFINE_FREEP(struct sw_sync, sw_sync_free)

/* Which runs a sync speaks of, found by their ids. Points into the sync. */
struct sw_told_run {
	struct sw_run_id id;
	const struct sw_sync_run *run; /* NULL: what was said of it cannot be read */
};
struct sw_told {
	struct sw_told_run *items; /* by id */
	size_t count;
};
int sw_told_make(const struct sw_sync *sync, struct sw_told *ret_told); /* 0 or SW_ENOMEM */
void sw_told_release(struct sw_told *told);
/* NULL: nothing was said of it. */
const struct sw_told_run *sw_told_find(const struct sw_told *told, struct sw_run_id id);

int sw_answer_decode(const char *text, size_t size, struct sw_answer_message **ret_answer, struct sw_err *err);
int sw_answer_encode(const struct sw_answer_message *answer, char **ret_text, size_t *ret_size, struct sw_err *err);
void sw_answer_free(struct sw_answer_message *answer);
SW_DEFINE_FREEP(struct sw_answer_message, sw_answer_free)

void sw_run_spec_defaults(struct sw_run_spec *spec);
/* What it takes as text, at most. */
size_t sw_run_spec_size(const struct sw_run_spec *spec);
/* A copy of a wish with everything it points to, in one block: free() frees it. */
int sw_want_copy(const struct sw_want *want, struct sw_want **ret_copy);

/* What the supervisor of a run is told by its folder (spec.json). */
struct sw_run_order {
	const char *node;
	int64_t lease_boot_ns;	 /* how long it may run at first; 0: for ever */
	const char *cgroup;	 /* folder of cgroup v2 below which the run may have its own; NULL: none */
	bool no_device_rule;	 /* nothing in the kernel keeps it to the device files of its GPUs, as the operator wishes */
	const char *gpu_library; /* libsharewell-gpu.so; NULL: its GPUs are as the driver gives them */
	struct sw_want want;
	void *owner;
};
int sw_run_order_decode(const char *text, size_t size, struct sw_run_order **ret_order, struct sw_err *err);
int sw_run_order_encode(const struct sw_run_order *order, char **ret_text, size_t *ret_size, struct sw_err *err);
void sw_run_order_free(struct sw_run_order *order);
SW_DEFINE_FREEP(struct sw_run_order, sw_run_order_free)

/* One run's own account (status.json, exit.json, and the lines that a supervisor says). */
struct sw_run_account {
	struct sw_sync_run run;
	uint32_t supervisor; /* process id */
	uint64_t order;	     /* the last order that it has carried out; 0: none */
	const char *note;    /* what could not be done as asked, for people; may be NULL */
	const char *gpu;     /* how its memory left the GPUs or came back, for people; may be NULL */
	void *owner;
};
int sw_run_account_decode(const char *text, size_t size, struct sw_run_account **ret_account, struct sw_err *err);
int sw_run_account_encode(const struct sw_run_account *account, char **ret_text, size_t *ret_size, struct sw_err *err);
void sw_run_account_free(struct sw_run_account *account);
SW_DEFINE_FREEP(struct sw_run_account, sw_run_account_free)

const char *sw_run_state_name(enum sw_run_state state);
/* "stranger", "excluded", "dead", "silent". */
const char *sw_shut_name(enum sw_shut why);
bool sw_shut_parse(const char *name, enum sw_shut *ret_why);

#endif
