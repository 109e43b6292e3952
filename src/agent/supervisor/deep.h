/* A suspended run goes off its GPUs whole, and comes back. */
#ifndef SW_AGENT_SUPERVISOR_DEEP_H
#define SW_AGENT_SUPERVISOR_DEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sw_supervisor;

enum sw_deep_task {
	SW_DEEP_OUT,
	SW_DEEP_BACK,
	SW_DEEP_MOVE, /* out, and back elsewhere; or, if that cannot be, where it was */
};

/* How it is taken off its GPUs whole, and brought back. */
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

#endif
