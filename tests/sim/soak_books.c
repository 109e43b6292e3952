#include "soak_books.h"

#include <string.h>

#include "core/state.h"

void sw_soak_books_open(struct sw_soak_books *books, const struct sw_engine_config *config)
{
	memset(books, 0, sizeof *books);
	books->config = config;
	books->nodes = config->topology->node_count;
	for (uint32_t t = 0; t < SW_SOAK_TENANTS_MAX; t++)
		books->quota[t] = UINT32_MAX;
}

/* ---- what events must do ---- */

static void expect(struct sw_soak_books *books, uint8_t kind, uint8_t reason, uint32_t job)
{
	books->due[books->due_count].kind = kind;
	books->due[books->due_count].reason = reason;
	books->due[books->due_count++].job = job;
}

/* Its run is over, and it waits again. */
static void stop_run(struct sw_soak_entry *entry)
{
	entry->runs = entry->kept = false;
	entry->held |= entry->held_next;
	entry->held_next = false;
}

static bool sits_on(const struct sw_soak_entry *entry, uint32_t node)
{
	for (uint32_t s = 0; s < entry->seat_count; s++)
		if (entry->seats[s].node == node)
			return true;
	return false;
}

/* Whether it is suspended where it runs, or not stopped at all. */
static bool suspends(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return (entry->stop_rule == SW_STOP_SUSPEND || entry->stop_rule == SW_STOP_IF_FREE) && !books->config->terms.keeps_state;
}

static bool stands(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return entry->at_home && !entry->ended && suspends(books, entry);
}

static void lose_node(struct sw_soak_books *books, uint32_t node)
{
	if (node >= books->nodes || books->down[node])
		return;
	books->down[node] = true;
	for (uint32_t j = 0; j < books->count; j++) {
		struct sw_soak_entry *entry = &books->jobs[j];
		if (entry->runs && sits_on(entry, node)) {
			stop_run(entry);
			entry->at_home = false;
			entry->ended = entry->no_restart;
			expect(books, SW_CMD_STOP, SW_REASON_NODE_LOST, j);
		}
	}
	for (uint32_t j = 0; j < books->count; j++) {
		struct sw_soak_entry *entry = &books->jobs[j];
		if (!entry->at_home || entry->ended || !sits_on(entry, node))
			continue;
		bool stood = stands(books, entry);
		entry->at_home = false;
		entry->ended = entry->no_restart;
		if (entry->no_restart || stood)
			expect(books, SW_CMD_STOP, SW_REASON_NODE_LOST, j);
	}
}

/* Under the numbers that its GPUs have after the change; false: not all of them are left. */
static bool renumber(struct sw_soak_seat *seat, const struct sw_topology_change *change)
{
	uint64_t now = 0;
	for (uint32_t g = 0; g < 64; g++) {
		if ((seat->mask >> g & 1) == 0)
			continue;
		if (change->to[g] == SW_GPU_GONE)
			return false;
		now |= UINT64_C(1) << change->to[g];
	}
	seat->mask = now;
	return true;
}

/* Of homes only what every change that is drawn leaves them: all. Where they
 * are is not known here. */
static void change_node(struct sw_soak_books *books, uint32_t node, const struct sw_topology_change *change)
{
	if (node >= books->nodes)
		return;
	books->down[node] = books->off[node] = books->boots[node] = false;
	books->shut[node] = sw_topology_renumber(change, books->shut[node]);
	for (uint32_t j = 0; j < books->count; j++) {
		struct sw_soak_entry *entry = &books->jobs[j];
		bool stays = true;
		entry->home_moved |= entry->at_home;
		if (entry->leaves != 0 && sits_on(entry, node))
			entry->leaves = sw_topology_renumber(change, entry->leaves);
		for (uint32_t s = 0; entry->runs && s < entry->seat_count; s++)
			if (entry->seats[s].node == node)
				stays &= renumber(&entry->seats[s], change);
		if (!stays) {
			stop_run(entry);
			entry->ended = entry->no_restart;
			expect(books, SW_CMD_STOP, SW_REASON_NODE_LOST, j);
		}
	}
}

static void add_job(struct sw_soak_books *books, const struct sw_job_spec *spec)
{
	books->jobs[books->count++] = (struct sw_soak_entry){
		.held = spec->held,
		.retries = spec->retries,
		.tenant = spec->tenant,
		.guaranteed = spec->job_class == SW_CLASS_GUARANTEED,
		.prefers_home = spec->prefers_home || spec->stop_rule == SW_STOP_SUSPEND || spec->stop_rule == SW_STOP_IF_FREE,
		.stop_rule = spec->stop_rule,
		.no_restart = spec->no_restart,
	};
}

/* Whether its state stays on its GPUs when it stops: parts of a split job are of
 * no use to the whole one. */
static bool has_home(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return entry->prefers_home && entry->seats[0].split_bytes == 0 && (!suspends(books, entry) || entry->keeps == 1);
}

/* Stopped, it would have lost its run, and another may not begin. */
static bool may_not_wait(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return entry->no_restart && !books->config->terms.keeps_state && !(has_home(books, entry) && suspends(books, entry));
}

static void requeue(struct sw_soak_books *books, struct sw_soak_entry *entry, uint32_t job)
{
	if (!entry->runs && !entry->at_home && !entry->kept)
		return;
	if (entry->runs || stands(books, entry) || entry->no_restart || entry->kept)
		expect(books, SW_CMD_STOP, SW_REASON_REQUEUED, job);
	if (entry->runs)
		stop_run(entry);
	entry->at_home = entry->kept = false;
	entry->ended = entry->no_restart;
}

static void foresee(struct sw_soak_books *books, const struct sw_event *event)
{
	struct sw_soak_entry *entry = event->job.v < books->count ? &books->jobs[event->job.v] : NULL;
	bool meant = entry != NULL && !entry->ended && (entry->runs || entry->at_home) && entry->epoch == event->epoch;
	switch (event->kind) {
	case SW_EV_SUBMIT:
		add_job(books, event->spec);
		break;
	case SW_EV_FINISH:
		if (meant) {
			entry->runs = entry->at_home = false;
			entry->ended = true;
		}
		break;
	case SW_EV_FAIL:
		if (meant) {
			/* What a world keeps of one that was stopped is not at its home. */
			bool kept = entry->kept && !entry->runs;
			stop_run(entry);
			entry->kept = kept;
			entry->at_home = false;
			entry->ended = event->verdict == SW_FAIL_FINAL || entry->no_restart ||
				       (event->verdict == SW_FAIL_BY_RETRIES && entry->retries == 0);
			entry->retries -= event->verdict == SW_FAIL_BY_RETRIES && entry->retries > 0;
		}
		break;
	case SW_EV_CANCEL:
		if (entry != NULL && !entry->ended) {
			if (entry->runs || stands(books, entry))
				expect(books, SW_CMD_KILL, SW_REASON_CANCELLED, event->job.v);
			entry->runs = false;
			entry->ended = true;
		}
		break;
	case SW_EV_HOLD:
		if (entry != NULL && !entry->ended) {
			if (entry->runs) {
				expect(books, SW_CMD_STOP, SW_REASON_HELD, event->job.v);
				entry->at_home = has_home(books, entry);
				entry->kept = books->config->terms.keeps_state;
				entry->ended = may_not_wait(books, entry);
			}
			entry->runs = entry->held_next = false;
			entry->held = true;
		}
		break;
	case SW_EV_HOLD_NEXT:
		if (entry != NULL && !entry->ended)
			*(entry->runs ? &entry->held_next : &entry->held) = true;
		break;
	case SW_EV_REQUEUE:
		if (entry != NULL && !entry->ended)
			requeue(books, entry, event->job.v);
		break;
	case SW_EV_RELEASE:
		if (entry != NULL)
			entry->held = entry->held_next = false;
		break;
	case SW_EV_KEEPS:
		if (entry != NULL && entry->epoch == event->epoch && !entry->ended) {
			entry->frees = event->frees;
			if (!stands(books, entry))
				entry->keeps = event->gpus != 0 ? 1 : 2;
		}
		break;
	case SW_EV_STAY: /* alone in its step: whether it starts, and which is sent away, is not known here */
		if (meant && stands(books, entry)) {
			entry->frees = false;
			entry->keeps = entry->stop_rule == SW_STOP_IF_FREE ? 2 : entry->keeps;
			books->bounces = true;
		}
		break;
	case SW_EV_NODE_ADD:
		books->nodes++;
		break;
	case SW_EV_NODE_DOWN:
		lose_node(books, event->node.v);
		break;
	case SW_EV_NODE_UP:
		if (event->node.v < books->nodes)
			books->down[event->node.v] = books->off[event->node.v] = books->boots[event->node.v] = false;
		break;
	case SW_EV_QUOTA:
		if (event->tenant < SW_SOAK_TENANTS_MAX)
			books->quota[event->tenant] = event->gpus;
		break;
	case SW_EV_NODE_CLOSE:
	case SW_EV_NODE_OPEN:
		if (event->node.v < books->nodes)
			books->closed[event->node.v] = event->kind == SW_EV_NODE_CLOSE;
		break;
	case SW_EV_GPUS_SHUT:
		if (event->node.v < books->nodes)
			books->shut[event->node.v] = event->mask;
		break;
	case SW_EV_NODE_CHANGE:
		change_node(books, event->node.v, event->change);
		break;
	case SW_EV_BEGUN:
		if (meant && (entry->runs || stands(books, entry)))
			entry->begun = true;
		break;
	case SW_EV_MOVED:
		if (meant)
			entry->leaves = 0;
		break;
	case SW_EV_UNMOVED: /* alone in its step, as SW_EV_STAY: which is sent away is not known here */
	case SW_EV_ANEW:
		if (meant)
			books->bounces = books->turns_back = true;
		break;
	case SW_EV_MOVE: /* whether the GPUs can be had is not known here */
	case SW_EV_CHANGE:
	case SW_EV_PROGRESS:
	case SW_EV_SPEED:
	case SW_EV_SAMPLE:
	case SW_EV_ANSWER: /* what it asked itself is known to the storm alone */
		break;
	}
}

void sw_soak_books_foresee(struct sw_soak_books *books, sw_ns at, const struct sw_event *events, size_t count)
{
	if (at > books->now)
		books->now = at;
	books->due_count = books->due_next = 0;
	books->bounces = books->turns_back = false;
	memcpy(books->was_off, books->off, sizeof books->was_off);
	for (uint32_t j = 0; j < books->count; j++)
		books->jobs[j].stood = stands(books, &books->jobs[j]);
	for (uint32_t j = 0; j < books->count; j++)
		books->jobs[j].started = books->jobs[j].came = books->jobs[j].anew = false;
	for (size_t e = 0; e < count; e++)
		foresee(books, &events[e]);
}

/* ---- commands ---- */

static bool is_guaranteed(const struct sw_engine *engine, uint32_t job)
{
	return sw_engine_job(engine, (struct sw_job_id){job})->job_class == SW_CLASS_GUARANTEED;
}

/* By the classes that runs have at the end of the decision: the command that tells of it may still
 * come. One that is stopped later in the step has the class that it had. */
static uint32_t held_by_tenant(const struct sw_soak_books *books, const struct sw_engine *engine, uint32_t tenant)
{
	uint32_t held = 0;
	for (uint32_t j = 0; j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		bool goes_on = sw_engine_job(engine, (struct sw_job_id){j})->state == SW_JOB_RUNNING;
		if (entry->runs && entry->tenant == tenant && (goes_on ? is_guaranteed(engine, j) : entry->guaranteed))
			held += entry->gpus;
	}
	return held;
}

/* The class that the run has by now; `more`: it holds more GPUs than before. */
static int check_quota(struct sw_soak_books *books, const struct sw_engine *engine, uint32_t job, bool more, struct sw_err *err)
{
	struct sw_soak_entry *entry = &books->jobs[job];
	bool was_guaranteed = entry->guaranteed;
	uint32_t quota = books->quota[entry->tenant];
	entry->guaranteed = is_guaranteed(engine, job);
	if (entry->guaranteed && (more || !was_guaranteed) && held_by_tenant(books, engine, entry->tenant) > quota)
		return sw_err_set(err, SW_EBUG, "engine invariant 5: tenant %u holds %u GPUs of a quota of %u", entry->tenant,
				  held_by_tenant(books, engine, entry->tenant), quota);
	return 0;
}

static int sit_down(struct sw_soak_books *books, const struct sw_engine *engine, const struct sw_command *command, struct sw_err *err)
{
	struct sw_soak_entry *entry = &books->jobs[command->job];
	const struct sw_ledger *ledger = sw_engine_ledger(engine);
	uint32_t gpus = 0, before = entry->gpus;
	bool ran = entry->runs;
	entry->seat_count = 0;
	for (uint32_t p = command->parts; p != SW_NO_PART; p = ledger->parts[p].next) {
		if (entry->seat_count == SW_SOAK_NODES_MAX || books->down[ledger->parts[p].node] ||
		    (books->closed[ledger->parts[p].node] && !entry->anew))
			return sw_err_set(err, SW_EBUG, "job %u was sent to node %u, which is down, closed or named twice", command->job,
					  ledger->parts[p].node);
		if ((books->shut[ledger->parts[p].node] & ledger->parts[p].mask) != 0 && !entry->anew)
			return sw_err_set(err, SW_EBUG, "job %u was sent to GPUs of node %u that are shut", command->job,
					  ledger->parts[p].node);
		entry->seats[entry->seat_count++] =
			(struct sw_soak_seat){ledger->parts[p].node, ledger->parts[p].mask, ledger->parts[p].split_bytes};
		gpus += (uint32_t)__builtin_popcountll(ledger->parts[p].mask);
	}
	if (gpus != command->gpus)
		return sw_err_set(err, SW_EBUG, "job %u was sent to %u GPUs and shown %u", command->job, command->gpus, gpus);
	entry->runs = true;
	entry->gpus = gpus;
	entry->since = books->now;
	return check_quota(books, engine, command->job, (!ran && !entry->anew) || gpus > before, err);
}

/* To stop its run. To other GPUs of its node it may go on in any case. */
static bool owner_allows(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return entry->stop_rule != SW_STOP_NEVER && (!suspends(books, entry) || entry->keeps == 1);
}

static bool same_seats(const struct sw_soak_entry *a, const struct sw_soak_entry *b)
{
	bool same = a->seat_count == b->seat_count;
	for (uint32_t s = 0; same && s < a->seat_count; s++)
		same = a->seats[s].node == b->seats[s].node && a->seats[s].mask == b->seats[s].mask;
	return same;
}

/* One that was suspended goes on where it was and nowhere else. */
static int check_start(struct sw_soak_books *books, const struct sw_engine *engine, const struct sw_command *command, struct sw_err *err)
{
	struct sw_soak_entry *entry = &books->jobs[command->job];
	const struct sw_soak_entry before = *entry;
	entry->started = (!stands(books, &before) || entry->frees) && !entry->anew; /* else its memory was there */
	entry->came = !stands(books, &before) && !entry->anew;
	if (entry->stop_rule >= SW_STOP_NEVER && !is_guaranteed(engine, command->job))
		return sw_err_set(err, SW_EBUG, "job %u may not be stopped and runs where it would have to make way", command->job);
	bool bound = stands(books, &before);
	if (command->goes_on != bound)
		return sw_err_set(err, SW_EBUG, "job %u starts, and it is not true whether its run goes on", command->job);
	entry->epoch = command->epoch;
	entry->at_home = false;
	entry->begun &= bound;
	entry->leaves = bound ? entry->leaves : 0;
	int r = sit_down(books, engine, command, err);
	if (!before.at_home || (!bound && !same_seats(&before, entry))) {
		entry->keeps = 0;
		entry->frees = false;
	}
	if (r == 0 && bound && !before.home_moved && !same_seats(&before, entry))
		return sw_err_set(err, SW_EBUG, "job %u was suspended and starts elsewhere", command->job);
	return r;
}

/* Whatever lease it has. */
static bool is_protected(const struct sw_soak_books *books, const struct sw_soak_entry *entry)
{
	return books->now - entry->since < books->config->terms.quantum_ns;
}

static int check_stop(struct sw_soak_books *books, const struct sw_command *command, struct sw_err *err)
{
	struct sw_soak_entry *entry = &books->jobs[command->job];
	if (command->reason == SW_REASON_MOVED && books->turns_back && entry->runs) { /* to begin anew */
		entry->runs = false;
		entry->anew = true;
		return 0;
	}
	if (command->reason == SW_REASON_MOVED && !(books->config->terms.moves == SW_MOVES_RESTART && entry->runs))
		return sw_err_set(err, SW_EBUG, "job %u was stopped to be moved, which cannot be", command->job);
	if (command->reason == SW_REASON_NODE_LOST && books->turns_back && entry->runs && entry->no_restart) { /* nor to begin anew */
		entry->runs = false;
		entry->ended = true;
		return 0;
	}
	if (command->reason == SW_REASON_BOUNCED && books->bounces && entry->runs) {
		entry->at_home = has_home(books, entry) && suspends(books, entry);
		entry->home_moved = false;
		stop_run(entry);
		return command->stands == entry->at_home ? 0 : sw_err_set(err, SW_EBUG, "job %u was sent away and lost", command->job);
	}
	if (command->reason != SW_REASON_PREEMPTED && command->reason != SW_REASON_MOVED) {
		if (books->due_next == books->due_count || books->due[books->due_next].kind != command->kind ||
		    books->due[books->due_next].reason != command->reason || books->due[books->due_next].job != command->job)
			return sw_err_set(err, SW_EBUG, "job %u was stopped for reason %u without cause", command->job, command->reason);
		books->due_next++;
		return 0;
	}
	if (!entry->runs)
		return sw_err_set(err, SW_EBUG, "job %u was preempted and did not run", command->job);
	if (is_protected(books, entry))
		return sw_err_set(err, SW_EBUG, "job %u was preempted before its quantum was over", command->job);
	for (uint32_t s = 0; s < entry->seat_count; s++)
		if (books->closed[entry->seats[s].node] || (books->shut[entry->seats[s].node] & entry->seats[s].mask) != 0)
			return sw_err_set(err, SW_EBUG, "job %u was preempted on node %u, which is closed or has its GPU shut",
					  command->job, entry->seats[s].node);
	if (!owner_allows(books, entry) || (command->reason == SW_REASON_MOVED && suspends(books, entry)))
		return sw_err_set(err, SW_EBUG, "job %u was stopped, which its owner does not allow", command->job);
	if (command->reason == SW_REASON_PREEMPTED)
		stop_run(entry);
	entry->runs = false;
	entry->kept = books->config->terms.keeps_state && command->reason == SW_REASON_PREEMPTED;
	entry->at_home = has_home(books, entry) && command->reason == SW_REASON_PREEMPTED;
	entry->home_moved = false;
	if (command->stands != (entry->at_home && suspends(books, entry)))
		return sw_err_set(err, SW_EBUG, "job %u was stopped, and it is not true whether it stands", command->job);
	return 0;
}

/* In its run: on as many GPUs of its node. That these fit is seen from the seats. One that it
 * cannot leave it has again. */
static int sit_elsewhere(struct sw_soak_entry *entry, const struct sw_command *command, struct sw_err *err)
{
	bool back = command->reason == SW_REASON_BOUNCED;
	if (!entry->begun || (back ? entry->leaves != command->mask : entry->leaves != 0))
		return sw_err_set(err, SW_EBUG, "job %u was moved and had not begun, or is on its way", command->job);
	entry->leaves = back ? 0 : entry->seats[0].mask;
	if (entry->seat_count != 1 || entry->seats[0].split_bytes != 0 || entry->seats[0].mask == command->mask ||
	    (uint32_t)__builtin_popcountll(command->mask) != entry->gpus)
		return sw_err_set(err, SW_EBUG, "job %u was moved to GPUs that it cannot have", command->job);
	entry->seats[0].mask = command->mask;
	return 0;
}

/* Off: nothing is there. On: it was off, and its driver says when it is up. */
static int check_switch(struct sw_soak_books *books, const struct sw_command *command, struct sw_err *err)
{
	uint32_t node = command->node;
	bool on = command->kind == SW_CMD_NODE_ON, sound = node < books->nodes && books->config->terms.nodes_switch;
	if (!sound || (on ? !books->off[node] && !books->was_off[node] : books->down[node] || books->closed[node]))
		return sw_err_set(err, SW_EBUG, "node %u was switched, which cannot be", node);
	for (uint32_t j = 0; !on && j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		if ((entry->runs || (stands(books, entry) && !entry->home_moved)) && sits_on(entry, node))
			return sw_err_set(err, SW_EBUG, "node %u was switched off, and job %u is there", node, j);
	}
	books->off[node] = !on;
	books->boots[node] = on && books->down[node];
	books->down[node] |= !on;
	return 0;
}

static int check_command(struct sw_soak_books *books, const struct sw_engine *engine, const struct sw_command *command, struct sw_err *err)
{
	if (command->kind == SW_CMD_ASK) {
		books->asked++;
		return 0;
	}
	if (command->kind == SW_CMD_NODE_OFF || command->kind == SW_CMD_NODE_ON)
		return check_switch(books, command, err);
	if (command->job >= books->count)
		return sw_err_set(err, SW_EBUG, "a command names job %u, which was not submitted", command->job);
	struct sw_soak_entry *entry = &books->jobs[command->job];
	switch ((enum sw_command_kind)command->kind) {
	case SW_CMD_START:
		if (entry->runs || entry->held || entry->ended || command->epoch != entry->epoch + !command->goes_on)
			return sw_err_set(err, SW_EBUG, "job %u cannot start run %u now", command->job, command->epoch);
		return check_start(books, engine, command, err);
	case SW_CMD_MOVE:
		/* Another event of the step may have ended the run since, which is foreseen. */
		if (command->reason != SW_REASON_NONE && command->epoch == entry->epoch)
			return entry->runs || entry->at_home ? sit_elsewhere(entry, command, err) : 0;
		if (!entry->runs || command->epoch != entry->epoch)
			return sw_err_set(err, SW_EBUG, "job %u was moved in run %u, which is not on", command->job, command->epoch);
		if (is_protected(books, entry))
			return sw_err_set(err, SW_EBUG, "job %u was moved before its quantum was over", command->job);
		if (!owner_allows(books, entry) && (books->config->terms.moves != SW_MOVES_RESTART || entry->keeps == 2))
			return sw_err_set(err, SW_EBUG, "job %u was moved, which its owner does not allow", command->job);
		if (books->config->terms.moves == SW_MOVES_NEVER)
			return sw_err_set(err, SW_EBUG, "job %u was moved where nothing can be moved", command->job);
		if (books->config->terms.moves == SW_MOVES_RESTART) {
			int r = sit_elsewhere(entry, command, err);
			entry->since = books->now;
			return r < 0 ? r : check_quota(books, engine, command->job, false, err);
		}
		entry->leaves = 0;
		return sit_down(books, engine, command, err);
	case SW_CMD_STOP:
	case SW_CMD_KILL:
		return command->epoch == entry->epoch ? check_stop(books, command, err)
						      : sw_err_set(err, SW_EBUG, "job %u was stopped in run %u, not %u", command->job,
								   command->epoch, entry->epoch);
	case SW_CMD_LIMIT:
		return entry->runs && command->epoch == entry->epoch
			       ? check_quota(books, engine, command->job, false, err)
			       : sw_err_set(err, SW_EBUG, "job %u was limited and does not run", command->job);
	case SW_CMD_ADMIT:
		if (entry->runs || command->text == NULL || command->text[0] == '\0')
			return sw_err_set(err, SW_EBUG, "job %u was admitted on other terms, and no reason was given", command->job);
		return 0;
	case SW_CMD_ASK: /* of no job */
		return 0;
	case SW_CMD_REFUSE:
		/* Also later than at once: another policy, or what happened to the cluster, may
		 * leave no place for it. */
		if (entry->runs || entry->refused)
			return sw_err_set(err, SW_EBUG, "job %u was refused while it ran, or twice", command->job);
		entry->ended = entry->refused = true;
		return 0;
	case SW_CMD_NODE_OFF:
	case SW_CMD_NODE_ON:
		break;
	}
	return sw_err_set(err, SW_EBUG, "there is no command %u", command->kind);
}

/* ---- agreement ---- */

static int check_jobs(const struct sw_soak_books *books, const struct sw_engine *engine, struct sw_err *err)
{
	if (sw_view_nodes(sw_engine_view(engine)) != books->nodes)
		return sw_err_set(err, SW_EBUG, "the engine has %u nodes, not %u", sw_view_nodes(sw_engine_view(engine)), books->nodes);
	for (uint32_t n = 0; n < books->nodes; n++) {
		struct sw_node node;
		sw_view_node(sw_engine_view(engine), (struct sw_node_id){n}, &node);
		if (node.up == books->down[n] || (node.power == SW_POWER_OFF) != books->off[n])
			return sw_err_set(err, SW_EBUG, "node %u is %s with power %u, events and commands say otherwise", n,
					  node.up ? "up" : "down", node.power);
	}
	if (sw_engine_job_count(engine) != books->count)
		return sw_err_set(err, SW_EBUG, "the engine has %u jobs, not %u", sw_engine_job_count(engine), books->count);
	for (uint32_t j = 0; j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		const struct sw_job *job = sw_engine_job(engine, (struct sw_job_id){j});
		if ((job->state == SW_JOB_RUNNING) != entry->runs || (job->state > SW_JOB_RUNNING) != entry->ended ||
		    (job->state == SW_JOB_HELD) != (entry->held && !entry->ended) || job->gpus_held != (entry->runs ? entry->gpus : 0) ||
		    sw_engine_epoch(engine, job->id) != entry->epoch)
			return sw_err_set(err, SW_EBUG, "job %u is in state %u with %u GPUs, its commands say otherwise", j, job->state,
					  job->gpus_held);
	}
	return 0;
}

/* Each that is open was told of, and none that was answered is open. */
static int check_questions(struct sw_soak_books *books, const struct sw_engine *engine, struct sw_err *err)
{
	struct sw_engine_question question = {0};
	uint32_t open = 0;
	while (sw_engine_next_question(engine, question.number, &question)) {
		if (question.number > books->asked || ++open > SW_QUESTIONS_MAX)
			return sw_err_set(err, SW_EBUG, "question %llu is open, and %llu were asked", (unsigned long long)question.number,
					  (unsigned long long)books->asked);
		for (uint32_t a = 0; a < books->answered_count; a++)
			if (books->answered[a] == question.number)
				return sw_err_set(err, SW_EBUG, "question %llu was answered and is open",
						  (unsigned long long)question.number);
	}
	books->answered_count = 0;
	return 0;
}

/* Adds up every GPU from the seats. */
static int check_gpus(const struct sw_soak_books *books, const struct sw_engine *engine, struct sw_err *err)
{
	static struct {
		uint64_t bytes, standing;
		uint32_t compute, residents, holders;
		bool started, whole;
	} gpus[SW_SOAK_NODES_MAX][64];
	const struct sw_topology *topology = sw_engine_ledger(engine)->topology;
	memset(gpus, 0, sizeof gpus);
	for (uint32_t j = 0; j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		const struct sw_job *job = sw_engine_job(engine, (struct sw_job_id){j});
		uint64_t bytes = job->paused ? sw_job_floor(job) : job->gpu_memory_bytes;
		for (uint32_t s = 0; stands(books, entry) && !entry->runs && !entry->home_moved && s < entry->seat_count; s++)
			for (uint32_t g = 0; g < 64; g++)
				if ((entry->seats[s].mask >> g & 1) != 0) {
					gpus[entry->seats[s].node][g].standing += entry->frees ? 0 : bytes;
					gpus[entry->seats[s].node][g].holders += !entry->frees;
				}
		for (uint32_t s = 0; entry->runs && s < entry->seat_count; s++) {
			const struct sw_topology_node *node = &topology->nodes[entry->seats[s].node];
			for (uint32_t g = 0; g < 64; g++) {
				if ((entry->seats[s].mask >> g & 1) == 0)
					continue;
				if (g >= node->gpus)
					return sw_err_set(err, SW_EBUG, "job %u holds GPU %u of node %u, which has %u", j, g,
							  entry->seats[s].node, node->gpus);
				uint64_t asked = bytes == 0 ? node->gpu_memory_bytes : bytes;
				gpus[entry->seats[s].node][g].bytes +=
					entry->seats[s].split_bytes != 0 ? entry->seats[s].split_bytes : asked;
				gpus[entry->seats[s].node][g].compute += entry->guaranteed && !job->paused ? job->compute_milli : 0;
				gpus[entry->seats[s].node][g].residents++;
				gpus[entry->seats[s].node][g].whole |= bytes == 0 && entry->seats[s].split_bytes == 0;
				gpus[entry->seats[s].node][g].started |= entry->started;
			}
		}
	}
	for (uint32_t n = 0; n < topology->node_count; n++) {
		for (uint32_t g = 0; g < topology->nodes[n].gpus; g++) {
			if (gpus[n][g].bytes > topology->nodes[n].gpu_memory_bytes || gpus[n][g].compute > SW_COMPUTE_WHOLE ||
			    gpus[n][g].residents > SW_GPU_RESIDENTS_MAX)
				return sw_err_set(err, SW_EBUG, "GPU %u of node %u is over-committed", g, n);
			else if (gpus[n][g].started && gpus[n][g].holders > 0 &&
				 (gpus[n][g].whole || gpus[n][g].standing > topology->nodes[n].gpu_memory_bytes - gpus[n][g].bytes))
				return sw_err_set(err, SW_EBUG, "a job was sent to GPU %u of node %u, where suspended ones hold the memory",
						  g, n);
		}
	}
	return 0;
}

/* What the job asks for of the node's host memory, at most what there is. */
static uint64_t asks_of(const struct sw_soak_entry *entry, const struct sw_job *job, uint32_t node, uint64_t most)
{
	uint64_t bytes = 0;
	for (uint32_t s = 0; s < entry->seat_count; s++)
		if (entry->seats[s].node == node)
			bytes += job->host_memory_bytes * (uint64_t)__builtin_popcountll(entry->seats[s].mask);
	return bytes < most ? bytes : most;
}

/* To a node on which runs stood before this step and stand still, none comes that asks for more
 * host memory than all others there leave. */
static int check_hosts(const struct sw_soak_books *books, const struct sw_engine *engine, struct sw_err *err)
{
	struct {
		uint64_t bytes;
		bool stood, came;
	} hosts[SW_SOAK_NODES_MAX] = {0};
	const struct sw_topology *topology = sw_engine_ledger(engine)->topology;
	for (uint32_t j = 0; j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		bool stays = stands(books, entry) && !entry->runs;
		for (uint32_t n = 0; (stays || entry->runs) && n < topology->node_count; n++) {
			uint64_t bytes = asks_of(entry, sw_engine_job(engine, (struct sw_job_id){j}), n, topology->nodes[n].memory_bytes);
			hosts[n].bytes += bytes;
			hosts[n].came |= entry->came && entry->runs && bytes > 0;
			hosts[n].stood |= stays && entry->stood && sits_on(entry, n);
		}
	}
	for (uint32_t n = 0; n < topology->node_count; n++)
		if (hosts[n].came && hosts[n].stood && hosts[n].bytes > topology->nodes[n].memory_bytes)
			return sw_err_set(err, SW_EBUG, "a job was sent to node %u, where suspended ones hold the host memory", n);
	return 0;
}

/* Whether the job of the entry, which is not the one for which they are held, may be on these
 * GPUs. */
static bool keeps_off(const struct sw_soak_entry *entry, const struct sw_part *part, sw_ns from)
{
	for (uint32_t s = 0; entry->runs && entry->until > from && s < entry->seat_count; s++)
		if (entry->seats[s].node == part->node && (entry->seats[s].mask & part->mask) != 0)
			return false;
	return true;
}

/* What is held for a job that waits is on nodes that take jobs, and no other run is there that does
 * not leave before. */
static int check_holds(const struct sw_soak_books *books, const struct sw_engine *engine, struct sw_err *err)
{
	const struct sw_part *parts = sw_engine_ledger(engine)->parts;
	for (uint32_t j = 0; j < books->count; j++) {
		const struct sw_soak_entry *entry = &books->jobs[j];
		struct sw_hold hold;
		if (!sw_job_hold(sw_engine_view(engine), sw_engine_job(engine, (struct sw_job_id){j}), &hold))
			continue;
		if (entry->runs || entry->held || entry->ended || hold.to <= books->now)
			return sw_err_set(err, SW_EBUG, "GPUs are held for job %u, which does not wait, or for too long", j);
		for (uint32_t p = sw_hold_of(engine, j)->parts; p != SW_NO_PART; p = parts[p].next) {
			bool clear = !books->down[parts[p].node] && !books->closed[parts[p].node] &&
				     (books->shut[parts[p].node] & parts[p].mask) == 0;
			for (uint32_t k = 0; clear && k < books->count; k++)
				clear = keeps_off(&books->jobs[k], &parts[p], hold.from);
			if (!clear)
				return sw_err_set(err, SW_EBUG, "what is held for job %u on node %u takes no jobs, or others have it", j,
						  parts[p].node);
		}
	}
	return 0;
}

int sw_soak_books_check(struct sw_soak_books *books, const struct sw_engine *engine, const struct sw_step *step, struct sw_err *err)
{
	for (size_t c = 0; c < step->command_count; c++) {
		int r = check_command(books, engine, &step->commands[c], err);
		if (r < 0)
			return r;
	}
	if (books->due_next != books->due_count)
		return sw_err_set(err, SW_EBUG, "job %u should have been stopped", books->due[books->due_next].job);
	if (step->wake_at <= books->now)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: a wake-up is left in the past");
	if (sw_view_now(sw_engine_view(engine)) != books->now)
		return sw_err_set(err, SW_EBUG, "engine invariant 6: time went back");
	int r = check_jobs(books, engine, err);
	r = r < 0 ? r : check_questions(books, engine, err);
	r = r < 0 ? r : check_gpus(books, engine, err);
	for (uint32_t j = 0; r == 0 && j < books->count; j++)
		books->jobs[j].until = sw_engine_job(engine, (struct sw_job_id){j})->until;
	r = r < 0 ? r : check_holds(books, engine, err);
	return r < 0 ? r : check_hosts(books, engine, err);
}
