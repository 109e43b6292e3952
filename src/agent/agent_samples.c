/* The lines of the sampler become the inventory and the samples of the next sync. A sampler that
 * hangs in its driver is replaced, with bounded retries. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent_gpus.h"
#include "agent/agent_links.h"
#include "agent/agent_samples.h"
#include "agent/agent_state.h"
#include "base/cleanup.h"
#include "base/now.h"

/* Patience is in slices: a process that was stopped itself finds one of them over, and not all.
 * Opening the GPUs takes several times the patience. */
enum { STEP = 1 << 16, SLICES = 4, OPENING = 3 };

/* ---- the life of samplers */

static void set_timer(struct sw_agent *agent, bool restarting, int64_t in_ms)
{
	agent->gpus.restarting = restarting;
	struct timeval in = {.tv_sec = in_ms / 1000, .tv_usec = in_ms % 1000 * 1000};
	evtimer_add(agent->sampler_timer, &in);
}

static int64_t patience_ms(const struct sw_agent *agent)
{
	/* The sampler pauses between its looks. */
	return agent->sampler_options.every_ms + (agent->options->patience_ms > 0 ? agent->options->patience_ms : 20000);
}

/* The next line is waited for from now on. */
static void watch(struct sw_agent *agent, uint32_t times)
{
	agent->gpus.slices = SLICES * times;
	set_timer(agent, false, patience_ms(agent) / SLICES);
}

/* How many that hang in their driver are still there. */
static uint32_t count_hung(struct sw_agent *agent)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < SW_PATIENCE_HUNG_MAX; i++) {
		pid_t *pid = &agent->gpus.hung[i];
		if (*pid != 0 && waitpid(*pid, NULL, WNOHANG) != 0)
			*pid = 0;
		count += *pid != 0;
	}
	return count;
}

static void stop(struct sw_agent *agent)
{
	if (agent->sampler_event != NULL)
		event_free(agent->sampler_event);
	agent->sampler_event = NULL;
	pid_t hung = sw_sampler_stop(&agent->sampler);
	agent->sampler_text.count = 0;
	for (uint32_t i = 0; i < SW_PATIENCE_HUNG_MAX && hung != 0; i++)
		if (agent->gpus.hung[i] == 0) {
			agent->gpus.hung[i] = hung;
			hung = 0;
		}
}

static void take_step(struct sw_agent *agent, struct sw_patience_step step)
{
	if (step.silent != NULL) {
		sw_agent_gpus_silence(agent, step.silent);
		sw_agent_brain_nudge(agent->brain);
	}
	set_timer(agent, true, step.after_ms);
}

/* No line has come for too long. A sampler that hangs in the call for one GPU is replaced by one
 * that leaves that GPU out. */
static void on_silence(struct sw_agent *agent)
{
	int asking = atomic_load(&agent->sampler.page->asking);
	stop(agent);
	struct sw_patience_step step = sw_patience_hangs(&agent->gpus.patience, sw_now_boot_ns(), asking);
	if (step.silent == NULL)
		sw_agent_say(agent, "GPU %d does not answer its driver; left out for at least %lld s", asking - 1,
			     (long long)(agent->gpus.patience.skip_ms / 1000));
	take_step(agent, step);
}

/* ---- lines */

/* Runs on GPUs that are none of theirs: said once of each, or stopped. */
static void hear_trespass(struct sw_agent *agent, const struct sw_sync *seen)
{
	for (size_t s = 0; s < seen->sample_count; s++) {
		const struct sw_sync_sample *sample = &seen->samples[s];
		enum sw_trespass trespass = sample->trespass && sample->has_run && sample->gpu != NULL
						    ? sw_agent_brain_trespass(agent->brain, sample->run, sample->gpu)
						    : SW_TRESPASS_NONE;
		if (trespass == SW_TRESPASS_NEW)
			sw_agent_say(agent, "job %" PRIu64 " uses GPU %s, which it was not given%s", sample->run.job, sample->gpu,
				     agent->options->stop_trespassers ? "; it is stopped" : "");
		if (trespass != SW_TRESPASS_NONE && agent->options->stop_trespassers)
			sw_agent_tell(agent, sample->run, "trespass %s\n", sample->gpu);
	}
}

static void take_line(struct sw_agent *agent, const char *line, size_t size)
{
	struct sw_sync *seen = NULL;
	if (sw_sync_decode(line, size, &seen, NULL) < 0)
		return;
	hear_trespass(agent, seen);
	if (seen->sample_count > 0)
		sw_agent_brain_look(agent->brain, sw_now_boot_ns(), seen->samples, seen->sample_count);
	sw_agent_gpus_hear(agent, seen);
	sw_agent_brain_nudge(agent->brain);
	if (agent->gpus.silent) {
		/* It looks at processes; the driver is tried again by another one. */
		if (!agent->gpus.restarting)
			take_step(agent, sw_patience_is_blind(&agent->gpus.patience));
		return;
	}
	watch(agent, 1);
	if (sw_patience_looks(&agent->gpus.patience, sw_now_boot_ns(), seen->inventory != NULL, count_hung(agent)))
		set_timer(agent, true, 0);
}

static void take_lines(struct sw_agent *agent)
{
	size_t begin = 0;
	for (size_t i = 0; i < agent->sampler_text.count; i++)
		if (agent->sampler_text.items[i] == '\n') {
			take_line(agent, agent->sampler_text.items + begin, i - begin);
			begin = i + 1;
		}
	agent->sampler_text.count -= begin;
	memmove(agent->sampler_text.items, agent->sampler_text.items + begin, agent->sampler_text.count);
}

/* 0: there is no more now; otherwise it has ended. */
static int read_some(struct sw_agent *agent)
{
	for (;;) {
		if (agent->sampler_text.count > SW_SYNC_BYTES_MAX)
			return SW_ELIMIT;
		char *room = sw_vec_push_n(&agent->sampler_text, STEP);
		if (room == NULL)
			return SW_ENOMEM;
		agent->sampler_text.count -= STEP;
		ssize_t n = read(agent->sampler.pipe, room, STEP);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return SW_EIO;
		agent->sampler_text.count += (size_t)n;
		take_lines(agent);
	}
}

static void on_lines(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_agent *agent = context;
	if (read_some(agent) < 0) {
		stop(agent);
		struct sw_patience_step step = sw_patience_fails(&agent->gpus.patience);
		take_step(agent, step);
		sw_agent_say(agent, "looking at the GPUs has failed; trying again in %lld s", (long long)(step.after_ms / 1000));
	}
	sw_agent_pump(agent);
}

static int listen_to(struct sw_agent *agent)
{
	fcntl(agent->sampler.pipe, F_SETFL, O_NONBLOCK);
	agent->sampler_event = event_new(agent->base, agent->sampler.pipe, EV_READ | EV_PERSIST, on_lines, agent);
	return agent->sampler_event == NULL || event_add(agent->sampler_event, NULL) != 0 ? SW_ENOMEM : 0;
}

/* The greeting of one that is not the first tells nothing new: it is no sync, and left out. */
static void restart(struct sw_agent *agent)
{
	stop(agent);
	agent->sampler_options.skip = agent->gpus.patience.skip;
	if (count_hung(agent) == SW_PATIENCE_HUNG_MAX)
		take_step(agent, sw_patience_is_full(&agent->gpus.patience));
	else if (sw_sampler_start(&agent->sampler_options, &agent->sampler, NULL) < 0 || listen_to(agent) < 0)
		take_step(agent, sw_patience_fails(&agent->gpus.patience));
	else
		watch(agent, OPENING);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_agent *agent = context;
	if (agent->gpus.restarting)
		restart(agent);
	else if (agent->sampler.pid <= 0)
		take_step(agent, sw_patience_fails(&agent->gpus.patience));
	else if (--agent->gpus.slices > 0)
		set_timer(agent, false, patience_ms(agent) / SLICES);
	else
		on_silence(agent);
	sw_agent_pump(agent);
}

static int open_first(struct sw_agent *agent, char about[400], struct sw_err *err)
{
	int r = sw_sampler_start(&agent->sampler_options, &agent->sampler, err);
	return r < 0 ? r : sw_sampler_greet(&agent->sampler, sw_agent_gpus_known(agent) ? OPENING * patience_ms(agent) : 60000, about, err);
}

/* The first one. Where GPUs are known to be here, the agent starts also without a driver that
 * answers. It starts without a GPU that was to be kept back, too. */
static int start(struct sw_agent *agent, struct sw_err *err)
{
	struct sw_err why = {0};
	char about[400];
	bool known = sw_agent_gpus_known(agent);
	agent->sampler_options.exclude_all = true;
	int r = open_first(agent, about, &why);
	agent->sampler_options.exclude_all = false;
	if (r == SW_EINPUT && known) {
		sw_agent_say(agent, "%s", why.fact);
		stop(agent);
		r = open_first(agent, about, &why);
	}
	if (r == 0) {
		sw_agent_say(agent, "%s", about);
		if (listen_to(agent) < 0)
			return sw_err_set(err, SW_ENOMEM, "out of memory");
		watch(agent, OPENING);
		return 0;
	}
	bool may_answer_later = r == SW_EIO || (r == SW_ENOTFOUND && strcmp(agent->sampler_options.gpus, "nvml") == 0);
	if (!known || !may_answer_later) {
		if (err != NULL)
			*err = why;
		return r;
	}
	stop(agent);
	sw_agent_gpus_silence(agent, why.detail);
	take_step(agent, sw_patience_fails(&agent->gpus.patience));
	return sw_agent_gpus_join(agent) < 0 ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
}

int sw_agent_samples_start(struct sw_agent *agent, struct sw_err *err)
{
	const struct sw_agent_options *options = agent->options;
	agent->sampler_options = (struct sw_sampler_options){
		.gpus = options->gpus != NULL ? options->gpus : "auto",
		.state = options->state,
		.every_ms = options->sample_ms > 0 ? options->sample_ms : 2000,
		.runtime = agent->gpu_library[0] != '\0',
		.strangers = options->strangers,
		.small_bytes = options->small_bytes > 0 ? options->small_bytes : SW_FITNESS_SMALL_BYTES,
		.exclude = options->exclude_gpus,
		.cgroup = agent->cgroup,
	};
	sw_agent_gpus_open(agent);
	agent->sampler_timer = evtimer_new(agent->base, on_timer, agent);
	return agent->sampler_timer != NULL ? start(agent, err) : sw_err_set(err, SW_ENOMEM, "out of memory");
}

void sw_agent_samples_stop(struct sw_agent *agent)
{
	stop(agent);
	if (agent->sampler_timer != NULL)
		event_free(agent->sampler_timer);
	sw_vec_free(&agent->sampler_text);
	sw_agent_gpus_release(agent);
}
