/* The clients that submit: HTTP over the controller's socket, as a client in
 * any language would do it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "storm.h"

enum { ANSWER_MAX = 4 << 20, PATIENCE_S = 30, AGAIN_US = 3000 };

static int reach(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	struct timeval patience = {.tv_sec = PATIENCE_S};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
		return fd;
	close(fd);
	return -1;
}

static bool send_all(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		size -= (size_t)n;
	}
	return true;
}

/* All that comes until the other end closes; NULL: nothing, or too much. */
static char *receive_all(int fd)
{
	size_t used = 0, size = 1 << 16;
	char *text = malloc(size + 1);
	while (text != NULL) {
		ssize_t n = recv(fd, text + used, size - used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		used += (size_t)n;
		if (used == size) {
			char *more = size < ANSWER_MAX ? realloc(text, size * 2 + 1) : NULL;
			if (more == NULL) {
				free(text);
				return NULL;
			}
			text = more;
			size *= 2;
		}
	}
	if (text != NULL)
		text[used] = '\0';
	return text;
}

/* The status of a whole answer; 0: it is not whole. */
static int read_answer(const char *text, json_t **ret_answer)
{
	const char *body = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
	int status;
	if (body == NULL || length == NULL || length > body || sscanf(text, "HTTP/1.1 %d", &status) != 1)
		return 0;
	body += 4;
	if (strlen(body) < strtoul(length + strlen("\r\nContent-Length:"), NULL, 10))
		return 0;
	*ret_answer = json_loads(body, 0, NULL);
	return *ret_answer != NULL ? status : 0;
}

int ask(const char *socket, const char *method, const char *path, const char *body, const char *key, json_t **ret_answer)
{
	SW_CLEANUP(sw_freep) char *head = NULL, *text = NULL;
	*ret_answer = NULL;
	int fd = reach(socket);
	if (fd < 0)
		return -1;
	int size =
		asprintf(&head, "%s %s HTTP/1.1\r\nHost: storm\r\nConnection: close\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", method, path,
			 key != NULL ? "Idempotency-Key: " : "", key != NULL ? key : "", key != NULL ? "\r\n" : "", strlen(body), body);
	int status = 0;
	if (size > 0 && send_all(fd, head, (size_t)size)) {
		text = receive_all(fd);
		status = text != NULL ? read_answer(text, ret_answer) : 0;
	}
	close(fd);
	return status;
}

int ask_patiently(struct cluster *cluster, const char *path, int64_t patience_ns, json_t **ret_answer)
{
	for (int64_t end_ns = boot_now_ns() + patience_ns; boot_now_ns() < end_ns; rest_us(AGAIN_US)) {
		cluster_pump(cluster);
		int status = ask(cluster->socket, "GET", path, "", NULL, ret_answer);
		if (status == 200)
			return status;
		json_decref(*ret_answer);
	}
	*ret_answer = NULL;
	return 0;
}

/* ---- a client in a round */

static char *describe(const struct client *client, const struct job_plan *job)
{
	static const char *const keeps[KEEP_KINDS] = {NULL, "never", "suspend", "requeue"};
	char array[32];
	snprintf(array, sizeof array, "0-%u", job->array - 1);
	char numbers[8][16];
	const uint32_t values[8] = {job->duration_ms,	       job->code,    job->signal, job->fails, job->children,
				    (uint32_t)job->child_kind, job->is_deaf, job->gpu_kib};
	for (int i = 0; i < 8; i++)
		snprintf(numbers[i], sizeof numbers[i], "%u", values[i]);
	json_t *request = json_pack("{s:[s,s,s,s,s,s,s,s,s,s,s], s:s, s:i, s:i, s:f, s:{s:s}}", "command", client->cluster->job, job->name,
				    client->cluster->folder, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
				    numbers[6], numbers[7], "name", job->name, "gpus", (int)job->gpus, "retries", (int)job->retries,
				    "grace", (double)job->grace_ms / 1000, "env", "LD_LIBRARY_PATH", client->cluster->emu);
	if (job->array > 0)
		json_object_set_new(request, "array", json_string(array));
	if (keeps[job->keep] != NULL)
		json_object_set_new(request, "preempt", json_string(keeps[job->keep]));
	if (job->gpu_kib > 0)
		json_object_set_new(request, "gpu_memory", json_string("256M"));
	char *text = json_dumps(request, JSON_COMPACT);
	json_decref(request);
	return text;
}

static void submit(const struct client *client, struct job_plan *job)
{
	SW_CLEANUP(sw_freep) char *body = describe(client, job);
	json_t *answer = NULL;
	int status = -1;
	/* Where none is, nothing was said: it is said again. An answer that does not come leaves it
	 * open, but for those that have a key: they ask again. */
	for (int64_t end_ns = boot_now_ns() + PATIENCE_S * SW_NS_PER_S; body != NULL && boot_now_ns() < end_ns; rest_us(AGAIN_US)) {
		status = ask(client->cluster->socket, "POST", "/v1/jobs", body, job->has_key ? job->name : NULL, &answer);
		if (status > 0 && status != 503 && status != 429)
			break;
		if (status == 0 && !job->has_key)
			break;
		job->repeats += status == 0;
		json_decref(answer);
		answer = NULL;
	}
	job->sent = status == 201 ? SENT_ACKNOWLEDGED : status == 0 ? SENT_UNANSWERED : status == -1 ? SENT_NOT : SENT_REFUSED;
	const json_t *ids = json_object_get(answer, "ids");
	for (size_t i = 0; status == 201 && i < json_array_size(ids) && i < ARRAY_MAX; i++)
		job->ids[job->id_count++] = (uint64_t)json_integer_value(json_array_get(ids, i));
	json_decref(answer);
}

/* A wish for the first job of the plan; whether it is heard does not matter, whether it was sent
 * does. The status of the answer. */
static int change(const struct client *client, struct job_plan *job, enum verb verb)
{
	if (job->id_count == 0)
		return -1;
	char path[80];
	json_t *answer = NULL;
	snprintf(path, sizeof path, "/v1/jobs/%" PRIu64 "/%s", job->ids[0], verb_names[verb]);
	int status = ask(client->cluster->socket, "POST", path, verb == VERB_MOVE ? "{}" : "", NULL, &answer);
	json_decref(answer);
	job->was_sent[verb] = job->was_sent[verb] || status >= 0;
	return status;
}

/* Nothing stays suspended or held: the wish is repeated until there is an answer. */
static void let_go(const struct client *client, struct job_plan *job, enum verb verb)
{
	for (int64_t end_ns = boot_now_ns() + PATIENCE_S * SW_NS_PER_S; boot_now_ns() < end_ns; rest_us(AGAIN_US)) {
		int status = change(client, job, verb);
		if (job->id_count == 0 || (status > 0 && status != 503 && status != 429))
			break;
	}
}

static void wait_until(const struct client *client, uint32_t at_us)
{
	int64_t left_ns = client->start_ns + (int64_t)at_us * SW_NS_PER_US - boot_now_ns();
	if (left_ns > 0)
		rest_us(left_ns / SW_NS_PER_US);
}

/* The next thing to do that is later than (after_us, after_step); SIZE_MAX: nothing. Each job
 * has a step for each verb. */
static size_t next_step(const struct client *client, uint32_t after_us, size_t after_step, uint32_t *ret_at_us)
{
	size_t best = SIZE_MAX;
	for (size_t i = 0; i < VERBS * client->plan->job_count; i++) {
		const struct job_plan *job = &client->plan->jobs[i / VERBS];
		uint32_t at_us = job->at_us[i % VERBS];
		bool is_later = at_us > after_us || (at_us == after_us && after_step != SIZE_MAX && i > after_step);
		if (job->client == client->number && at_us > 0 && is_later && (best == SIZE_MAX || at_us < *ret_at_us)) {
			best = i;
			*ret_at_us = at_us;
		}
	}
	return best;
}

void *run_client(void *context)
{
	const struct client *client = context;
	uint32_t at_us = 0, next_us = 0;
	for (size_t step = SIZE_MAX; (step = next_step(client, at_us, step, &next_us)) != SIZE_MAX;) {
		struct job_plan *job = &client->plan->jobs[step / VERBS];
		at_us = next_us;
		wait_until(client, at_us);
		if (step % VERBS == VERB_SUBMIT)
			submit(client, job);
		else
			change(client, job, (enum verb)(step % VERBS));
	}
	for (size_t i = 0; i < client->plan->job_count; i++) {
		struct job_plan *job = &client->plan->jobs[i];
		if (job->client == client->number && job->was_sent[VERB_HOLD])
			let_go(client, job, VERB_RELEASE);
		if (job->client == client->number && job->was_sent[VERB_SUSPEND])
			let_go(client, job, VERB_RESUME);
	}
	return NULL;
}
