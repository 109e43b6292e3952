/* Lengths of jobs that have left the state, read from their rows once for each brain: forecasts
 * rest on them. */
#ifndef SW_SERVER_RECALL_H
#define SW_SERVER_RECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "brain/lengths.h"

struct sw_server;

struct sw_recall {
	const struct sw_brain *brain; /* that knows them */
	uint64_t from;		      /* the next row; 0: all are read */
	SW_VEC(struct sw_length) lengths;
};
/* Reads some rows, the latest first; false: there are more. */
bool sw_recall_some(struct sw_server *server, struct sw_recall *recall);
void sw_recall_release(struct sw_recall *recall);

#endif
