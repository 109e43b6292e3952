/* The controller's driver: journal before effect, effect before answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure/failure.h"
#include "system_state.h"

static struct sw_brain_config brain_config = {
	.policy = "las",
	.placement = "pack",
	.silence_ns = 30 * SW_NS_PER_S,
	.silence_margin_ns = 2 * SW_NS_PER_S,
	.retry_backoff_ns = 5 * SW_NS_PER_S,
};

void sw_system_commit(struct system *s, sw_records *records, uint64_t *ret_job)
{
	for (size_t r = 0; r < records->count; r++) {
		struct line *line = sw_vec_push(&s->journal);
		*line = (struct line){s->now_ns, records->items[r]};
		sw_system_check(s, sw_brain_apply_record(s->brain, s->now_ns, &line->record, ret_job, s->err),
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
		sw_system_check(s, sw_answer_encode(answer, &text, &size, s->err), "an answer cannot be written");
		struct message message = {.node = node, .number = parked->sync->number};
		snprintf(message.instance, sizeof message.instance, "%s", parked->instance);
		if (text != NULL)
			sw_system_post(s, message, text, size);
		free(text);
		sw_brain_answer_free(answer);
	}
	sw_sync_free(parked->sync);
	parked->waits = false;
}

void sw_system_controller_hears(struct system *s, const struct message *message)
{
	struct sw_sync *sync = NULL;
	if (s->brain == NULL)
		return;
	sw_system_check(s, sw_sync_decode(message->text, message->size, &sync, s->err), "a sync cannot be read");
	if (sync == NULL)
		return;
	sw_records records = {0};
	int r = sw_brain_hear(s->brain, s->now_ns, sync, &records, NULL);
	if (r == SW_EDENIED) { /* of an agent that was started again since */
		sw_sync_free(sync);
		return;
	}
	sw_system_check(s, r, "a sync cannot be heard");
	sw_system_commit(s, &records, NULL);
	struct parked *parked = &s->machines[message->node].parked;
	if (parked->waits)
		sw_sync_free(parked->sync);
	*parked = (struct parked){.waits = true, .sync = sync, .until_ns = s->now_ns + sw_brain_patience(s->brain, sync)};
	snprintf(parked->instance, sizeof parked->instance, "%s", message->instance);
}

void sw_system_controller_turn(struct system *s)
{
	for (int rounds = 0; s->brain != NULL && sw_brain_next(s->brain) <= s->now_ns && rounds < 1000; rounds++) {
		sw_records records = {0};
		sw_system_check(s, sw_brain_tick(s->brain, s->now_ns, &records, s->err), "a tick failed");
		sw_system_commit(s, &records, NULL);
	}
	for (uint32_t n = 0; s->brain != NULL && n < s->plan->nodes; n++) {
		struct parked *parked = &s->machines[n].parked;
		if (parked->waits && (s->now_ns >= parked->until_ns || sw_brain_has_word(s->brain, parked->sync)))
			answer_sync(s, n);
	}
}

void sw_system_controller_snapshots(struct system *s)
{
	struct sw_pack pack = {0};
	sw_brain_save(s->brain, &pack);
	free(s->snapshot);
	s->snapshot = sw_pack_take(&pack, &s->snapshot_size);
	s->snapshot_records = s->journal.count;
	if (s->snapshot == NULL)
		sw_system_broke(s, "the controller cannot be saved", 0);
}

static struct sw_brain *replayed(struct system *s, struct sw_brain *brain, size_t from)
{
	for (size_t r = from; s->broken == 0 && r < s->journal.count; r++) {
		const struct line *line = &s->journal.items[r];
		sw_system_check(s,
				sw_brain_apply(brain, line->at_ns, line->record.kind, line->record.body, line->record.size, NULL, s->err),
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
		sw_system_broke(s, "a controller that began with a snapshot knows something else", 0);
	sw_pack_release(&a);
	sw_pack_release(&b);
	for (uint64_t job = 1; job <= sw_brain_job_count(whole); job++) {
		struct sw_job_view x, y;
		sw_brain_job(loaded, s->now_ns, job, &x);
		sw_brain_job(whole, s->now_ns, job, &y);
		if (strcmp(x.state, y.state) != 0 || strcmp(x.reason, y.reason) != 0 || strcmp(x.node, y.node) != 0 ||
		    x.ran_ns != y.ran_ns || x.epoch != y.epoch || x.code != y.code || x.restarts != y.restarts)
			sw_system_broke(s, "a controller that began with a snapshot sees a job otherwise", job);
	}
}

void sw_system_controller_starts(struct system *s)
{
	struct sw_brain *whole = NULL;
	if (brain_config.failures == NULL) {
		/* Once for all the seeds: it costs more than a whole run. */
		static struct sw_failure_table *failures;
		sw_system_check(s, sw_failure_load(NULL, &failures, s->err), "the classes of failures cannot be read");
		brain_config.failures = failures;
	}
	sw_system_check(s, sw_brain_new(&brain_config, &whole, s->err), "the controller does not start");
	s->brain = replayed(s, whole, 0);
	if (s->snapshot != NULL && s->broken == 0) {
		bool adopted = true;
		struct sw_brain *loaded = NULL;
		sw_system_check(s, sw_brain_load(&brain_config, s->snapshot, s->snapshot_size, &loaded, &adopted, s->err),
				"a snapshot cannot be read");
		if (s->broken != 0)
			return;
		s->brain = replayed(s, loaded, s->snapshot_records);
		if (adopted)
			sw_system_broke(s, "a controller did not recognise its own snapshot", 0);
		check_same(s, loaded, whole);
		sw_system_check(s, sw_brain_validate(loaded, s->err), "the controller's brain is unsound after its start");
		sw_brain_free(whole);
		s->score.snapshots++;
	}
	sw_brain_assume_answers(s->brain, s->now_ns);
}

void sw_system_controller_dies(struct system *s)
{
	for (uint32_t n = 0; n < s->plan->nodes; n++) {
		if (s->machines[n].parked.waits)
			sw_sync_free(s->machines[n].parked.sync);
		s->machines[n].parked.waits = false;
	}
	sw_brain_free(s->brain);
	s->brain = NULL;
	s->controller_back_at_ns = s->now_ns + (int64_t)sw_rng_below(&s->rng, 60) * outage_second(s);
	s->score.crashes++;
}
