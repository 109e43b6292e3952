/* The hooked call that makes streams with a priority. Those of an opportunistic job have the lowest
 * there is. A GPU that is shared through MPS goes by the priorities of all of its clients' streams.
 * One that is not goes by those within a process alone. What work a stream does, and in which
 * order, is the same with any priority. */
#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/hooks.h"

/* Numbers grow as priorities fall; streams made without one have the lowest already. */
static int allowed(int priority)
{
	int least = 0, greatest = 0;
	if (sw_page == NULL || atomic_load(&sw_page->job_class) != SW_CLASS_OPPORTUNISTIC || sw_driver.priority_range == NULL ||
	    sw_driver.priority_range(&least, &greatest) != CUDA_SUCCESS)
		return priority;
	return priority < least ? least : priority;
}

CUresult hook_cuStreamCreateWithPriority(P ret, U flags, U priority)
{
	if (SW_MISSING(cuStreamCreateWithPriority))
		return CUDA_ERROR_NOT_INITIALIZED;
	return SW_REAL(cuStreamCreateWithPriority, P, U, U)(ret, flags, (U)allowed((int)priority));
}

CUresult hook_cuGreenCtxStreamCreate(P ret, P green, U flags, U priority)
{
	if (SW_MISSING(cuGreenCtxStreamCreate))
		return CUDA_ERROR_NOT_INITIALIZED;
	return SW_REAL(cuGreenCtxStreamCreate, P, P, U, U)(ret, green, flags, (U)allowed((int)priority));
}
