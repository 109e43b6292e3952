/* The lines of the sampler become the inventory and the samples of the next sync. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_state.h"
#include "agent/supervisor_state.h"
#include "base/cleanup.h"

enum { RESTART_S = 10, STEP = 1 << 16 };

static void take_line(struct sw_agent *agent, const char *line, size_t size)
{
	SW_CLEANUP(sw_sync_freep) struct sw_sync *seen = NULL;
	if (sw_sync_decode(line, size, &seen, NULL) < 0)
		return;
	if (seen->inventory != NULL && sw_agent_brain_inventory(agent->brain, seen->inventory) < 0)
		sw_agent_say(agent, "this node has too many GPUs, or too little memory to list them");
	if (seen->sample_count == 0)
		return;
	sw_agent_brain_look(agent->brain, sw_boot_now(), seen->samples, seen->sample_count);
	sw_sync_free(agent->samples);
	agent->samples = SW_TAKE(seen);
	sw_agent_brain_nudge(agent->brain);
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

static void stop(struct sw_agent *agent)
{
	if (agent->sampler_event != NULL)
		event_free(agent->sampler_event);
	agent->sampler_event = NULL;
	sw_sampler_stop(&agent->sampler);
	agent->sampler_text.count = 0;
}

static void on_lines(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_agent *agent = context;
	if (read_some(agent) < 0) {
		sw_agent_say(agent, "looking at the GPUs has failed; trying again in %d s", RESTART_S);
		stop(agent);
		evtimer_add(agent->sampler_timer, &(struct timeval){.tv_sec = RESTART_S});
	}
	sw_agent_pump(agent);
}

static int listen_to(struct sw_agent *agent)
{
	fcntl(agent->sampler.pipe, F_SETFL, O_NONBLOCK);
	agent->sampler_event = event_new(agent->base, agent->sampler.pipe, EV_READ | EV_PERSIST, on_lines, agent);
	return agent->sampler_event == NULL || event_add(agent->sampler_event, NULL) != 0 ? SW_ENOMEM : 0;
}

static void on_restart(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_agent *agent = context;
	if (sw_sampler_start(&agent->sampler_options, &agent->sampler, NULL) < 0 || listen_to(agent) < 0)
		evtimer_add(agent->sampler_timer, &(struct timeval){.tv_sec = RESTART_S});
}

int sw_agent_samples_start(struct sw_agent *agent, struct sw_err *err)
{
	agent->sampler_options = (struct sw_sampler_options){
		.gpus = agent->options->gpus != NULL ? agent->options->gpus : "auto",
		.state = agent->options->state,
		.every_ms = agent->options->sample_ms > 0 ? agent->options->sample_ms : 2000,
		.runtime = agent->gpu_library[0] != '\0',
	};
	int r = sw_sampler_start(&agent->sampler_options, &agent->sampler, err);
	char about[400];
	if (r == 0)
		r = sw_sampler_greet(&agent->sampler, about, err);
	if (r < 0)
		return r;
	sw_agent_say(agent, "%s", about);
	agent->sampler_timer = evtimer_new(agent->base, on_restart, agent);
	if (agent->sampler_timer == NULL || listen_to(agent) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return 0;
}

void sw_agent_samples_stop(struct sw_agent *agent)
{
	stop(agent);
	if (agent->sampler_timer != NULL)
		event_free(agent->sampler_timer);
	sw_vec_free(&agent->sampler_text);
	sw_sync_free(agent->samples);
}
