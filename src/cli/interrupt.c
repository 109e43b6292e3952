#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t caught;

static void note(int signal_number)
{
	caught = signal_number;
}

void sw_cli_catch_interrupts(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
		struct sigaction before, action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
		/* A caller that started us with a signal ignored (nohup, a
		 * background job) wants it so. */
		if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
}

int sw_cli_interrupted(void)
{
	return caught;
}
