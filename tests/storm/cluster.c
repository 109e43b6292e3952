/* The processes of the cluster: starting, finding, killing, taking up. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/processes.h"
#include "server/server.h"
#include "server/soundness.h"
#include "storm.h"

/* A victim that is not there yet is waited for. */
enum { HUNT_US = 60000, HUNT_STEP_US = 500 };
#define STALL_NS SW_NS_PER_S

int64_t boot_now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * SW_NS_PER_S + now.tv_nsec;
}

void rest_us(int64_t us)
{
	nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

void violation(struct cluster *cluster, enum check check, const char *fmt, ...)
{
	char text[1000];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	cluster->tally->violations[check]++;
	printf("VIOLATION in round %" PRIu64 ": %s\n  replay its plan: tools/soak --live --seed %" PRIu64 " --rounds 1 --placement %s\n",
	       cluster->seed, text, cluster->seed, cluster->placement);
	fflush(stdout);
}

/* ---- daemons */

static char unsound_path[PATH_MAX];

/* Whatever happens to this controller, the round hears of a state that is not sound. */
static void hear_note(void *user, const char *line)
{
	(void)user;
	fprintf(stderr, "%s\n", line);
	FILE *file = strncmp(line, SW_UNSOUND, sizeof SW_UNSOUND - 1) == 0 ? fopen(unsound_path, "a") : NULL;
	if (file != NULL) {
		fprintf(file, "%s\n", line);
		fclose(file);
	}
}

int run_controller(const char *folder, const char *placement)
{
	char journal[PATH_MAX], socket[PATH_MAX], runs[PATH_MAX], logs[PATH_MAX];
	snprintf(journal, sizeof journal, "%s/journal.db", folder);
	snprintf(socket, sizeof socket, "%s/controller.sock", folder);
	snprintf(runs, sizeof runs, "%s/a/runs", folder);
	snprintf(logs, sizeof logs, "%s/a/logs", folder);
	snprintf(unsound_path, sizeof unsound_path, "%s/unsound", folder);
	const struct sw_controller_options options = {
		.journal_path = journal,
		.socket_path = socket,
		.runs_folder = runs,
		.logs_folder = logs,
		.policy = "las",
		.placement = placement,
		.silence_ns = 4 * SW_NS_PER_S,
		.retry_backoff_ns = SW_NS_PER_S / 20,
		.validate_every = 1,
		.on_note = hear_note,
	};
	struct sw_err err = {0};
	int r = sw_controller_run(&options, &err);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", err.fact, err.detail);
	return r < 0 ? 1 : 0;
}

/* Its GPUs are emulated, each agent's its own. Their jobs find them by the
 * same settings (job.c). */
static void become_agent(const struct cluster *cluster, const struct daemon *daemon, const char *controller, const char *state)
{
	char folder[PATH_MAX], settings[1000];
	snprintf(folder, sizeof folder, "%s/emu-%s", cluster->folder, daemon->name);
	int used = snprintf(settings, sizeof settings, "gpus=%d;memory=1G;context=1M;launch_us=0;copy_latency_us=0", GPUS_PER_NODE);
	for (int gpu = 0; gpu < GPUS_PER_NODE; gpu++)
		used += snprintf(settings + used, sizeof settings - (size_t)used, ";gpu.%d.uuid=" GPU_UUID, gpu, daemon->name, gpu);
	setenv("SHAREWELL_EMU", settings, 1);
	setenv("SHAREWELL_EMU_STATE", folder, 1);
	setenv("SHAREWELL_HOST_LEDGER", cluster->ledger, 1);
	setenv("LD_LIBRARY_PATH", cluster->emu, 1);
	execl(cluster->program, "sharewell", "agent", "--controller", controller, "--state", state, "--node", daemon->name, (char *)NULL);
}

static _Noreturn void become(const struct cluster *cluster, const struct daemon *daemon)
{
	char log[PATH_MAX], state[PATH_MAX], controller[PATH_MAX + 8];
	snprintf(log, sizeof log, "%s/%s.log", cluster->folder, daemon->name);
	snprintf(state, sizeof state, "%s/%s", cluster->folder, daemon->name);
	snprintf(controller, sizeof controller, "unix:%s", cluster->socket);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a storm that is interrupted leaves no cluster behind */
	dup2(fd, 1);
	dup2(fd, 2);
	if (daemon->kind == DAEMON_CONTROLLER)
		execl(cluster->self, "storm", "--controller", cluster->folder, cluster->placement, (char *)NULL);
	else
		become_agent(cluster, daemon, controller, state);
	_exit(127);
}

static void start_daemon(const struct cluster *cluster, struct daemon *daemon)
{
	pid_t pid = fork();
	if (pid == 0)
		become(cluster, daemon);
	daemon->pid = pid > 0 ? pid : 0;
	daemon->was_killed = false;
}

static void take_up(struct cluster *cluster, pid_t pid, int status)
{
	if (pid == cluster->stranger.pid) {
		if (!cluster->stranger.has_left)
			violation(cluster, CHECK_HEALTH, "the process outside the queue ended by itself with status 0x%x",
				  (unsigned)status);
		cluster->stranger.pid = 0;
		return;
	}
	for (size_t i = 0; i < sizeof cluster->daemons / sizeof cluster->daemons[0]; i++) {
		struct daemon *daemon = &cluster->daemons[i];
		if (daemon->pid != pid)
			continue;
		daemon->pid = 0;
		/* A process that is told to end may not have come so far as to listen. */
		if (daemon->was_killed || (daemon->was_told && (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM))))
			return;
		violation(cluster, CHECK_HEALTH, "%s ended by itself with status 0x%x; see %s/%s.log", daemon->name, (unsigned)status,
			  cluster->folder, daemon->name);
		daemon->back_at_ns = boot_now_ns() + SW_NS_PER_S / 5;
		return;
	}
	/* An orphan: a supervisor, a nursery, or what they left. Only the storm kills them. */
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM && WTERMSIG(status) != SIGUSR1 &&
	    WTERMSIG(status) != SIGHUP)
		violation(cluster, CHECK_HEALTH, "process %ld died by signal %d", (long)pid, WTERMSIG(status));
}

void cluster_pump(struct cluster *cluster)
{
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		take_up(cluster, pid, status);
	int64_t now_ns = boot_now_ns();
	if (cluster->pumped_at_ns != 0 && now_ns - cluster->pumped_at_ns > STALL_NS)
		cluster->has_stalled = true;
	cluster->pumped_at_ns = now_ns;
	stranger_pump(cluster, now_ns);
	for (size_t i = 0; i < sizeof cluster->daemons / sizeof cluster->daemons[0]; i++)
		if (cluster->daemons[i].pid == 0 && now_ns >= cluster->daemons[i].back_at_ns)
			start_daemon(cluster, &cluster->daemons[i]);
}

static bool make_file(const struct cluster *cluster, const char *name, const char *text)
{
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s/%s", cluster->folder, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return good;
}

bool cluster_start(struct cluster *cluster)
{
	char path[PATH_MAX];
	snprintf(cluster->ledger, sizeof cluster->ledger, "%s/host-ledger", cluster->folder);
	snprintf(path, sizeof path, "%s/work", cluster->folder);
	if (mkdir(path, 0777) != 0)
		return false;
	snprintf(cluster->socket, sizeof cluster->socket, "%s/controller.sock", cluster->folder);
	snprintf(path, sizeof path, "%s/locks", cluster->folder);
	if (mkdir(path, 0777) != 0 || !make_file(cluster, "witness", ""))
		return false;
	cluster->daemons[0] = (struct daemon){.kind = DAEMON_CONTROLLER, .name = "controller"};
	for (int i = 0; i < NODES; i++) {
		struct daemon *agent = &cluster->daemons[1 + i];
		*agent = (struct daemon){.kind = DAEMON_AGENT, .name = {(char)('a' + i)}};
	}
	cluster_pump(cluster);
	return true;
}

bool cluster_stop(struct cluster *cluster)
{
	size_t count = sizeof cluster->daemons / sizeof cluster->daemons[0], left = count;
	for (size_t i = 0; i < count; i++)
		if (cluster->daemons[i].pid > 0) {
			cluster->daemons[i].was_told = true;
			kill(cluster->daemons[i].pid, SIGTERM);
		}
	for (int64_t end_ns = boot_now_ns() + 20 * SW_NS_PER_S; left > 0 && boot_now_ns() < end_ns; rest_us(2000)) {
		int status;
		for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
			take_up(cluster, pid, status);
		/* Not only the daemons: nothing at all. */
		left = waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD ? 0 : 1;
	}
	return left == 0;
}

/* ---- which process is which */

static void read_name(pid_t pid, char name[32])
{
	char path[40];
	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	name[0] = '\0';
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, name, 31) : 0;
	if (fd >= 0)
		close(fd);
	name[n > 0 ? n : 0] = '\0';
	name[strcspn(name, "\n")] = '\0';
}

/* Supervisors and their log writers are called after their run, "sw:12.1"; a log writer is the
 * child of a supervisor. */
static bool is_of_run(const char *name)
{
	return strncmp(name, "sw:", 3) == 0 && name[3] >= '0' && name[3] <= '9';
}

static bool classify(pid_t pid, pid_t parent, enum target *ret_target, char name[32])
{
	char above[32];
	read_name(pid, name);
	read_name(parent, above);
	bool below_supervisor = is_of_run(above);
	if (is_of_run(name))
		*ret_target = below_supervisor ? KILL_WRITER : KILL_SUPERVISOR;
	else if (below_supervisor)
		*ret_target = KILL_JOB;
	else if (strcmp(name, "sw:nursery") == 0)
		*ret_target = KILL_NURSERY;
	else
		return false;
	return true;
}

static bool is_daemon(const struct cluster *cluster, pid_t pid)
{
	for (size_t i = 0; i < sizeof cluster->daemons / sizeof cluster->daemons[0]; i++)
		if (cluster->daemons[i].pid == pid)
			return true;
	return false;
}

/* Which run it belongs to: its supervisor is called after it. */
static void read_run(const struct sw_process *process, struct victim *victim)
{
	char name[32];
	read_name(victim->target == KILL_SUPERVISOR ? process->pid : process->parent, name);
	(void)sscanf(name, "sw:%" SCNu64 ".%" SCNu32, &victim->job, &victim->epoch);
}

/* Chooses one of those that there are; false: there is none. */
static bool find_victim(const struct cluster *cluster, enum target target, uint32_t pick, struct sw_process *ret_process,
			struct victim *ret_victim)
{
	struct sw_processes processes = {0};
	size_t found = 0;
	char name[32];
	enum target kind;
	if (sw_processes_read(&processes) < 0)
		return false;
	sw_processes_choose_tree(&processes, getpid(), NULL);
	for (size_t pass = 0; pass < 2; pass++) {
		size_t wanted = pass > 0 && found > 0 ? pick % found : SIZE_MAX, seen = 0;
		for (size_t i = 0; i < processes.list.count; i++) {
			const struct sw_process *process = &processes.list.items[i];
			if (!process->chosen || process->state == 'Z' || is_daemon(cluster, process->pid) ||
			    !classify(process->pid, process->parent, &kind, name) || kind != target)
				continue;
			if (seen++ == wanted) {
				*ret_process = *process;
				*ret_victim = (struct victim){.target = target, .pid = process->pid};
				read_run(process, ret_victim);
			}
		}
		found = pass == 0 ? seen : found;
	}
	sw_processes_release(&processes);
	return found > 0;
}

void cluster_name_all(char *names, size_t size)
{
	struct sw_processes processes = {0};
	size_t used = 0;
	names[0] = '\0';
	if (sw_processes_read(&processes) < 0)
		return;
	sw_processes_choose_tree(&processes, getpid(), NULL);
	for (size_t i = 0; i < processes.list.count; i++) {
		const struct sw_process *process = &processes.list.items[i];
		char name[32];
		read_name(process->pid, name);
		if (process->chosen && used < size)
			used += (size_t)snprintf(names + used, size - used, " %ld(%s, %c, of %ld)", (long)process->pid, name,
						 process->state, (long)process->parent);
	}
	sw_processes_release(&processes);
}

size_t cluster_processes(struct cluster *cluster, char *names, size_t size)
{
	struct sw_processes processes = {0};
	size_t count = 0, used = 0;
	names[0] = '\0';
	if (sw_processes_read(&processes) < 0)
		return SIZE_MAX;
	sw_processes_choose_tree(&processes, getpid(), NULL);
	for (size_t i = 0; i < processes.list.count; i++) {
		const struct sw_process *process = &processes.list.items[i];
		char name[32];
		enum target kind;
		if (!process->chosen || process->state == 'Z' || is_daemon(cluster, process->pid))
			continue;
		/* A process that is unknown and belongs to none is an orphan of a job; a
		 * sampler ends with its agent. */
		bool known = classify(process->pid, process->parent, &kind, name);
		if ((known && kind == KILL_NURSERY) || (!known && (process->parent != getpid() || strcmp(name, "sw:sampler") == 0)))
			continue;
		count++;
		if (used < size)
			used += (size_t)snprintf(names + used, size - used, " %ld(%s)", (long)process->pid, name);
	}
	sw_processes_release(&processes);
	return count;
}

/* ---- killing */

static void kill_daemon(struct cluster *cluster, struct daemon *daemon, const struct kill_plan *plan)
{
	if (daemon->pid == 0) {
		cluster->tally->missed_kills++;
		return;
	}
	daemon->was_killed = true;
	daemon->back_at_ns = boot_now_ns() + (int64_t)plan->back_after_us * SW_NS_PER_US;
	kill(daemon->pid, SIGKILL);
	cluster->tally->kills[plan->target]++;
}

static void kill_process(struct cluster *cluster, const struct kill_plan *plan)
{
	struct sw_process process = {0}, now;
	struct victim victim = {0};
	bool found = false;
	for (int waited = 0; waited < HUNT_US && !found; waited += HUNT_STEP_US) {
		found = find_victim(cluster, plan->target, plan->pick, &process, &victim);
		if (!found) {
			cluster_pump(cluster);
			rest_us(HUNT_STEP_US);
		}
	}
	bool is_it = found && sw_process_read(victim.pid, &now) && now.started == process.started;
	struct victim *slot = is_it ? sw_vec_push(&cluster->victims) : NULL;
	if (slot == NULL) {
		cluster->tally->missed_kills++;
		return;
	}
	*slot = victim;
	kill(victim.pid, SIGKILL);
	cluster->tally->kills[plan->target]++;
}

static void kill_daemons(struct cluster *cluster, const struct kill_plan *plan)
{
	for (size_t i = 0; i < sizeof cluster->daemons / sizeof cluster->daemons[0]; i++) {
		struct daemon *daemon = &cluster->daemons[i];
		daemon->back_at_ns = boot_now_ns() + (int64_t)plan->back_after_us * SW_NS_PER_US;
		if (daemon->pid == 0)
			continue;
		daemon->was_killed = true;
		kill(daemon->pid, SIGKILL);
	}
}

/* As if the machine's user session had ended: jobs find themselves alone. */
static void kill_all(struct cluster *cluster, const struct kill_plan *plan)
{
	struct sw_processes processes = {0};
	kill_daemons(cluster, plan);
	if (sw_processes_read(&processes) < 0)
		return;
	sw_processes_choose_tree(&processes, getpid(), NULL);
	for (size_t i = 0; i < processes.list.count; i++) {
		const struct sw_process *process = &processes.list.items[i];
		char name[32];
		struct victim victim = {.pid = process->pid};
		if (!process->chosen || process->state == 'Z' || !classify(process->pid, process->parent, &victim.target, name) ||
		    victim.target == KILL_JOB)
			continue;
		read_run(process, &victim);
		struct victim *slot = sw_vec_push(&cluster->victims);
		if (slot == NULL)
			break;
		*slot = victim;
		kill(process->pid, SIGKILL);
	}
	sw_processes_release(&processes);
	cluster->tally->kills[KILL_ALL]++;
}

void cluster_kill(struct cluster *cluster, const struct kill_plan *plan)
{
	if (plan->target == KILL_ALL)
		kill_all(cluster, plan);
	else if (plan->target == KILL_CONTROLLER)
		kill_daemon(cluster, &cluster->daemons[0], plan);
	else if (plan->target == KILL_AGENT)
		kill_daemon(cluster, &cluster->daemons[1 + plan->pick % NODES], plan);
	else
		kill_process(cluster, plan);
}
