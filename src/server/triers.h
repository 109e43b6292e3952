/* The users whose requests were tried last, so that they have their turns one after the other. */
#ifndef SW_SERVER_TRIERS_H
#define SW_SERVER_TRIERS_H

#include <stdint.h>

#define SW_TRIERS_MAX 128u

struct sw_trier {
	uint32_t uid;
	int64_t begun_ns; /* uptime, of the last child for one of its requests */
	int64_t rests_until_ns, fails_until_ns;
};
struct sw_triers {
	struct sw_trier items[SW_TRIERS_MAX];
	uint32_t count;
};
/* NULL: the user is not among them. */
struct sw_trier *sw_trier_find(struct sw_triers *triers, uint32_t uid);
/* In place of the one whose last trial is the longest ago, where there is no room. */
struct sw_trier *sw_trier_make(struct sw_triers *triers, uint32_t uid);

#endif
