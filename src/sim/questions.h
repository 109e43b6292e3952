/* Questions of the simulated policy: each is solved when it is asked, and its answer arrives when
 * the world's solver would be done. */
#ifndef SW_SIM_QUESTIONS_H
#define SW_SIM_QUESTIONS_H

#include "core/engine.h"
#include "sim/model.h"
#include "world/world.h"

struct sw_sim_question; /* whose answer is to come */
struct sw_sim_questions {
	const struct sw_world *world;
	SW_VEC(struct sw_sim_question) coming; /* by the moment, then by number */
	uint64_t asked;			       /* the last number that was seen */
	size_t told;			       /* so many are events of this step */
};
void sw_sim_questions_release(struct sw_sim_questions *questions);
/* After a step. SW_ENOMEM */
int sw_sim_questions_solve(struct sw_sim_questions *questions, const struct sw_engine *engine, sw_ns now);
/* When the next answer comes; SW_TIME_NEVER: none will. */
sw_ns sw_sim_questions_next(const struct sw_sim_questions *questions);
/* Adds those that come now. Their bytes are valid until sw_sim_questions_solve(). SW_ENOMEM */
int sw_sim_questions_collect(struct sw_sim_questions *questions, sw_ns now, sw_events *events);

#endif
