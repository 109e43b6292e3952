#include "runtime/start.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/account.h"
#include "runtime/driver.h"
#include "runtime/freers.h"
#include "runtime/gate.h"
#include "runtime/hooks.h"
#include "runtime/pace.h"
#include "runtime/places.h"
#include "runtime/profile.h"

bool sw_moves;
bool sw_stays;

/* The child of a process that used the GPU cannot use it: the driver says so to it, and
 * we stay out of the way. */
static void in_child(void)
{
	sw_moves = false;
	sw_freers_forget();
	sw_pace_forget();
	sw_profile_forget();
	sw_export_forget();
	sw_gate_forget();
	sw_account_forget();
}

static void start(void)
{
	if (!sw_account_open())
		return;
	pthread_atfork(NULL, NULL, in_child);
	const char *moves = getenv(SW_PAGE_MOVES_ENV);
	sw_stays = moves != NULL && strcmp(moves, "no") == 0;
	/* Without the attendant the gate could not be opened again, nor a limit heard. */
	sw_moves = sw_driver_can_move() && sw_attendant_start();
}

static void start_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, start);
}

CUresult hook_cuInit(U flags)
{
	if (!sw_driver_ready() || sw_driver.init == NULL)
		return CUDA_ERROR_NO_DEVICE;
	/* Before the driver has looked; later other threads may be reading the environment. */
	int door = sw_page == NULL ? sw_places_enter() : -1;
	CUresult result = sw_driver.init(flags);
	if (result == CUDA_SUCCESS)
		start_once();
	sw_places_leave(door);
	return result;
}
