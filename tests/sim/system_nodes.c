/* Nodes: agents, and the processes that outlive them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_state.h"

static struct process *find_process(struct machine *machine, struct sw_run_id id)
{
	for (size_t p = 0; p < machine->process_count; p++)
		if (machine->processes[p].folder && sw_run_id_compare(machine->processes[p].id, id) == 0)
			return &machine->processes[p];
	return NULL;
}

/* GPUs of a node by their names, with commas between them. */
static const char *name_gpus(const struct machine *machine, uint64_t mask, char text[64])
{
	size_t used = 0;
	text[0] = '\0';
	for (uint32_t g = 0; g < GPUS; g++)
		if (mask >> g & 1)
			used += (size_t)snprintf(text + used, 64 - used, "%sGPU-%s-%u", used > 0 ? "," : "", machine->name + 1, g);
	return text;
}

/* Another run of the same job anywhere, or sits on the same GPU here. */
static void check_alone(struct system *s, const struct machine *here, const struct process *fresh)
{
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		const struct machine *machine = &s->machines[n];
		for (size_t p = 0; p < machine->process_count; p++) {
			const struct process *other = &machine->processes[p];
			if (other == fresh || !other->alive)
				continue;
			/* Parts of one gang carry one epoch. */
			if (other->id.job == fresh->id.job && other->id.epoch != fresh->id.epoch)
				sw_system_broke(s, "a job runs twice at the same time", fresh->id.job);
			/* Chaos packs jobs of which it is known how much memory they need. */
			bool may_share = s->plan->policy == SW_SYSTEM_CHAOS && other->memory_bytes > 0 && fresh->memory_bytes > 0;
			uint64_t theirs = other->gpu_mask | other->going_mask;
			if (machine == here && !other->stands && !may_share && (theirs & (fresh->gpu_mask | fresh->going_mask)) != 0)
				sw_system_broke(s, "a GPU is given twice", fresh->id.job);
		}
	}
}

/* What all processes on a GPU need, standing still or not, but for those whose memory has
 * left it, must fit into it; one that does not say needs all of it. Chaos changes what
 * jobs need as they run. */
static void check_memory(struct system *s, const struct machine *machine)
{
	for (uint32_t g = 0; g < GPUS && s->plan->policy != SW_SYSTEM_CHAOS; g++) {
		uint64_t bytes = 0, job = 0;
		for (size_t p = 0; p < machine->process_count; p++) {
			const struct process *process = &machine->processes[p];
			if (!process->alive || (process->gpu_mask >> g & 1) == 0 || process->depth == SW_DEPTH_OFF ||
			    (process->stands && process->runtime && !process->held))
				continue;
			job = process->id.job;
			bytes += s->memory[job % JOBS_MAX] > 0 ? s->memory[job % JOBS_MAX] : GPU_BYTES;
		}
		if (bytes > GPU_BYTES)
			sw_system_broke(s, "the memory of a GPU is given twice", job);
	}
}

static void start_process(struct system *s, struct machine *machine, const struct sw_agent_action *action)
{
	if (find_process(machine, action->id) != NULL)
		sw_system_broke(s, "a run is started twice", action->id.job);
	if (machine->process_count == RUNS_MAX) {
		sw_system_broke(s, "too many runs", action->id.job);
		return;
	}
	struct process *process = &machine->processes[machine->process_count++];
	*process = (struct process){.id = action->id,
				    .folder = true,
				    .alive = true,
				    .memory_bytes = action->want->spec->gpu_memory_bytes,
				    .grace_ns = action->want->spec->grace_ms * SW_NS_PER_MS,
				    .lease_ns = action->lease_boot_ns != 0 ? action->lease_boot_ns : INT64_MAX};
	for (size_t g = 0; g < action->want->gpus.count; g++)
		process->gpu_mask |= UINT64_C(1) << (action->want->gpus.items[g][6] - '0');
	process->ends_at_ns = node_clock(s, machine) + SW_NS_PER_S + (int64_t)sw_rng_below(&s->rng, 90) * SW_NS_PER_S;
	process->code = s->codes[action->id.job % JOBS_MAX];
	s->score.runs++;
	check_alone(s, machine, process);
	process->runtime = action->id.job % 3 != 0;
	check_memory(s, machine);
	sw_agent_brain_link(machine->brain, action->id, true);
	sw_agent_brain_said(
		machine->brain,
		&(struct sw_sync_run){.id = action->id, .state = SW_RUN_RUNNING, .pid = 1, .reason = "", .movable = process->runtime}, 0);
}

static struct sw_sync_run account_of(const struct machine *machine, struct process *process)
{
	return (struct sw_sync_run){
		.movable = process->runtime,
		.held = process->stands && process->held,
		.gpus = process->was_moved ? name_gpus(machine, process->gpu_mask, process->gpus) : NULL,
		.moving = process->going_mask != 0 && !process->exited ? name_gpus(machine, process->going_mask, process->moving) : NULL,
		.unmoved = process->refused ? "the driver does not want to" : NULL,
		.id = process->id,
		.state = process->exited   ? SW_RUN_EXITED
			 : process->stands ? SW_RUN_SUSPENDED
					   : SW_RUN_RUNNING,
		.depth = process->depth,
		.code = process->exited ? process->code : 0,
		.signal = process->exited ? process->signal : 0,
		.reason = process->reason,
	};
}

static void end_process(struct system *s, struct machine *machine, struct process *process, uint32_t code, uint32_t signal,
			const char *reason)
{
	s->score.cut_short += reason[0] != '\0';
	process->alive = false;
	process->exited = true;
	process->code = code;
	process->signal = signal;
	snprintf(process->reason, sizeof process->reason, "%s", reason);
	if (machine->brain != NULL) {
		struct sw_sync_run account = account_of(machine, process);
		sw_agent_brain_said(machine->brain, &account, process->order);
	}
}

static void say(struct machine *machine, struct process *process)
{
	struct sw_sync_run account = account_of(machine, process);
	if (machine->brain != NULL)
		sw_agent_brain_said(machine->brain, &account, process->order);
}

static void wake_up(struct system *s, struct machine *machine, struct process *process)
{
	process->halts_at_ns = 0;
	process->depth = SW_DEPTH_USUAL;
	if (!process->stands)
		return;
	process->stands = false;
	process->ends_at_ns = node_clock(s, machine) + process->left_ns;
	check_alone(s, machine, process);
	check_memory(s, machine);
}

static void stop_process(struct system *s, struct machine *machine, struct process *process, int64_t grace_ms)
{
	if (grace_ms == 0) {
		end_process(s, machine, process, 0, 9, SW_REASON_STOPPED);
		return;
	}
	wake_up(s, machine, process);
	if (process->dies_at_ns == 0)
		process->dies_at_ns = node_clock(s, machine) + 1 + (int64_t)sw_rng_below(&s->rng, 3) * SW_NS_PER_S;
}

/* Which it may refuse at once, or later. */
static void begin_move(struct system *s, struct machine *machine, struct process *process, const char *gpus)
{
	if (process->going_mask != 0)
		sw_system_broke(s, "a run that moves is moved", process->id.job);
	process->refused = process->dies_at_ns != 0 || process->halts_at_ns != 0 || process->stands;
	for (const char *at = gpus; !process->refused && at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL)
		process->going_mask |= UINT64_C(1) << (at[6] - '0');
	process->arrives_at_ns = node_clock(s, machine) + 1 + (int64_t)sw_rng_below(&s->rng, 4) * SW_NS_PER_S;
	check_alone(s, machine, process);
	say(machine, process);
}

static void end_move(struct system *s, struct machine *machine, struct process *process)
{
	process->refused = sw_rng_below(&s->rng, 3) == 0;
	if (!process->refused)
		process->gpu_mask = process->going_mask;
	process->was_moved |= !process->refused;
	s->score.moves += !process->refused;
	process->going_mask = 0;
	check_alone(s, machine, process);
	check_memory(s, machine);
	say(machine, process);
}

static void carry_out(struct system *s, struct machine *machine, const struct sw_agent_action *action)
{
	struct process *process = find_process(machine, action->id);
	/* As the supervisor does: the numbers of another agent may be lower. */
	if (process != NULL && action->order != 0)
		process->order = action->order;
	switch (action->act) {
	case SW_ACT_START:
		start_process(s, machine, action);
		break;
	case SW_ACT_STOP:
		if (process != NULL && process->alive)
			stop_process(s, machine, process, action->grace_ms);
		break;
	case SW_ACT_SUSPEND:
		if (process == NULL || !process->alive)
			break;
		bool deepens = action->deep && process->depth == SW_DEPTH_USUAL;
		if (process->dies_at_ns == 0 && deepens)
			process->depth = SW_DEPTH_LEAVING;
		if (process->dies_at_ns == 0 && (!process->stands || deepens) && process->halts_at_ns == 0)
			process->halts_at_ns = node_clock(s, machine) + 1 + (int64_t)sw_rng_below(&s->rng, 2) * SW_NS_PER_S;
		say(machine, process);
		break;
	case SW_ACT_RESUME:
		if (process == NULL || !process->alive || process->dies_at_ns != 0)
			break;
		s->score.resumes += process->stands;
		wake_up(s, machine, process);
		say(machine, process);
		break;
	case SW_ACT_MOVE:
		if (process != NULL && process->alive)
			begin_move(s, machine, process, action->gpus);
		break;
	case SW_ACT_TERMS: /* GPUs are not shared here */
		break;
	case SW_ACT_LEASE:
		if (process != NULL && action->lease_boot_ns > process->lease_ns)
			process->lease_ns = action->lease_boot_ns;
		break;
	case SW_ACT_RECOVER:
		if (process != NULL && !process->exited)
			end_process(s, machine, process, 0, 0, SW_REASON_SUPERVISOR_LOST);
		break;
	case SW_ACT_DELETE:
		if (process != NULL) {
			if (process->alive)
				sw_system_broke(s, "a living run is forgotten", action->id.job);
			process->folder = false;
		}
		break;
	default:
		break;
	}
}

void sw_system_agent_turn(struct system *s, uint32_t n)
{
	struct machine *machine = &s->machines[n];
	struct sw_agent_action actions[16];
	size_t count;
	while (machine->brain != NULL && (count = sw_agent_brain_act(machine->brain, node_clock(s, machine), actions, 16)) > 0)
		for (size_t a = 0; a < count; a++)
			carry_out(s, machine, &actions[a]);
	struct sw_sync sync;
	if (machine->brain == NULL || !sw_agent_brain_sync(machine->brain, node_clock(s, machine), &sync))
		return;
	char *text = NULL;
	size_t size = 0;
	sw_system_check(s, sw_sync_encode(&sync, &text, &size, s->err), "a sync cannot be written");
	struct message message = {.to_controller = true, .node = n, .number = sync.number};
	snprintf(message.instance, sizeof message.instance, "%s", machine->instance);
	if (text != NULL)
		sw_system_post(s, message, text, size);
	free(text);
	sw_system_check(s, sw_agent_brain_validate(machine->brain, s->err), "the agent's brain is unsound");
}

void sw_system_agent_hears(struct system *s, const struct message *message)
{
	struct machine *machine = &s->machines[message->node];
	struct sw_answer_message *answer = NULL;
	/* A connection dies with the process that opened it. */
	if (machine->brain == NULL || strcmp(machine->instance, message->instance) != 0)
		return;
	sw_system_check(s, sw_answer_decode(message->text, message->size, &answer, s->err), "an answer cannot be read");
	if (answer == NULL)
		return;
	sw_system_check(s, sw_agent_brain_answer(machine->brain, node_clock(s, machine), message->number, answer),
			"an answer cannot be taken");
	sw_answer_free(answer);
}

/* The GPUs that are there when the agent comes back: at least one. What runs on others does
 * so until it is stopped. */
static void refit(struct system *s, struct machine *machine)
{
	uint64_t before = machine->present;
	machine->present = ALL_GPUS;
	if (s->plan->refits && storms(s) && before != 0 && sw_rng_below(&s->which_gpus, 2) == 0)
		machine->present = 1 + sw_rng_below(&s->which_gpus, ALL_GPUS);
	s->score.refits += before != 0 && machine->present != before;
}

void sw_system_agent_starts(struct system *s, uint32_t n)
{
	struct machine *machine = &s->machines[n];
	refit(s, machine);
	snprintf(machine->name, sizeof machine->name, "n%u", n);
	snprintf(machine->instance, sizeof machine->instance, "%06u", ++machine->starts);
	/* Every other one is of version 0.1, which has no home. */
	char home[SW_SYNC_HOME_MAX + 1];
	snprintf(home, sizeof home, "%032u", n);
	const struct sw_agent_brain_config config = {.node = machine->name,
						     .home = n % 2 != 0 ? home : NULL,
						     .start = n % 2 != 0 ? machine->starts : 0,
						     .instance = machine->instance,
						     .seed = s->plan->seed};
	sw_system_check(s, sw_agent_brain_new(&config, &machine->brain, s->err), "an agent does not start");
	struct sw_sync_gpu gpus[GPUS];
	char uuids[GPUS][32];
	size_t present = 0;
	for (uint32_t g = 0; g < GPUS; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%u-%u", n, g);
		if (machine->present >> g & 1)
			gpus[present++] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "simulated", .memory_bytes = UINT64_C(80) << 30};
	}
	const struct sw_sync_inventory inventory = {gpus, present, 64, UINT64_C(256) << 30};
	sw_system_check(s, sw_agent_brain_inventory(machine->brain, &inventory), "an inventory is refused");
	for (size_t p = 0; p < machine->process_count; p++) {
		struct process *process = &machine->processes[p];
		if (!process->folder)
			continue;
		const char *held[GPUS + 1] = {0};
		size_t count = 0;
		for (uint32_t g = 0; g < GPUS; g++)
			if (process->gpu_mask >> g & 1)
				held[count++] = uuids[g];
		struct sw_sync_run account = account_of(machine, process);
		sw_system_check(s, sw_agent_brain_found(machine->brain, &account, &(struct sw_texts){held, count}),
				"a found run is refused");
		/* As its folder says. */
		const struct sw_run_spec spec = {.gpu_memory_bytes = process->memory_bytes,
						 .lease_ms = s->leases_ms[process->id.job % JOBS_MAX]};
		sw_agent_brain_spec(machine->brain, process->id, &spec);
		sw_agent_brain_link(machine->brain, process->id, process->alive);
		if (process->alive) /* its supervisor speaks when it is linked to */
			say(machine, process);
		if (!process->alive && !process->exited)
			sw_agent_brain_lost(machine->brain, process->id, true);
	}
}

/* It gets its signal and may take all of its grace; one that stands still gets none. */
static void end_lease(struct system *s, struct machine *machine, struct process *process)
{
	int64_t dies_at_ns = process->lease_ns + (int64_t)sw_rng_below(&s->fates, (uint64_t)process->grace_ns) + 1;
	process->lease_is_over = true;
	s->score.leases++;
	if (process->stands)
		end_process(s, machine, process, 0, 9, SW_REASON_LEASE);
	else if (process->dies_at_ns == 0 || dies_at_ns < process->dies_at_ns)
		process->dies_at_ns = dies_at_ns;
}

/* Processes end by themselves, and for want of a lease, whether the agent lives or not. */
void sw_system_processes_turn(struct system *s, struct machine *machine)
{
	for (size_t p = 0; p < machine->process_count; p++) {
		struct process *process = &machine->processes[p];
		if (!process->alive)
			continue;
		int64_t clock = node_clock(s, machine);
		if (process->going_mask != 0 && clock >= process->arrives_at_ns)
			end_move(s, machine, process);
		if (clock >= process->lease_ns && !process->lease_is_over)
			end_lease(s, machine, process);
		else if (process->dies_at_ns != 0 && clock >= process->dies_at_ns)
			end_process(s, machine, process, 0, 15, process->lease_is_over ? SW_REASON_LEASE : SW_REASON_STOPPED);
		else if (!process->stands && clock >= process->ends_at_ns) {
			s->ended[process->id.job % JOBS_MAX] = true;
			end_process(s, machine, process, s->codes[process->id.job % JOBS_MAX], 0, "");
		} else if (process->halts_at_ns != 0 && clock >= process->halts_at_ns) {
			process->halts_at_ns = 0;
			process->left_ns = process->stands ? process->left_ns : process->ends_at_ns - clock;
			process->stands = true;
			process->held = process->runtime && chance(s, 50);
			if (process->depth == SW_DEPTH_LEAVING)
				process->depth = sw_rng_below(&s->rng, 3) > 0 ? SW_DEPTH_OFF : SW_DEPTH_USUAL;
			s->score.suspensions++;
			s->score.off += process->depth == SW_DEPTH_OFF;
			say(machine, process);
		}
	}
}
