#include "system.h"
#include "failure/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/brain.h"
#include "base/number.h"
#include "base/rng.h"
#include "controller/brain.h"

#define NODES_MAX 4u
#define GPUS 4u
#define RUNS_MAX 4096u
#define MESSAGES_MAX 4096u
#define PEACE_NS (INT64_C(4) * 3600 * SW_NS_PER_S)

#define JOBS_MAX 512u
#define GPU_BYTES (UINT64_C(80) << 30)

static struct sw_brain_config brain_config = {
	.policy = "las",
	.placement = "pack",
	.lease_ns = 30 * SW_NS_PER_S,
	.lease_margin_ns = 2 * SW_NS_PER_S,
	.retry_backoff_ns = 5 * SW_NS_PER_S,
};

/* The folder of a run with its supervisor and its process: what outlives the agent. */
struct process {
	struct sw_run_id id;
	bool folder, alive, exited;
	uint64_t memory_bytes;	      /* of its spec */
	int64_t ends_at_ns, lease_ns; /* on the node's clock */
	bool stands;		      /* still: suspended */
	int64_t halts_at_ns;	      /* when it will, after the order to; 0: no such order */
	int64_t left_ns;	      /* of its life, while it stands still */
	int64_t dies_at_ns;	      /* end of its last words after a stop; 0: no such order */
	uint32_t code, signal;
	char reason[32];
	uint64_t gpu_mask;
	uint64_t order; /* the last one that it carried out */
};

struct message {
	int64_t at_ns;
	uint64_t order;
	bool to_controller;
	uint32_t node;
	uint64_t number; /* of the sync it answers */
	char instance[24];
	char *text;
	size_t size;
};

struct machine {
	char name[16];
	struct sw_agent_brain *brain; /* NULL: the agent is down */
	uint32_t starts;
	char instance[24];
	int64_t clock_ahead_ns; /* nodes' clocks do not agree */
	int64_t cut_off_until_ns, back_at_ns;
	struct process processes[RUNS_MAX];
	size_t process_count;
	struct parked { /* a long poll that the controller has not answered */
		bool waits;
		struct sw_sync *sync;
		int64_t until_ns;
		char instance[24];
	} parked;
};

struct system {
	const struct sw_system_plan *plan;
	struct sw_rng rng;
	int64_t now_ns, storm_ends_ns;
	uint64_t order;
	struct message messages[MESSAGES_MAX];
	size_t message_count;
	struct machine machines[NODES_MAX];
	struct sw_brain *brain; /* NULL: the controller is down */
	int64_t controller_back_at_ns;
	SW_VEC(struct line {
		int64_t at_ns;
		struct sw_record record;
	})
	journal;
	/* The last snapshot of the controller, and how many records it covers. */
	unsigned char *snapshot;
	size_t snapshot_size, snapshot_records;
	struct sw_rng when_to_snapshot;
	uint32_t submitted;
	/* By job: */
	uint32_t codes[JOBS_MAX];  /* what its process will end with */
	uint64_t memory[JOBS_MAX]; /* that it says it needs on each GPU; 0: it does not say */
	bool cancelled[JOBS_MAX];
	bool ended[JOBS_MAX]; /* one of its processes came so far */
	bool is_calm;	      /* what was set up for the storm is undone */
	struct sw_system_score score;
	struct sw_err *err;
	int broken;
};

static bool chance(struct system *s, uint32_t milli)
{
	return sw_rng_below(&s->rng, 1000) < milli;
}

static bool storms(const struct system *s)
{
	return s->now_ns < s->storm_ends_ns;
}

static void broke(struct system *s, const char *what, uint64_t job)
{
	if (s->broken == 0)
		s->broken = sw_err_set(s->err, SW_EBUG, "%s (job %llu) at %lld ms", what, (unsigned long long)job,
				       (long long)(s->now_ns / SW_NS_PER_MS));
}

static void check(struct system *s, int r, const char *what)
{
	if (r < 0)
		broke(s, what, 0);
}

/* ---- network */

static bool is_cut_off(const struct system *s, uint32_t node)
{
	return s->now_ns < s->machines[node].cut_off_until_ns;
}

static void put_message(struct system *s, const struct message *message, const char *text, size_t size)
{
	if (s->message_count == MESSAGES_MAX)
		return; /* lost, like any other */
	struct message *slot = &s->messages[s->message_count++];
	*slot = *message;
	slot->text = malloc(size + 1);
	memcpy(slot->text, text, size);
	slot->size = size;
	slot->order = s->order++;
	slot->at_ns = s->now_ns + 100000 + (int64_t)sw_rng_below(&s->rng, (uint64_t)(storms(s) ? s->plan->delay_max_ns : SW_NS_PER_MS) + 1);
	s->score.messages++;
}

static void post(struct system *s, struct message message, const char *text, size_t size)
{
	if (is_cut_off(s, message.node) || (storms(s) && chance(s, s->plan->lose_milli)))
		return;
	put_message(s, &message, text, size);
	if (storms(s) && chance(s, s->plan->repeat_milli))
		put_message(s, &message, text, size);
}

/* ---- the controller's driver: journal before effect, effect before answer */

static void commit(struct system *s, sw_records *records, uint64_t *ret_job)
{
	for (size_t r = 0; r < records->count; r++) {
		struct line *line = sw_vec_push(&s->journal);
		*line = (struct line){s->now_ns, records->items[r]};
		check(s, sw_brain_apply(s->brain, s->now_ns, line->record.kind, line->record.body, line->record.size, ret_job, s->err),
		      "a record cannot be applied");
	}
	sw_vec_free(records); /* the journal owns the bodies */
}

static void answer_sync(struct system *s, uint32_t node)
{
	struct parked *parked = &s->machines[node].parked;
	struct sw_answer_message *answer = NULL;
	if (sw_brain_answer(s->brain, s->now_ns, parked->sync, &answer, NULL) == 0) {
		char *text = NULL;
		size_t size = 0;
		check(s, sw_answer_encode(answer, &text, &size, s->err), "an answer cannot be written");
		struct message message = {.node = node, .number = parked->sync->number};
		snprintf(message.instance, sizeof message.instance, "%s", parked->instance);
		if (text != NULL)
			post(s, message, text, size);
		free(text);
		sw_brain_answer_free(answer);
	}
	sw_sync_free(parked->sync);
	parked->waits = false;
}

static void controller_hears(struct system *s, const struct message *message)
{
	struct sw_sync *sync = NULL;
	if (s->brain == NULL)
		return;
	check(s, sw_sync_decode(message->text, message->size, &sync, s->err), "a sync cannot be read");
	if (sync == NULL)
		return;
	sw_records records = {0};
	check(s, sw_brain_hear(s->brain, s->now_ns, sync, &records, s->err), "a sync cannot be heard");
	commit(s, &records, NULL);
	struct parked *parked = &s->machines[message->node].parked;
	if (parked->waits)
		sw_sync_free(parked->sync);
	*parked = (struct parked){.waits = true, .sync = sync, .until_ns = s->now_ns + 10 * SW_NS_PER_S};
	snprintf(parked->instance, sizeof parked->instance, "%s", message->instance);
}

static void controller_turn(struct system *s)
{
	for (int rounds = 0; s->brain != NULL && sw_brain_next(s->brain) <= s->now_ns && rounds < 1000; rounds++) {
		sw_records records = {0};
		check(s, sw_brain_tick(s->brain, s->now_ns, &records, s->err), "a tick failed");
		commit(s, &records, NULL);
	}
	for (uint32_t n = 0; s->brain != NULL && n < s->plan->nodes; n++) {
		struct parked *parked = &s->machines[n].parked;
		if (parked->waits && (s->now_ns >= parked->until_ns || sw_brain_has_word(s->brain, parked->sync)))
			answer_sync(s, n);
	}
}

static void controller_snapshots(struct system *s)
{
	struct sw_pack pack = {0};
	sw_brain_save(s->brain, &pack);
	free(s->snapshot);
	s->snapshot = sw_pack_take(&pack, &s->snapshot_size);
	s->snapshot_records = s->journal.count;
	if (s->snapshot == NULL)
		broke(s, "the controller cannot be saved", 0);
}

static struct sw_brain *replayed(struct system *s, struct sw_brain *brain, size_t from)
{
	for (size_t r = from; s->broken == 0 && r < s->journal.count; r++) {
		const struct line *line = &s->journal.items[r];
		check(s, sw_brain_apply(brain, line->at_ns, line->record.kind, line->record.body, line->record.size, NULL, s->err),
		      "replay failed");
	}
	return brain;
}

/* Whether the one that began with a snapshot is the one that knows every record. */
static void check_same(struct system *s, const struct sw_brain *loaded, const struct sw_brain *whole)
{
	struct sw_pack a = {0}, b = {0};
	sw_brain_save(loaded, &a);
	sw_brain_save(whole, &b);
	if (a.size != b.size || memcmp(a.bytes, b.bytes, a.size) != 0)
		broke(s, "a controller that began with a snapshot knows something else", 0);
	sw_pack_release(&a);
	sw_pack_release(&b);
	for (uint64_t job = 1; job <= sw_brain_job_count(whole); job++) {
		struct sw_job_view x, y;
		sw_brain_job(loaded, s->now_ns, job, &x);
		sw_brain_job(whole, s->now_ns, job, &y);
		if (strcmp(x.state, y.state) != 0 || strcmp(x.reason, y.reason) != 0 || strcmp(x.node, y.node) != 0 ||
		    x.ran_ns != y.ran_ns || x.epoch != y.epoch || x.code != y.code || x.restarts != y.restarts)
			broke(s, "a controller that began with a snapshot sees a job otherwise", job);
	}
}

static void controller_starts(struct system *s)
{
	struct sw_brain *whole = NULL;
	if (brain_config.failures == NULL) {
		/* Once for all the seeds: it costs more than a whole run. */
		static struct sw_failure_table *failures;
		check(s, sw_failure_load(NULL, &failures, s->err), "the classes of failures cannot be read");
		brain_config.failures = failures;
	}
	check(s, sw_brain_new(&brain_config, &whole, s->err), "the controller does not start");
	s->brain = replayed(s, whole, 0);
	if (s->snapshot != NULL && s->broken == 0) {
		bool adopted = true;
		struct sw_brain *loaded = NULL;
		check(s, sw_brain_load(&brain_config, s->snapshot, s->snapshot_size, &loaded, &adopted, s->err),
		      "a snapshot cannot be read");
		if (s->broken != 0)
			return;
		s->brain = replayed(s, loaded, s->snapshot_records);
		if (adopted)
			broke(s, "a controller did not recognise its own snapshot", 0);
		check_same(s, loaded, whole);
		check(s, sw_brain_validate(loaded, s->err), "the controller's brain is unsound after its start");
		sw_brain_free(whole);
		s->score.snapshots++;
	}
	sw_brain_assume_leases(s->brain, s->now_ns);
}

static void controller_dies(struct system *s)
{
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		if (s->machines[n].parked.waits)
			sw_sync_free(s->machines[n].parked.sync);
		s->machines[n].parked.waits = false;
	}
	sw_brain_free(s->brain);
	s->brain = NULL;
	s->controller_back_at_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 60) * SW_NS_PER_S;
	s->score.crashes++;
}

/* ---- nodes */

static int64_t node_clock(const struct system *s, const struct machine *machine)
{
	return s->now_ns + machine->clock_ahead_ns;
}

static struct process *find_process(struct machine *machine, struct sw_run_id id)
{
	for (size_t p = 0; p < machine->process_count; p++)
		if (machine->processes[p].folder && sw_run_id_compare(machine->processes[p].id, id) == 0)
			return &machine->processes[p];
	return NULL;
}

/* Somebody else who runs the same job anywhere, or sits on the same GPU here. */
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
				broke(s, "a job runs twice at the same time", fresh->id.job);
			/* Chaos packs jobs of which it is known how much memory they need. */
			bool may_share = s->plan->policy == SW_SYSTEM_CHAOS && other->memory_bytes > 0 && fresh->memory_bytes > 0;
			if (machine == here && !other->stands && !may_share && (other->gpu_mask & fresh->gpu_mask) != 0)
				broke(s, "a GPU is given twice", fresh->id.job);
		}
	}
}

/* What all processes on a GPU need, standing still or not, must fit into it; who does not say needs all of it. Chaos changes what jobs need as they run. */
static void check_memory(struct system *s, const struct machine *machine)
{
	for (uint32_t g = 0; g < GPUS && s->plan->policy != SW_SYSTEM_CHAOS; g++) {
		uint64_t bytes = 0, job = 0;
		for (size_t p = 0; p < machine->process_count; p++) {
			const struct process *process = &machine->processes[p];
			if (!process->alive || (process->gpu_mask >> g & 1) == 0)
				continue;
			job = process->id.job;
			bytes += s->memory[job % JOBS_MAX] > 0 ? s->memory[job % JOBS_MAX] : GPU_BYTES;
		}
		if (bytes > GPU_BYTES)
			broke(s, "the memory of a GPU is given twice", job);
	}
}

static void start_process(struct system *s, struct machine *machine, const struct sw_agent_action *action)
{
	if (find_process(machine, action->id) != NULL)
		broke(s, "a run is started twice", action->id.job);
	if (machine->process_count == RUNS_MAX) {
		broke(s, "too many runs", action->id.job);
		return;
	}
	struct process *process = &machine->processes[machine->process_count++];
	*process = (struct process){.id = action->id,
				    .folder = true,
				    .alive = true,
				    .memory_bytes = action->want->spec->gpu_memory_bytes,
				    .lease_ns = action->lease_boot_ns};
	for (size_t g = 0; g < action->want->gpus.count; g++)
		process->gpu_mask |= UINT64_C(1) << (action->want->gpus.items[g][6] - '0');
	process->ends_at_ns = node_clock(s, machine) + SW_NS_PER_S + (int64_t)sw_rng_below(&s->rng, 90) * SW_NS_PER_S;
	process->code = s->codes[action->id.job % JOBS_MAX];
	s->score.runs++;
	check_alone(s, machine, process);
	check_memory(s, machine);
	sw_agent_brain_link(machine->brain, action->id, true);
	sw_agent_brain_said(machine->brain, &(struct sw_sync_run){.id = action->id, .state = SW_RUN_RUNNING, .pid = 1, .reason = ""}, 0);
}

static struct sw_sync_run account_of(const struct process *process)
{
	return (struct sw_sync_run){
		.id = process->id,
		.state = process->exited   ? SW_RUN_EXITED
			 : process->stands ? SW_RUN_SUSPENDED
					   : SW_RUN_RUNNING,
		.code = process->exited ? process->code : 0,
		.signal = process->exited ? process->signal : 0,
		.reason = process->reason,
	};
}

static void end_process(struct system *s, struct machine *machine, struct process *process, uint32_t code, uint32_t signal,
			const char *reason)
{
	(void)s;
	process->alive = false;
	process->exited = true;
	process->code = code;
	process->signal = signal;
	snprintf(process->reason, sizeof process->reason, "%s", reason);
	if (machine->brain != NULL) {
		struct sw_sync_run account = account_of(process);
		sw_agent_brain_said(machine->brain, &account, process->order);
	}
}

static void say(struct machine *machine, const struct process *process)
{
	struct sw_sync_run account = account_of(process);
	if (machine->brain != NULL)
		sw_agent_brain_said(machine->brain, &account, process->order);
}

static void wake_up(struct system *s, struct machine *machine, struct process *process)
{
	process->halts_at_ns = 0;
	if (!process->stands)
		return;
	process->stands = false;
	process->ends_at_ns = node_clock(s, machine) + process->left_ns;
	check_alone(s, machine, process);
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

static void carry_out(struct system *s, struct machine *machine, const struct sw_agent_action *action)
{
	struct process *process = find_process(machine, action->id);
	if (process != NULL && action->order > process->order)
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
		if (process->dies_at_ns == 0 && !process->stands && process->halts_at_ns == 0)
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
	case SW_ACT_TERMS: /* GPUs are not shared here */
		break;
	case SW_ACT_LEASE:
		if (process != NULL)
			process->lease_ns = action->lease_boot_ns;
		break;
	case SW_ACT_RECOVER:
		if (process != NULL && !process->exited)
			end_process(s, machine, process, 0, 0, SW_REASON_SUPERVISOR_LOST);
		break;
	case SW_ACT_DELETE:
		if (process != NULL) {
			if (process->alive)
				broke(s, "a living run is forgotten", action->id.job);
			process->folder = false;
		}
		break;
	default:
		break;
	}
}

static void agent_turn(struct system *s, uint32_t n)
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
	check(s, sw_sync_encode(&sync, &text, &size, s->err), "a sync cannot be written");
	struct message message = {.to_controller = true, .node = n, .number = sync.number};
	snprintf(message.instance, sizeof message.instance, "%s", machine->instance);
	if (text != NULL)
		post(s, message, text, size);
	free(text);
	check(s, sw_agent_brain_validate(machine->brain, s->err), "the agent's brain is unsound");
}

static void agent_hears(struct system *s, const struct message *message)
{
	struct machine *machine = &s->machines[message->node];
	struct sw_answer_message *answer = NULL;
	/* A connection dies with the process that opened it. */
	if (machine->brain == NULL || strcmp(machine->instance, message->instance) != 0)
		return;
	check(s, sw_answer_decode(message->text, message->size, &answer, s->err), "an answer cannot be read");
	if (answer == NULL)
		return;
	check(s, sw_agent_brain_answer(machine->brain, node_clock(s, machine), message->number, answer), "an answer cannot be taken");
	sw_answer_free(answer);
}

static void agent_starts(struct system *s, uint32_t n)
{
	struct machine *machine = &s->machines[n];
	snprintf(machine->name, sizeof machine->name, "n%u", n);
	snprintf(machine->instance, sizeof machine->instance, "%06u", ++machine->starts);
	const struct sw_agent_brain_config config = {.node = machine->name, .instance = machine->instance, .seed = s->plan->seed};
	check(s, sw_agent_brain_new(&config, &machine->brain, s->err), "an agent does not start");
	struct sw_sync_gpu gpus[GPUS];
	char uuids[GPUS][32];
	for (uint32_t g = 0; g < GPUS; g++) {
		snprintf(uuids[g], sizeof uuids[g], "GPU-%u-%u", n, g);
		gpus[g] = (struct sw_sync_gpu){.uuid = uuids[g], .name = "simulated", .memory_bytes = UINT64_C(80) << 30};
	}
	const struct sw_sync_inventory inventory = {gpus, GPUS, 64, UINT64_C(256) << 30};
	check(s, sw_agent_brain_inventory(machine->brain, &inventory), "an inventory is refused");
	for (size_t p = 0; p < machine->process_count; p++) {
		const struct process *process = &machine->processes[p];
		if (!process->folder)
			continue;
		const char *held[GPUS + 1] = {0};
		size_t count = 0;
		for (uint32_t g = 0; g < GPUS; g++)
			if (process->gpu_mask >> g & 1)
				held[count++] = uuids[g];
		struct sw_sync_run account = account_of(process);
		check(s, sw_agent_brain_found(machine->brain, &account, &(struct sw_texts){held, count}), "a found run is refused");
		const struct sw_run_spec spec = {.gpu_memory_bytes = process->memory_bytes}; /* as its folder says */
		sw_agent_brain_spec(machine->brain, process->id, &spec);
		sw_agent_brain_link(machine->brain, process->id, process->alive);
		if (process->alive) /* its supervisor speaks when it is linked to */
			say(machine, process);
		if (!process->alive && !process->exited)
			sw_agent_brain_lost(machine->brain, process->id);
	}
}

/* Processes end by themselves, and for want of a lease, whether the agent lives or not. */
static void processes_turn(struct system *s, struct machine *machine)
{
	for (size_t p = 0; p < machine->process_count; p++) {
		struct process *process = &machine->processes[p];
		if (!process->alive)
			continue;
		int64_t clock = node_clock(s, machine);
		if (clock >= process->lease_ns)
			end_process(s, machine, process, 0, 9, SW_REASON_LEASE);
		else if (process->dies_at_ns != 0 && clock >= process->dies_at_ns)
			end_process(s, machine, process, 0, 15, SW_REASON_STOPPED);
		else if (!process->stands && clock >= process->ends_at_ns) {
			s->ended[process->id.job % JOBS_MAX] = true;
			end_process(s, machine, process, s->codes[process->id.job % JOBS_MAX], 0, "");
		} else if (process->halts_at_ns != 0 && clock >= process->halts_at_ns) {
			process->halts_at_ns = 0;
			process->stands = true;
			process->left_ns = process->ends_at_ns - clock;
			s->score.suspensions++;
			say(machine, process);
		}
	}
}

/* ---- misfortune */

static void kill_a_supervisor(struct system *s, struct machine *machine)
{
	for (size_t p = 0; p < machine->process_count; p++) {
		struct process *process = &machine->processes[p];
		if (process->alive && chance(s, 300)) {
			process->alive = false; /* and its process with it; nothing is written down */
			if (machine->brain != NULL)
				sw_agent_brain_lost(machine->brain, process->id);
			s->score.crashes++;
			return;
		}
	}
}

static void misfortune(struct system *s)
{
	if (!storms(s))
		return;
	if (s->brain != NULL && sw_rng_below(&s->when_to_snapshot, 100) < 3)
		controller_snapshots(s);
	if (s->plan->crash_controller && s->brain != NULL && chance(s, 8))
		controller_dies(s);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		struct machine *machine = &s->machines[n];
		if (s->plan->crash_agents && machine->brain != NULL && chance(s, 8)) {
			sw_agent_brain_free(machine->brain);
			machine->brain = NULL;
			machine->back_at_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 70) * SW_NS_PER_S;
			s->score.crashes++;
		}
		if (s->plan->partitions && !is_cut_off(s, n) && chance(s, 5))
			machine->cut_off_until_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 90) * SW_NS_PER_S;
		if (s->plan->kill_supervisors && chance(s, 8))
			kill_a_supervisor(s, machine);
	}
}

static void submit_some(struct system *s)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	while (s->brain != NULL && s->submitted < s->plan->jobs && chance(s, 400)) {
		char json[300];
		/* Gangs over two nodes where there are two. */
		uint32_t gpus = 1 + (uint32_t)sw_rng_below(&s->rng, s->plan->nodes > 1 && chance(s, 100) ? 2 * GPUS
								    : chance(s, 500)			 ? 1
													 : GPUS);
		bool elastic = gpus <= GPUS && chance(s, 300);
		unsigned gib = chance(s, 150) ? 0 : 5u << sw_rng_below(&s->rng, 4);
		snprintf(json, sizeof json,
			 "{\"command\": [\"job\"], \"gpus\": %u, \"min_gpus\": %u, \"max_gpus\": %u, \"retries\": %u, "
			 "\"gpu_memory\": \"%uGiB\", \"preempt\": \"%s\", \"expected\": %u}",
			 gpus, elastic ? 1 : gpus, elastic ? GPUS : gpus, (unsigned)sw_rng_below(&s->rng, 2), gib,
			 chance(s, 600) ? "suspend" : "requeue", 1 + (unsigned)sw_rng_below(&s->rng, 90));
		struct sw_job_request *request = NULL;
		sw_records records = {0};
		uint64_t job = 0;
		s->submitted++;
		check(s, sw_job_request_decode("test", json, strlen(json), &request, s->err), "a request cannot be read");
		if (request != NULL && sw_brain_propose_submit(s->brain, &user, request, &records, NULL) == 0) {
			s->codes[(s->journal.count + 1) % JOBS_MAX] = 0;
			commit(s, &records, &job);
			s->memory[job % JOBS_MAX] = request->gpu_memory_bytes;
			s->codes[job % JOBS_MAX] = chance(s, 200) ? 1 + (uint32_t)sw_rng_below(&s->rng, 200) : 0;
			s->score.jobs_acknowledged++;
		}
		sw_job_request_free(request);
	}
}

static void propose_change(struct system *s, enum sw_record_kind kind, uint64_t job)
{
	static const struct sw_user user = {.uid = 1000, .gid = 1000};
	sw_records records = {0};
	if (sw_brain_propose_change(s->brain, &user, kind, "change", job, &records, NULL) == 0)
		commit(s, &records, NULL);
}

static void put_in_charge(struct system *s, const char *policy, const char *setting)
{
	static const struct sw_user user = {.is_operator = true};
	sw_records records = {0};
	check(s, sw_brain_propose_policy(s->brain, &user, policy, &setting, setting != NULL, &records, s->err), "a policy is refused");
	commit(s, &records, NULL);
}

/* Users suspend, resume, requeue and cancel; after the storm they let everything go. */
static void meddle(struct system *s)
{
	uint64_t jobs = s->brain != NULL ? sw_brain_job_count(s->brain) : 0;
	if (jobs == 0)
		return;
	if (s->journal.count < 40 && chance(s, 100)) { /* early, and again after some crashes */
		static const char *const names[] = {"las", "srtf", "chaos", "gandiva"}, *const settings[] = {"thresholds=15,60", NULL,
													     "manners=100", "quantum=5s"};
		put_in_charge(s, names[s->plan->policy], settings[s->plan->policy]);
	}
	if (storms(s) && s->plan->meddling && chance(s, 60)) {
		static const enum sw_record_kind kinds[] = {SW_RECORD_HOLD,    SW_RECORD_HOLD,	  SW_RECORD_RELEASE,
							    SW_RECORD_RELEASE, SW_RECORD_REQUEUE, SW_RECORD_CANCEL};
		enum sw_record_kind kind = kinds[sw_rng_below(&s->rng, 6)];
		uint64_t job = 1 + sw_rng_below(&s->rng, jobs);
		s->cancelled[job % JOBS_MAX] |= kind == SW_RECORD_CANCEL;
		propose_change(s, kind, job);
	}
	if (!storms(s) && !s->is_calm) {
		s->is_calm = true;
		for (uint64_t job = 1; job <= jobs; job++)
			propose_change(s, SW_RECORD_RELEASE, job);
		if (s->plan->policy == SW_SYSTEM_CHAOS)
			put_in_charge(s, "fifo", NULL);
	}
}

/* ---- living */

static void deliver(struct system *s)
{
	for (;;) {
		size_t next = SIZE_MAX;
		for (size_t m = 0; m < s->message_count; m++)
			if (s->messages[m].at_ns <= s->now_ns &&
			    (next == SIZE_MAX || s->messages[m].at_ns < s->messages[next].at_ns ||
			     (s->messages[m].at_ns == s->messages[next].at_ns && s->messages[m].order < s->messages[next].order)))
				next = m;
		if (next == SIZE_MAX)
			return;
		struct message message = s->messages[next];
		s->messages[next] = s->messages[--s->message_count];
		if (message.to_controller)
			controller_hears(s, &message);
		else
			agent_hears(s, &message);
		free(message.text);
	}
}

static bool all_ended(struct system *s)
{
	if (s->brain == NULL || s->submitted < s->plan->jobs)
		return false;
	for (uint64_t job = 1; job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		if (sw_brain_job(s->brain, s->now_ns, job, &view) && view.ended_at == SW_TIME_NEVER)
			return false;
	}
	return true;
}

/* A job that completed did so because its process said 0; one that failed has the code that its process gave. Both came to their own end: what a job would have
 * said that was ended from outside, nobody knows. */
static void check_ends(struct system *s)
{
	if (sw_brain_job_count(s->brain) < s->score.jobs_acknowledged)
		broke(s, "an acknowledged job is gone", 0);
	for (uint64_t job = 1; job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		sw_brain_job(s->brain, s->now_ns, job, &view);
		uint32_t truth = s->codes[job % JOBS_MAX];
		if (strcmp(view.state, "CD") == 0 && truth != 0)
			broke(s, "a failed job counts as completed", job);
		if (strcmp(view.state, "F") == 0 && (view.signal != 0 || (uint32_t)view.code != truth))
			broke(s, "a job has a wrong exit code", job);
		if (strcmp(view.state, "CA") != 0 && !s->ended[job % JOBS_MAX])
			broke(s, "a job counts as ended that never came to its end", job);
		if (strcmp(view.state, "CD") != 0 && strcmp(view.state, "F") != 0 &&
		    !(strcmp(view.state, "CA") == 0 && s->cancelled[job % JOBS_MAX]))
			broke(s, "a job ended in a state that nobody asked for", job);
	}
}

static void turn(struct system *s)
{
	misfortune(s);
	if (s->brain == NULL && s->now_ns >= s->controller_back_at_ns)
		controller_starts(s);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		processes_turn(s, &s->machines[n]);
		if (s->machines[n].brain == NULL && s->now_ns >= s->machines[n].back_at_ns)
			agent_starts(s, n);
	}
	submit_some(s);
	meddle(s);
	/* Several rounds a turn, so that words and answers meet within it. */
	for (int rounds = 0; rounds < 4 && s->broken == 0; rounds++) {
		deliver(s);
		controller_turn(s);
		for (uint32_t n = 0; n < s->plan->nodes; n++)
			agent_turn(s, n);
		s->now_ns += SW_NS_PER_MS;
	}
	if (s->brain != NULL && s->broken == 0 && chance(s, 50))
		check(s, sw_brain_validate(s->brain, s->err), "the controller's brain is unsound");
}

static void clean_up(struct system *s)
{
	for (size_t m = 0; m < s->message_count; m++)
		free(s->messages[m].text);
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		if (s->machines[n].brain != NULL)
			sw_agent_brain_free(s->machines[n].brain);
		if (s->machines[n].parked.waits)
			sw_sync_free(s->machines[n].parked.sync);
	}
	if (s->brain != NULL)
		sw_brain_free(s->brain);
	for (size_t r = 0; r < s->journal.count; r++)
		free(s->journal.items[r].record.body);
	sw_vec_free(&s->journal);
	free(s->snapshot);
	free(s);
}

struct sw_system_plan sw_system_draw(uint64_t seed)
{
	struct sw_rng rng;
	sw_rng_seed(&rng, seed ^ UINT64_C(0x5e5));
	return (struct sw_system_plan){
		.seed = seed,
		.nodes = 1 + (uint32_t)sw_rng_below(&rng, NODES_MAX),
		.jobs = 5 + (uint32_t)sw_rng_below(&rng, 40),
		.storm_ns = (60 + (int64_t)sw_rng_below(&rng, 900)) * SW_NS_PER_S,
		.lose_milli = (uint32_t)sw_rng_below(&rng, 4) * 100,
		.repeat_milli = (uint32_t)sw_rng_below(&rng, 4) * 100,
		.delay_max_ns = (int64_t)sw_rng_below(&rng, 3) * 4 * SW_NS_PER_S + SW_NS_PER_MS,
		.crash_controller = sw_rng_below(&rng, 2) == 0,
		.crash_agents = sw_rng_below(&rng, 2) == 0,
		.kill_supervisors = sw_rng_below(&rng, 2) == 0,
		.partitions = sw_rng_below(&rng, 2) == 0,
		.meddling = sw_rng_below(&rng, 2) == 0,
		.policy = (enum sw_system_policy)sw_rng_below(&rng, 4),
	};
}

int sw_system_live(const struct sw_system_plan *plan, struct sw_system_score *ret_score, struct sw_err *err)
{
	struct system *s = calloc(1, sizeof *s);
	if (s == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	s->plan = plan;
	s->err = err;
	s->now_ns = 1000 * SW_NS_PER_S;
	s->storm_ends_ns = s->now_ns + plan->storm_ns;
	sw_rng_seed(&s->rng, plan->seed);
	sw_rng_seed(&s->when_to_snapshot, plan->seed + 1);
	for (uint32_t n = 0; n < plan->nodes; n++)
		s->machines[n].clock_ahead_ns = (int64_t)sw_rng_below(&s->rng, 1000000) * SW_NS_PER_S;
	while (s->broken == 0 && !(s->now_ns > s->storm_ends_ns && all_ended(s)) && s->now_ns < s->storm_ends_ns + PEACE_NS) {
		turn(s);
		s->now_ns += 250 * SW_NS_PER_MS;
	}
	for (uint64_t job = 1; s->broken == 0 && s->brain != NULL && job <= sw_brain_job_count(s->brain); job++) {
		struct sw_job_view view;
		char why[200];
		if (!sw_brain_job(s->brain, s->now_ns, job, &view) || view.ended_at != SW_TIME_NEVER)
			continue;
		sw_brain_explain(s->brain, s->now_ns, job, why, sizeof why);
		broke(s, "a job never ended", job);
		sw_err_detail(err, "state %s, epoch %u: %s", view.state, view.epoch, why);
	}
	if (s->broken == 0) {
		check_ends(s);
		check(s, sw_brain_validate(s->brain, err), "the controller's brain is unsound");
	}
	int r = s->broken;
	s->score.ended_after_ns = s->now_ns - 1000 * SW_NS_PER_S;
	*ret_score = s->score;
	clean_up(s);
	return r;
}
