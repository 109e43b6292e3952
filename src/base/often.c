#include "base/often.h"

bool sw_often_may(struct sw_often *often, int64_t now_ns, int64_t every_ns, uint64_t *ret_missed)
{
	if (often->said && now_ns - often->said_ns < every_ns) {
		often->missed++;
		return false;
	}
	*ret_missed = often->missed;
	*often = (struct sw_often){.said = true, .said_ns = now_ns};
	return true;
}
