#include "cli/waiting.h"
#include "cli/connect.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/now.h"
#include "cli/live.h"
#include "cli/message.h"

#define FIRST_MS 1000 /* most jobs run by then, and need no note */
#define EVERY_MS 2000

/* A job that has its GPUs is about to start, unless there is something in its way. */
static bool waits(const json_t *job)
{
	const char *state = sw_cli_text(job, "state", "");
	return strcmp(state, "PD") == 0 || strcmp(state, "S") == 0 ||
	       (strcmp(state, "CF") == 0 && sw_cli_text(job, "reason", "")[0] != '\0');
}

/* How many bytes a number has here, or a word that follows it: "1 GPU", "1 is free", "2 GPUs", "2
 * are free". 0: neither. */
static size_t skip_count(const char *text)
{
	static const char *const words[] = {"GPUs", "GPU", " are ", " is "};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return strlen(words[i]);
	return isdigit((unsigned char)*text) ? 1 : 0;
}

/* Seconds that pass and GPUs that come and go are no other reason; the same
 * failure of another run is. */
static void make_key(const json_t *job, const char *why, char *key, size_t size)
{
	size_t used = (size_t)snprintf(key, size, "%" PRId64 " ", sw_cli_number(job, "epoch", 0));
	while (*why != '\0' && used + 1 < size) {
		size_t skipped = skip_count(why);
		if (skipped == 0)
			key[used++] = *why;
		why += skipped > 0 ? skipped : 1;
	}
	key[used] = '\0';
}

static void tell_reason(struct sw_cli_waiting *waiting, const json_t *job)
{
	SW_JSON *answer = NULL;
	struct sw_err ignored = {0};
	char path[64], key[sizeof waiting->told];
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/why", waiting->id);
	if (sw_client_get(waiting->client, path, &answer, &ignored) < 0)
		return;
	/* It may have started between the two questions: then the sentence is about that. */
	bool still_waits = strcmp(sw_cli_text(answer, "state", ""), sw_cli_text(job, "state", "")) == 0;
	SW_CLEANUP(sw_freep) char *why = still_waits ? sw_cli_local_sentence(sw_cli_text(answer, "why", "")) : NULL;
	if (why == NULL || why[0] == '\0')
		return;
	make_key(job, why, key, sizeof key);
	if (strcmp(key, waiting->told) == 0)
		return;
	sw_cli_print_note("job %" PRIu64 " waits: %s", waiting->id, why);
	memcpy(waiting->told, key, sizeof key);
	waiting->says_runs = true;
}

/* That the controller does not answer is told by the function that calls it for what lasts. */
static void look(void *user)
{
	struct sw_cli_waiting *waiting = user;
	SW_JSON *job = NULL;
	struct sw_err ignored = {0};
	if (sw_now_monotonic_ms() < waiting->next_ms)
		return;
	if (sw_cli_get_job(waiting->client, waiting->id, &job, &ignored) == 0 && waits(job))
		tell_reason(waiting, job);
	if (strcmp(sw_cli_text(job, "state", ""), "R") == 0 && waiting->says_runs) {
		sw_cli_print_note("job %" PRIu64 " runs", waiting->id);
		waiting->says_runs = false;
	}
	waiting->next_ms = sw_now_monotonic_ms() + EVERY_MS;
}

int sw_cli_waiting_tell(struct sw_client *client, const char *controller, uint64_t id, struct sw_cli_waiting *waiting, struct sw_err *err)
{
	*waiting = (struct sw_cli_waiting){.id = id, .next_ms = sw_now_monotonic_ms() + FIRST_MS};
	int r = sw_cli_connect(controller, &waiting->client, err);
	if (r < 0)
		return r;
	waiting->busy = client;
	sw_client_meanwhile(client, look, waiting);
	return 0;
}

void sw_cli_waiting_release(struct sw_cli_waiting *waiting)
{
	if (waiting->busy != NULL)
		sw_client_meanwhile(waiting->busy, NULL, NULL);
	sw_client_free(waiting->client);
	waiting->busy = waiting->client = NULL;
}

int sw_cli_waiting_wait(struct sw_client *client, const char *controller, uint64_t id, json_t **ret_job, struct sw_err *err)
{
	struct sw_cli_waiting waiting;
	int r = sw_cli_waiting_tell(client, controller, id, &waiting, err);
	r = r < 0 ? r : sw_cli_wait_job(client, id, ret_job, err);
	sw_cli_waiting_release(&waiting);
	return r;
}
