/* Turns: which jobs run now, where not all fit at once. Gandiva's time slices.
 *
 * Members have a size and share a room, in bytes of one GPU's memory. Where jobs of one GPU each
 * can run on any of several, each has the size 1. The room is then as many as there are GPUs. A
 * member that had its quantum while others wait goes to the end of the queue. The next is the one
 * that waits longest of those that had the least time so far, or at most half a quantum more.
 *
 * Pure: no clock but the caller's, no output but the answer.
 *
 * Invariants:
 *  1. the sizes of those that run are never more than the room, but for one alone
 *     that is larger than it;
 *  2. where all fit, all run, whatever they had;
 *  3. no job that waits is passed over by one behind it. One that is too large for what is free
 *     waits in front until enough is.
 */
#ifndef SW_SHARE_TURNS_H
#define SW_SHARE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SW_TURNS_MEMBERS 64
#define SW_TURNS_QUANTUM_NS INT64_C(60000000000)

struct sw_turns_member {
	uint64_t id;
	uint64_t arrival; /* order among those that had the same */
	uint64_t size;
	bool absent; /* wants no turn now, and its time does not count */
	bool away;   /* is not back yet: its turn begins when it is */
};

/* Kept from one call to the next; starts as all zeroes. */
struct sw_turns {
	int64_t seen_ns;
	uint32_t count;
	struct sw_turns_record {
		uint64_t id;
		int64_t had_ns;		 /* time in which it ran, since turns are taken */
		int64_t until_ns;	 /* of its present turn; 0: none */
		int64_t given_ns;	 /* when that was given */
		int64_t ended_ns;	 /* when the last one ended */
		bool runs, absent, away; /* as of the last call */
	} entries[SW_TURNS_MEMBERS];
};

/* `ret_runs`, one for each member. Members beyond SW_TURNS_MEMBERS wait. */
void sw_turns(struct sw_turns *kept, const struct sw_turns_member *members, size_t count, uint64_t room, int64_t quantum_ns, int64_t now_ns,
	      bool *ret_runs);

#endif
