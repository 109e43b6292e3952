/* Which agent speaks for a node: one at a time.
 *
 * An agent is known by its home, the id of its state folder, which has its runs. One that starts
 * again there goes on with them, at once, whatever the clocks say. One with another home is a
 * stranger that has the same name. It is heard when the first is gone and has left no runs behind.
 * Otherwise it would start again what still runs, and stop what it does not know. Agents of version
 * 0.1 have no home; the latest start of one is believed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "brain/record.h"
#include "brain/speakers.h"
#include "brain/state.h"

/* An agent that waits for news is answered, and speaks again, every ten seconds. */
#define ALIVE_NS (30 * SW_NS_PER_S)
/* One whose connection has closed comes back within two. */
#define LEFT_NS (5 * SW_NS_PER_S)

static const char *home_of(const struct sw_sync *sync)
{
	return sync->home != NULL ? sync->home : "";
}

static bool is_alive(const struct sw_brain_node *node, sw_ns now)
{
	if (!node->up || now - node->heard_at >= ALIVE_NS)
		return false;
	return node->left_at == 0 || now - node->left_at < LEFT_NS;
}

static int refuse_stranger(const struct sw_brain_node *node, sw_ns now, struct sw_err *err)
{
	size_t runs = node->jobs.count + node->ghosts.count;
	int64_t silent_s = now > node->heard_at ? (now - node->heard_at) / SW_NS_PER_S : 0;
	if (is_alive(node, now)) {
		sw_err_set(err, SW_EDENIED, "node '%.60s' has an agent already", node->name);
		sw_err_detail(err, "an agent with another state folder was heard %" PRId64 " s ago", silent_s);
		sw_err_hint(err, "Give this agent another name with --node, or stop the other one.");
		return SW_EDENIED;
	}
	if (runs == 0)
		return 0;
	if (node->removed) {
		sw_err_set(err, SW_EDENIED, "node '%.60s' was removed, and a job of it may still run", node->name);
		sw_err_detail(err, "%zu job%s with a lease ran there; that agent has been silent for %" PRId64 " s", runs,
			      runs == 1 ? "" : "s", silent_s);
		sw_err_hint(err, "Try again when the leases are over, or give this agent another name with --node.");
		return SW_EDENIED;
	}
	sw_err_set(err, SW_EDENIED, "node '%.60s' has jobs of an agent with another state folder", node->name);
	sw_err_detail(err, "%zu of them may still run; that agent has been silent for %" PRId64 " s", runs, silent_s);
	sw_err_hint(err, "Start the agent with its old state folder; or, if that is gone for good: sharewell nodes remove %.60s",
		    node->name);
	return SW_EDENIED;
}

int sw_speaker_admit(const struct sw_brain_node *node, sw_ns now, const struct sw_sync *sync, struct sw_err *err)
{
	if (node->home[0] == '\0')
		return 0;
	if (strcmp(home_of(sync), node->home) != 0)
		return refuse_stranger(node, now, err);
	if (node->removed || sync->start >= node->start)
		return 0;
	sw_err_set(err, SW_EDENIED, "node '%.60s' has an agent already", node->name);
	sw_err_detail(err, "the agent was started again in the same state folder since");
	sw_err_hint(err, "Stop this one.");
	return SW_EDENIED;
}

static bool is_stranger(const struct sw_brain_node *node, const struct sw_sync *sync)
{
	return strcmp(home_of(sync), node->home) != 0;
}

bool sw_speaker_is_new(const struct sw_brain_node *node, const struct sw_sync *sync)
{
	return is_stranger(node, sync) || strcmp(sync->token, node->token) != 0;
}

int sw_speaker_record(const struct sw_sync *sync, sw_records *records, struct sw_err *err)
{
	return sw_record_push(records, SW_RECORD_SPEAKER,
			      json_pack("{s:s, s:s, s:s}", "name", sync->node, "home", home_of(sync), "token", sync->token), err);
}

/* The node of the record, and what it says; NULL: it cannot be applied. */
static struct sw_brain_node *read_record(const struct sw_brain *brain, json_t *body, const char **home, const char **token)
{
	const char *name;
	if (json_unpack(body, "{s:s, s:s, s:s}", "name", &name, "home", home, "token", token) != 0)
		return NULL;
	struct sw_brain_node *node = sw_brain_find_node(brain, name);
	return node != NULL && strlen(*home) < sizeof node->home && strlen(*token) < sizeof node->token ? node : NULL;
}

int sw_speaker_check(const struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *home, *token;
	if (read_record(brain, body, &home, &token) == NULL)
		return sw_err_set(err, SW_EINPUT, "a record names a node that is not there, or an agent that cannot be");
	return 0;
}

int sw_speaker_apply(struct sw_brain *brain, json_t *body, struct sw_err *err)
{
	const char *home, *token;
	struct sw_brain_node *node = read_record(brain, body, &home, &token);
	if (node == NULL)
		return sw_err_set(err, SW_EBUG, "a speaker record was not checked");
	snprintf(node->home, sizeof node->home, "%s", home);
	snprintf(node->token, sizeof node->token, "%s", token);
	return 0;
}

bool sw_speaker_is_news(const struct sw_brain_node *node, const struct sw_sync *sync)
{
	if (!node->up || node->silent || is_stranger(node, sync))
		return true;
	int order = sync->home != NULL ? (sync->start > node->start) - (sync->start < node->start) : strcmp(sync->instance, node->instance);
	return order > 0 || (order == 0 && sync->number > node->number);
}

void sw_speaker_remember(struct sw_brain_node *node, const struct sw_sync *sync)
{
	snprintf(node->instance, sizeof node->instance, "%s", sync->instance);
	node->start = sync->start;
	node->number = sync->number;
	node->left_at = 0;
}

bool sw_speaker_is_last(const struct sw_brain_node *node, const struct sw_sync *sync)
{
	return !is_stranger(node, sync) && sync->start == node->start && sync->number == node->number &&
	       strncmp(sync->instance, node->instance, sizeof node->instance - 1) == 0;
}

void sw_brain_left(struct sw_brain *brain, sw_ns now, const struct sw_sync *sync)
{
	struct sw_brain_node *node = sw_brain_find_node(brain, sync->node);
	if (node != NULL && sw_speaker_is_last(node, sync))
		node->left_at = now;
}

const char *sw_brain_token_of(const struct sw_brain *brain, const char *name)
{
	const struct sw_brain_node *node = sw_brain_find_node(brain, name);
	return node != NULL ? node->token : NULL;
}

size_t sw_brain_nodes_of_token(const struct sw_brain *brain, const char *token)
{
	size_t count = 0;
	for (size_t n = 0; n < brain->nodes.count; n++)
		count += strcmp(brain->nodes.items[n].token, token) == 0;
	return count;
}
