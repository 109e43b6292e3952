/* The inside of a supervisor; private to supervisor*.c. */
#ifndef SW_AGENT_SUPERVISOR_STATE_H
#define SW_AGENT_SUPERVISOR_STATE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/cgroup.h"
#include "agent/control.h"
#include "agent/device_group.h"
#include "agent/logger.h"
#include "agent/processes.h"
#include "api/sync.h"
#include "base/number.h"
#include "gpu/gpu.h"
#include "share/checkpoint.h"
#include "share/page.h"

/* Processes that a job leaves behind get so long to end by themselves. */
#define SW_LEFTOVER_GRACE_MS 5000
/* What remains unreachable (of other users) or does not die is given up after this. */
#define SW_UNREACHABLE_NS (10 * SW_NS_PER_S)
/* The log writer may finish for so long after the job. */
#define SW_DRAIN_NS (5 * SW_NS_PER_S)

/* A run that lives so long gets what only long ones need: a socket for an agent that comes later,
 * and its status on disk. */
#define SW_SETTLE_NS (100 * SW_NS_PER_MS)

enum sw_stage {
	SW_STAGE_PREPARING, /* the log writer opens the user's files */
	SW_STAGE_LAUNCHING, /* the job is on its way to exec */
	SW_STAGE_RUNNING,
	SW_STAGE_ENDING,    /* its first process has ended; the rest must go */
	SW_STAGE_DRAINING,  /* the log writer finishes */
	SW_STAGE_RECORDING, /* exit.json is being written */
	SW_STAGE_DONE,
};

enum sw_pause {
	SW_PAUSE_NONE,
	SW_PAUSE_COMING, /* not all processes stand still yet */
	SW_PAUSE_HERE,
};

/* What was asked of the processes that use GPUs, and not seen to be done yet. */
enum sw_gpu_wish {
	SW_GPU_WISH_NONE,
	SW_GPU_WISH_AWAY, /* their memory out of the GPUs */
	SW_GPU_WISH_BACK,
};

/* The run's GPU page (src/share): `gpu` in its folder, or where that points. */
struct sw_supervisor_gpu {
	struct sw_share_page *page; /* NULL: it runs without the GPU runtime */
	char path[PATH_MAX];
	uint64_t host_bytes;  /* that contents of its GPUs may take */
	uint64_t limit_bytes; /* of each GPU's memory, as it was told last */
	enum sw_gpu_wish wish;
	uint32_t number; /* of that wish */
	int64_t asked_at_ns;
	int64_t until_ns;   /* it is waited for */
	int64_t waited_ns;  /* before that, for wishes to leave that were taken back; since it left last */
	int64_t look_at_ns; /* SW_NEVER: nothing to look for */
	char detail[256];   /* why its GPU memory is not where it should be; "": it is */
	char moved[100];    /* how the last move went, for people */
};

enum sw_deep_task {
	SW_DEEP_OUT,
	SW_DEEP_BACK,
	SW_DEEP_MOVE, /* out, and back elsewhere; or, if that cannot be, where it was */
};

/* How it is taken off its GPUs whole, and brought back; see supervisor_deep.c. */
struct sw_supervisor_deep {
	bool wanted;		     /* while it is suspended */
	bool tried;		     /* since that was wished */
	bool off;		     /* all or some of it may be: the driver has to bring it back */
	enum sw_deep_task task;	     /* what the helper is at, or was */
	bool helped;		     /* the helper is gone; what came of it has not been looked at */
	pid_t helper;		     /* 0: none */
	struct sw_deep_board *board; /* shared with it; NULL: there never was one */
	int64_t look_at_ns;	     /* SW_NEVER: nothing to look for */
};

/* How it goes to other GPUs; see supervisor_move.c. */
struct sw_supervisor_move {
	bool leaving;	    /* its memory is on its way out, or about to be, so that the rest can be moved */
	bool shut;	    /* nobody else of it comes to its GPUs meanwhile */
	int64_t until_ns;   /* that is waited for */
	uint32_t count;	    /* of its GPUs */
	int64_t look_at_ns; /* SW_NEVER: nothing to look for */
	int64_t look_step_ns;
	char from[SW_PAGE_GPUS][SW_GPU_UUID_MAX], to[SW_PAGE_GPUS][SW_GPU_UUID_MAX]; /* by their places in the page */
	char gpus[SW_SYNC_PLACES_MAX], moving[SW_SYNC_PLACES_MAX];		     /* the account's */
	char why[256];
};

struct sw_supervisor {
	int folder, lock;
	struct sw_run_order *order;
	const struct sw_run_spec *spec; /* of the order */
	char token[33];
	struct sw_control control;
	struct sw_cgroup cgroup;
	int device_program;	       /* that keeps the group to its GPUs; -1: none */
	int notes;		       /* to the log writer, for lines of our own; -1: none */
	struct sw_processes processes; /* scratch */
	struct sw_log_tail *tail;      /* shared with the log writer */
	int signals, timer;
	int ready;	      /* of the log writer; -1: not waited for */
	int report;	      /* of the launch; -1: over */
	int streams[2];	      /* the ends of the pipes for the job; -1 once it has them */
	pid_t job, logger;    /* 0: none, or reaped */
	struct sw_logger log; /* what the log writer gets; it is born when there is something to write */
	struct sw_supervisor_gpu gpu;
	struct sw_supervisor_deep deep;
	struct sw_supervisor_move move;

	enum sw_stage stage;
	enum sw_pause pause;
	struct sw_run_account account;
	char detail[600], note[300];
	char failure_name[SW_FAILURE_NAME_MAX + 1];
	struct sw_failure_found failure; /* its texts are those of the account */
	bool stopping, killing, warned, lease_is_over;
	bool suspends_first, deep_first; /* it was told to suspend, deep or not, before the job ran */
	uint32_t stop_signal;		 /* that was sent */
	char why[SW_SYNC_WHY_MAX + 1];	 /* of the order that was given last; "": not said */

	/* CLOCK_BOOTTIME; SW_NEVER: off */
	int64_t lease_ns;      /* SW_NEVER: it may go on for ever */
	int64_t kill_at_ns;    /* end of the grace */
	int64_t look_at_ns;    /* next look at the tree, while something shall happen to it */
	int64_t look_step_ns;  /* grows */
	int64_t give_up_at_ns; /* on processes that cannot be killed, or on the log writer */
	int64_t record_at_ns;
	int64_t settle_at_ns;	  /* SW_NEVER: it has settled */
	int64_t running_since_ns; /* for the time limit; SW_NEVER: it stands still */
	int64_t ran_ns;		  /* before that */
	int64_t stands_since_ns;  /* 0: it does not */
};

int64_t sw_boot_now(void);
int64_t sw_real_now(void);

/* supervisor_launch.c */
/* Starts the job, but where the user named files for its output only when a log writer has opened
 * them. A failure becomes the run's exit. */
void sw_supervisor_begin(struct sw_supervisor *supervisor);
/* The pipe of a log that nobody writes yet; -1: there is none. */
int sw_supervisor_unread(const struct sw_supervisor *supervisor);
/* Something came through it, or its end: a log writer takes it over. */
void sw_supervisor_on_output(struct sw_supervisor *supervisor);
void sw_supervisor_on_ready(struct sw_supervisor *supervisor);
void sw_supervisor_on_report(struct sw_supervisor *supervisor);

/* supervisor_words.c */
/* By whom and why the next order comes. */
void sw_supervisor_hear_why(struct sw_supervisor *supervisor, const char *why);
/* A line in the job's log: it stands still now, goes on, has other GPUs, is about to be stopped. */
void sw_supervisor_log_suspend(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_log_resume(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_log_move(struct sw_supervisor *supervisor);
void sw_supervisor_log_stop(struct sw_supervisor *supervisor, const char *reason);

/* supervisor_tree.c */
void sw_supervisor_stop(struct sw_supervisor *supervisor, const char *reason, uint32_t signal, int64_t grace_ms);
/* `deep`: off its GPUs whole, if that can be. */
void sw_supervisor_suspend(struct sw_supervisor *supervisor, bool deep);
void sw_supervisor_resume(struct sw_supervisor *supervisor);
/* Takes up the dead. */
void sw_supervisor_reap(struct sw_supervisor *supervisor);
/* What is due: limits, the next look at a tree that is to stop, to stand still, or to end. */
void sw_supervisor_tick(struct sw_supervisor *supervisor, int64_t now_ns);
int64_t sw_supervisor_next(const struct sw_supervisor *supervisor);

/* supervisor_gpu.c */
/* Makes the page, before the first process of the job. Where that cannot be, the run
 * goes without and says so. */
void sw_supervisor_gpu_open(struct sw_supervisor *supervisor);
void sw_supervisor_gpu_close(struct sw_supervisor *supervisor);
/* The page of a run whose supervisor died. */
void sw_supervisor_gpu_remove(int folder);
/* Asks for its memory to leave the GPUs, or to come back. */
void sw_supervisor_gpu_leave(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_gpu_return(struct sw_supervisor *supervisor, int64_t now_ns);
/* Whether the processes may be stopped: their memory is away, or will not go. */
bool sw_supervisor_gpu_has_left(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_gpu_tick(struct sw_supervisor *supervisor, int64_t now_ns);
/* Why its GPU memory is not where it should be; "": it is. */
void sw_supervisor_gpu_say(struct sw_supervisor *supervisor, const char *detail);

/* "BYTES MILLI WATCHED RUN...": see control.h. */
void sw_supervisor_gpu_terms(struct sw_supervisor *supervisor, const char *words);

/* supervisor_deep.c */
/* How it is to be suspended from now on. */
void sw_supervisor_deep_wish(struct sw_supervisor *supervisor, bool deep);
/* Once its memory has left: whether the processes may be stopped. It is off, or that cannot
 * be, or was not wished. */
bool sw_supervisor_deep_is_settled(struct sw_supervisor *supervisor, int64_t now_ns);
/* Has it brought back to where it was, and then its memory. Its processes must not be stopped. */
void sw_supervisor_deep_return(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_deep_tick(struct sw_supervisor *supervisor, int64_t now_ns);
/* A child is dead; true: it was none of the job's. */
bool sw_supervisor_deep_reaped(struct sw_supervisor *supervisor, pid_t pid);
/* The helper's child; 0: none. */
pid_t sw_supervisor_deep_worker(const struct sw_supervisor *supervisor);

/* Begins a move of what has left by the runtime. */
void sw_supervisor_deep_move(struct sw_supervisor *supervisor, int64_t now_ns);
bool sw_supervisor_deep_is_busy(const struct sw_supervisor *supervisor);

/* supervisor_move.c */
/* "UUID,UUID...": its GPUs from now on, if that can be; else `unmoved` says why it stays, and
 * it goes on where it was. */
/* Its processes can open the device files of its GPUs, and of those that it is on its way to, and
 * of no others; where the system lets us. */
void sw_supervisor_keep_gpus(struct sw_supervisor *supervisor);
/* The numbers of these files, as the driver's folder `proc` has them; one may be there twice.
 * False: of one it is not known. */
bool sw_supervisor_minors(const struct sw_supervisor *supervisor, const char *proc, uint32_t minors[SW_DEVICE_GPUS_MAX], size_t *ret_count);
void sw_supervisor_move(struct sw_supervisor *supervisor, const char *words);
void sw_supervisor_move_tick(struct sw_supervisor *supervisor, int64_t now_ns);
/* It is there (NULL), or is not and why. Whoever calls this sees to it that
 * its memory comes back. */
void sw_supervisor_move_end(struct sw_supervisor *supervisor, const char *why);
/* All GPUs of the node, and what takes their places: those that it leaves change places with
 * those that it goes to. */
int sw_supervisor_move_pairs(const struct sw_supervisor *supervisor, struct sw_checkpoint_pair *pairs, size_t *ret_count,
			     struct sw_err *err);
/* Nobody goes on with a move that has not come to the driver yet. */
void sw_supervisor_move_cancel(struct sw_supervisor *supervisor, const char *why);

/* supervisor_account.c */
/* Notes how it ends, if that is not known yet. */
void sw_supervisor_blame(struct sw_supervisor *supervisor, const char *reason, const char *detail);
/* The state has changed: tells everybody, and writes status.json once it has settled. */
void sw_supervisor_enter(struct sw_supervisor *supervisor, enum sw_run_state state);
/* It has lived for a while, or nobody is linked to it. */
void sw_supervisor_settle(struct sw_supervisor *supervisor, int64_t now_ns);
void sw_supervisor_say(struct sw_supervisor *supervisor, int client);
/* The run is over without a process, or its last one is gone. */
void sw_supervisor_drain(struct sw_supervisor *supervisor);
void sw_supervisor_record(struct sw_supervisor *supervisor);
void sw_supervisor_add_note(struct sw_supervisor *supervisor, const char *text);

/* supervisor_recover.c */
/* Writes down where the job's processes can be found should the supervisor die. */
void sw_supervisor_note_session(const struct sw_supervisor *supervisor);
/* For a folder whose job was, or may have been, started by a supervisor that is dead. `name`
 * is that of the folder. */
int sw_supervisor_recover(int folder, const char *name, struct sw_err *err);

#endif
