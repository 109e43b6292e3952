/* What agents said of their GPUs, and how these did. */
#ifndef SW_SERVER_DEVICES_H
#define SW_SERVER_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/sync.h"
#include "base/vec.h"
#include "brain/brain.h"

#define SW_NODES_MAX 16384u

struct sw_device {
	char *uuid, *name; /* name NULL: not known */
	uint64_t memory_bytes;
	bool sampled;
	int64_t sampled_at_ns;
	uint64_t memory_used_bytes;
	uint32_t busy_milli, power_mw;
	int32_t temperature_c;
};
/* How a run does on one GPU. */
struct sw_use {
	struct sw_run_id run;
	char gpu[48]; /* UUID */
	int64_t sampled_at_ns;
	uint64_t memory_bytes, host_bytes;
	uint64_t limit_bytes, iteration_ns; /* 0: not known */
	uint32_t outside;		    /* of its processes use the GPU outside the runtime */
	bool has_share;			    /* it has the GPU runtime, so the next two are known */
	bool yields;			    /* it works only while guaranteed jobs beside it do not */
	bool trespass;			    /* the GPU is none of the job's own */
	uint32_t share_milli;		    /* of the GPU's time that it may take */
};
/* A process outside the queue on a GPU. */
struct sw_stranger {
	char gpu[48];		    /* UUID */
	uint32_t pid;		    /* 0: not known */
	char user[64], program[64]; /* "": not known */
	uint64_t memory_bytes;
	int64_t since_ns;
};
struct sw_machine {
	char *name;
	SW_VEC(struct sw_device) devices;
	SW_VEC(struct sw_use) uses;
	SW_VEC(struct sw_stranger) strangers;
	int64_t look_ns;		       /* its agent's last look took; 0: not known */
	uint64_t host_bytes, host_limit_bytes; /* host memory that contents of GPUs take there, and may; the second is 0: not known */
};
typedef SW_VEC(struct sw_machine) sw_machines; /* sorted by name */
void sw_machines_clear(sw_machines *machines);
const struct sw_machine *sw_machines_find(const sw_machines *machines, const char *name);
void sw_machines_hear(sw_machines *machines, const struct sw_sync *sync);
/* From a node record, for what was said before this controller started; and from all that the
 * brain knows. */
void sw_machines_recall(sw_machines *machines, const char *body, size_t size);
void sw_machines_recall_all(sw_machines *machines, const struct sw_brain *brain);

#endif
