/* The parts of the saved brain; for save*.c alone. Functions that load return 0, SW_ENOMEM,
 * or how the pack failed. */
#ifndef SW_BRAIN_SAVE_H
#define SW_BRAIN_SAVE_H

#include "base/pack.h"
#include "brain/state.h"

/* Makes `count` zeroed elements of an array that is read; false when the pack has failed
 * (save.c). */
bool sw_save_make(struct sw_pack *pack, void *ret_items, size_t count, size_t size);

/* ---- jobs (save_jobs.c) */
void sw_save_jobs(struct sw_pack *out, struct sw_brain *brain);
/* What versions below format 13 kept of runs that the engine keeps now. */
struct sw_old_run {
	uint32_t job;
	struct sw_engine_run run;
};
typedef SW_VEC(struct sw_old_run) sw_old_runs;
int sw_save_load_jobs(struct sw_pack *pack, struct sw_brain *brain, sw_old_runs *ret_old);

/* ---- nodes (save_nodes.c) */
void sw_save_nodes(struct sw_pack *out, struct sw_brain *brain);
int sw_save_load_nodes(struct sw_pack *pack, struct sw_brain *brain);
/* Whether the nodes list exactly the runs of the jobs. */
int sw_save_check_seats(struct sw_pack *pack, const struct sw_brain *brain);
/* Ghosts know their jobs; the jobs count them. */
int sw_save_count_ghosts(struct sw_pack *pack, struct sw_brain *brain);

#endif
