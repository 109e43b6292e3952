/* The state beside the journal. */
#ifndef SW_SERVER_SNAPSHOTS_H
#define SW_SERVER_SNAPSHOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "brain/brain.h"

struct sw_server;
struct event;

enum sw_snapshot_stage { SW_SNAPSHOT_NONE = 0, SW_SNAPSHOT_COPIES, SW_SNAPSHOT_WRITES, SW_SNAPSHOT_PRUNES };
struct sw_snapshots {
	struct event *step;
	enum sw_snapshot_stage stage;
	uint64_t seq;	      /* of the last record that the last one covers; 0: there is none */
	uint64_t taking_seq;  /* the same of the one that is written */
	size_t size;	      /* of the last one */
	uint64_t bytes_since; /* of records, since then */
	int64_t retry_ns;     /* uptime: not before */
	bool next_here;	      /* the last one failed in its process: the next is made without one */
	/* While the state is copied: the process that does it, what it writes to, and what was
	 * read from there. */
	pid_t child;
	int file; /* 0: none */
	unsigned char *bytes;
	size_t bytes_size, bytes_read;
	unsigned put_off; /* how often the next step was */
};
int sw_snapshots_start(struct sw_server *server, struct sw_err *err);
void sw_snapshots_stop(struct sw_server *server);
/* Makes the brain, from the last snapshot if there is one; the records after it are to be
 * applied. */
int sw_snapshots_load(struct sw_server *server, const struct sw_brain_config *config, struct sw_err *err);
/* Tells watchers' memory of the records before it. */
int sw_snapshots_recall(struct sw_server *server, struct sw_err *err);
/* After a batch: takes one if it is time. */
void sw_snapshots_consider(struct sw_server *server);
/* Takes one at the end, at one go. */
void sw_snapshots_finish(struct sw_server *server);

#endif
