/* Preloaded into `sharewell share`: a signal that comes when its program is there, and it does not
 * know of it yet; or, as EARLY says, one of a terminal before it is there. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void send_as_terminal(void)
{
	siginfo_t info = {.si_signo = SIGINT, .si_code = SI_KERNEL};
	syscall(SYS_rt_sigqueueinfo, getpid(), SIGINT, &info);
}

pid_t fork(void)
{
	pid_t (*next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	int chosen = strcmp(program_invocation_short_name, "sharewell") == 0, terminal = getenv("EARLY") != NULL;
	if (chosen && terminal)
		send_as_terminal();
	pid_t pid = next();
	if (pid > 0 && chosen && !terminal)
		kill(getpid(), SIGTERM);
	return pid;
}
