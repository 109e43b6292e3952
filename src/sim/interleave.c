#include "sim/interleave.h"

#include <math.h>

/* A stage that never gets its turn: the host uses nothing else. */
#define STUCK_ROUNDS 1000.0

/* Seconds in binary fractions, step by step as that simulator computes them: whether a
 * stage just fits a gap hangs on their last bit. These operations are exact or rounded
 * alike on every machine. */
static double seconds(uint32_t us)
{
	return us / 1000.0 / 1000;
}

/* Whole rounds that `work` fills with gaps of this length; *ret_over is what is left of it. */
static double whole_rounds(double work, double gap, double *ret_over)
{
	*ret_over = gap > 0 ? fmod(work, gap) : 0;
	if (gap > 0)
		return floor(work / gap);
	return work > 0 ? STUCK_ROUNDS : 0;
}

int64_t sw_interleave_rounds(const uint32_t guest_us[SW_STAGES], const uint32_t host_us[SW_STAGES])
{
	double gpu = seconds(guest_us[SW_STAGE_GPU]), network = seconds(guest_us[SW_STAGE_NETWORK]), over;
	double host_data = seconds(host_us[SW_STAGE_DATA]), host_gpu = seconds(host_us[SW_STAGE_GPU]),
	       host_network = seconds(host_us[SW_STAGE_NETWORK]);
	if (host_data + host_gpu + host_network == 0)
		return 0;
	double rounds = whole_rounds(seconds(guest_us[SW_STAGE_DATA]), host_gpu + host_network, &over);
	if (over > 0) {
		/* The last gap is longer than it needs: the next stage begins in it. */
		rounds++;
		gpu -= fmin(fmin(gpu, host_network), host_gpu + host_network - over);
	}
	rounds += whole_rounds(gpu, host_data + host_network, &over);
	if (over > 0) {
		rounds++;
		if (over < host_data)
			network -= fmin(network, host_data + host_gpu - over);
	}
	rounds += whole_rounds(network, host_data + host_gpu, &over);
	if (over > host_data)
		rounds++;
	return (int64_t)rounds;
}
