/* A few milliseconds of reading at one go, so that the loop is not held up. */
#include "server/recall.h"

#include "base/now.h"
#include "base/number.h"
#include "server/past.h"
#include "server/state.h"

#define RECALL_NS (5 * SW_NS_PER_MS) /* of reading rows at one go */

struct reading {
	struct sw_recall *recall;
	int64_t until_ns;
	uint64_t last;
};

static int read_row(void *user, const struct sw_past_row *row)
{
	struct reading *reading = user;
	struct sw_recall *recall = reading->recall;
	struct sw_length length, *slot = NULL;
	reading->last = row->job;
	if (sw_past_length(row, &length) && (slot = sw_vec_push(&recall->lengths)) != NULL)
		*slot = length;
	return recall->lengths.count == SW_LENGTHS_KEPT || sw_now_boot_ns() > reading->until_ns ? 1 : 0;
}

/* The oldest first: then the ring of the brain forgets these first. */
static void hand_over(struct sw_server *server, struct sw_recall *recall)
{
	for (size_t i = recall->lengths.count; i-- > 0;)
		if (sw_brain_recall_length(server->brain, &recall->lengths.items[i]) < 0)
			break;
	sw_vec_free(&recall->lengths);
	recall->from = 0;
}

bool sw_recall_some(struct sw_server *server, struct sw_recall *recall)
{
	struct reading reading = {.recall = recall, .until_ns = sw_now_boot_ns() + RECALL_NS};
	if (recall->brain != server->brain) {
		recall->brain = server->brain;
		recall->from = sw_brain_job_count(server->brain);
		sw_vec_free(&recall->lengths);
	}
	if (recall->from == 0)
		return true;
	const struct sw_past_query query = {.from = recall->from, .descending = true};
	int r = sw_past_each(server->journal, &query, read_row, &reading, NULL);
	bool is_done = r != 1 || recall->lengths.count == SW_LENGTHS_KEPT || reading.last <= 1;
	recall->from = reading.last - 1;
	if (is_done)
		hand_over(server, recall);
	return is_done;
}

void sw_recall_release(struct sw_recall *recall)
{
	sw_vec_free(&recall->lengths);
}
