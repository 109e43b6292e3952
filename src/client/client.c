#include "client/client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/now.h"
#include "client/access.h"
#include "client/trust.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define CALL_SECONDS 60L
#define CONNECT_SECONDS 5L
#define SILENCE_MS 5000 /* a controller that is well answers within milliseconds */
#define AGAIN_MS 60000
#define AGAIN_PAUSE_MS 200

struct sw_client {
	CURL *curl;
	struct sw_access access;
	struct sw_client_manner manner;
	char problem[CURL_ERROR_SIZE];
	sw_client_look_fn *look; /* meanwhile; NULL: there is nothing to look at */
	void *look_user;
	/* Of the last call: nothing answered; something was there; and said no. */
	bool away, reached, refused;
	/* Of the last call: it was refused for want of room, and may be tried again after this;
	 * 0: not so. */
	int64_t later_ms;
};

/* What one transfer gathers. */
struct transfer {
	struct sw_client *client;
	sw_client_take_fn *take; /* of a stream */
	void *user;
	const char *header; /* one more; NULL: none */
	char *text;	    /* of an answer, or of the error that came instead of a stream */
	size_t size;
	int64_t heard_ms; /* when something came last, or the question went out */
	bool changes;	  /* what becomes of it only the answer tells */
	bool enough, too_large, out_of_memory, silent, told;
};

const char *sw_client_place(const struct sw_client *client)
{
	return sw_address_place(&client->access.address);
}

bool sw_client_is_away(const struct sw_client *client)
{
	return client->away;
}

bool sw_client_is_unsure(const struct sw_client *client)
{
	return client->away && client->reached && !client->refused;
}

void sw_client_meanwhile(struct sw_client *client, sw_client_look_fn *look, void *user)
{
	client->look = look;
	client->look_user = user;
}

void sw_client_free(struct sw_client *client)
{
	if (client == NULL)
		return;
	sw_access_release(&client->access);
	curl_easy_cleanup(client->curl);
	free(client);
}

int sw_client_open(const char *controller, const char *token, const char *ca, const struct sw_client_manner *manner,
		   struct sw_client **ret_client, struct sw_err *err)
{
	SW_CLEANUP(sw_client_freep) struct sw_client *client = calloc(1, sizeof *client);
	if (client == NULL || (client->curl = curl_easy_init()) == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = sw_access_init(&client->access, controller, token, ca, err);
	if (r < 0)
		return r;
	if (manner != NULL)
		client->manner = *manner;
	*ret_client = SW_TAKE(client);
	return 0;
}

__attribute__((format(printf, 2, 3))) static void note(const struct sw_client *client, const char *fmt, ...)
{
	if (client->manner.note == NULL)
		return;
	char text[600];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	client->manner.note(text);
}

static bool stops(const struct sw_client *client)
{
	return client->manner.stops != NULL && client->manner.stops();
}

/* ---- one transfer */

static bool keep(struct transfer *transfer, const char *bytes, size_t size)
{
	transfer->too_large = size > ANSWER_MAX - transfer->size;
	if (transfer->too_large)
		return false;
	char *grown = realloc(transfer->text, transfer->size + size + 1);
	transfer->out_of_memory = grown == NULL;
	if (grown == NULL)
		return false;
	memcpy(grown + transfer->size, bytes, size);
	transfer->text = grown;
	transfer->size += size;
	transfer->text[transfer->size] = '\0';
	return true;
}

static size_t arrived(char *bytes, size_t unit, size_t count, void *user)
{
	struct transfer *transfer = user;
	size_t size = unit * count;
	long status = 0;
	transfer->heard_ms = sw_now_monotonic_ms();
	curl_easy_getinfo(transfer->client->curl, CURLINFO_RESPONSE_CODE, &status);
	/* An error is read whole, also where a stream was asked for. */
	if (transfer->take == NULL || status < 200 || status > 299)
		return keep(transfer, bytes, size) ? size : 0;
	transfer->enough = !transfer->take(transfer->user, bytes, size);
	return transfer->enough ? 0 : size;
}

/* Reads are given up soon: nothing is lost. With what changes something the user would be left
 * alone with the question whether it did. */
static void mind_silence(struct transfer *transfer)
{
	long status = 0, sent = 0;
	curl_easy_getinfo(transfer->client->curl, CURLINFO_REQUEST_SIZE, &sent);
	curl_easy_getinfo(transfer->client->curl, CURLINFO_RESPONSE_CODE, &status);
	/* A place that has not been asked is not silent; connecting has a time of its own. */
	if (sent == 0)
		transfer->heard_ms = sw_now_monotonic_ms();
	bool streams = transfer->take != NULL && status != 0; /* those have nothing to say for hours */
	if (streams || sw_now_monotonic_ms() - transfer->heard_ms < SILENCE_MS)
		return;
	transfer->silent = !transfer->changes;
	if (transfer->changes && !transfer->told)
		note(transfer->client, "the controller at %s does not answer; waiting for up to %ld s", sw_client_place(transfer->client),
		     CALL_SECONDS);
	transfer->told = true;
}

/* Called about once a second, whether anything comes or not. */
static int ask_whether_to_stop(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)a, (void)b, (void)c, (void)d;
	struct transfer *transfer = user;
	mind_silence(transfer);
	if (transfer->client->look != NULL)
		transfer->client->look(transfer->client->look_user);
	return transfer->silent || stops(transfer->client);
}

static void prepare(struct transfer *transfer, const char *url, const char *body, struct curl_slist *headers)
{
	CURL *curl = transfer->client->curl;
	curl_easy_reset(curl); /* keeps the connection */
	sw_access_set(&transfer->client->access, curl);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->client->problem);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, transfer->take != NULL ? 0L : CALL_SECONDS);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, arrived);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, ask_whether_to_stop);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (body == NULL)
		return;
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
	/* Over a connection that was kept, and turns out to be dead, curl would send it twice:
	 * by then it may have been done. */
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
}

static int explain_silence(const struct transfer *transfer, struct sw_err *err)
{
	sw_err_set(err, SW_EIO, "the controller at %s does not answer", sw_client_place(transfer->client));
	if (transfer->changes)
		sw_err_detail(err, "nothing came within %ld s, and whether it did what it was asked to is not known", CALL_SECONDS);
	else
		sw_err_detail(err, "nothing came within %d s", SILENCE_MS / 1000);
	sw_err_hint(err, "Its process may be stopped, or too busy. On its machine 'sharewell down' and 'sharewell up' start it anew; jobs "
			 "that run go on.");
	return SW_EIO;
}

/* What went wrong below HTTP. */
static int explain_failure(struct transfer *transfer, CURLcode code, struct sw_err *err)
{
	struct sw_client *client = transfer->client;
	const char *socket = client->access.address.socket;
	if (transfer->out_of_memory)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (transfer->too_large)
		return sw_err_set(err, SW_ELIMIT, "the controller at %s sent more than %zu bytes", sw_client_place(client), ANSWER_MAX);
	if (code == CURLE_ABORTED_BY_CALLBACK && !transfer->silent)
		return sw_err_set(err, SW_ESTOPPED, "interrupted");
	if (sw_trust_explain(code, sw_client_place(client), client->problem, err))
		return err->code;
	client->away = true;
	if (!client->reached) {
		sw_err_set(err, SW_EIO, "no controller answers at %s", sw_client_place(client));
		if (socket[0] != '\0' && access(socket, F_OK) == 0 && access(socket, W_OK) != 0)
			sw_err_hint(err, "You may not use this socket; its owner can allow it with 'sharewell up --all-users'.");
		else
			sw_err_hint(err, "start one with 'sharewell up'");
		return SW_EIO;
	}
	if (transfer->silent || code == CURLE_OPERATION_TIMEDOUT)
		return explain_silence(transfer, err);
	sw_err_set(err, SW_EIO, "the controller at %s broke off", sw_client_place(client));
	sw_err_detail(err, "%s", curl_easy_strerror(code));
	if (transfer->changes)
		sw_err_hint(err, "Whether it did what it was asked to is not known; 'sharewell ps' and 'sharewell show' tell.");
	return SW_EIO;
}

static int perform(struct transfer *transfer, const char *path, const char *body, struct sw_err *err)
{
	struct sw_client *client = transfer->client;
	SW_CLEANUP(sw_freep) char *url = NULL;
	if (asprintf(&url, "%s%s", client->access.address.url, path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* The list's own type has room for a header of this call alone. */
	SW_CLEANUP(sw_freep) char *line = transfer->header != NULL ? strdup(transfer->header) : NULL;
	struct curl_slist first = {.data = line, .next = client->access.headers};
	if (transfer->header != NULL && line == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->away = client->refused = false;
	client->later_ms = 0;
	client->problem[0] = '\0';
	transfer->heard_ms = sw_now_monotonic_ms();
	transfer->changes = body != NULL;
	prepare(transfer, url, body, line != NULL ? &first : client->access.headers);
	CURLcode code = curl_easy_perform(client->curl);
	client->reached = sw_access_reached(client->curl, code);
	if (code != CURLE_OK && transfer->enough)
		return 0;
	if (code != CURLE_OK)
		return explain_failure(transfer, code, err);
	long status = 0;
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	client->away = client->refused = status == 503;
	int64_t later_s = sw_access_later_s(client->curl, status);
	client->later_ms = later_s < AGAIN_MS / 1000 ? later_s * 1000 : AGAIN_MS;
	return status >= 200 && status <= 299 ? 0 : sw_access_explain(&client->access, status, transfer->text, transfer->size, err);
}

/* ---- what commands call */

/* The controller said no for want of room, and when to come back: waits for that. False: it was
 * something else, or has lasted too long. */
static bool wait_for_room(struct sw_client *client, int64_t until_ms, bool *told, struct sw_err *err)
{
	int64_t now_ms = sw_now_monotonic_ms(), again_ms = now_ms + client->later_ms;
	if (client->later_ms == 0 || again_ms > until_ms)
		return false;
	if (!*told)
		note(client, "%s; asking again for up to %d s", err->fact, AGAIN_MS / 1000);
	*told = true;
	for (; now_ms < again_ms && !stops(client); now_ms = sw_now_monotonic_ms()) {
		if (client->look != NULL)
			client->look(client->look_user);
		poll(NULL, 0, again_ms - now_ms < AGAIN_PAUSE_MS ? (int)(again_ms - now_ms) : AGAIN_PAUSE_MS);
	}
	if (stops(client))
		return false;
	sw_err_clear(err);
	return true;
}

static int call_once(struct sw_client *client, const char *path, const char *header, const char *body, json_t **ret_answer,
		     struct sw_err *err)
{
	struct transfer transfer = {.client = client, .header = header};
	int r = perform(&transfer, path, body, err);
	SW_CLEANUP(sw_freep) char *text = transfer.text;
	if (r < 0)
		return r;
	json_error_t error;
	json_t *answer = json_loadb(text != NULL ? text : "", transfer.size, JSON_DECODE_ANY, &error);
	if (answer == NULL) {
		sw_err_set(err, SW_EIO, "what answers at %s is no controller of Sharewell", sw_client_place(client));
		sw_err_detail(err, "%s", error.text);
		return SW_EIO;
	}
	*ret_answer = answer;
	return 0;
}

static int call(struct sw_client *client, const char *path, const char *header, const char *body, json_t **ret_answer, struct sw_err *err)
{
	struct sw_err own = {0};
	int64_t until_ms = sw_now_monotonic_ms() + AGAIN_MS;
	bool told = false;
	int r;
	do
		r = call_once(client, path, header, body, ret_answer, &own);
	while (r < 0 && wait_for_room(client, until_ms, &told, &own));
	if (r < 0 && err != NULL)
		*err = own;
	return r;
}

int sw_client_get(struct sw_client *client, const char *path, json_t **ret_answer, struct sw_err *err)
{
	return call(client, path, NULL, NULL, ret_answer, err);
}

int sw_client_post(struct sw_client *client, const char *path, const json_t *body, json_t **ret_answer, struct sw_err *err)
{
	if (body == NULL)
		return call(client, path, NULL, "", ret_answer, err);
	SW_CLEANUP(sw_freep) char *text = json_dumps(body, JSON_COMPACT);
	if (text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return call(client, path, NULL, text, ret_answer, err);
}

/* A key that no other call has. */
static int make_key(char header[64], struct sw_err *err)
{
	uint64_t words[2];
	if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words)
		return sw_err_set(err, SW_EIO, "the system gives no random numbers");
	snprintf(header, 64, "Idempotency-Key: %016" PRIx64 "%016" PRIx64, words[0], words[1]);
	return 0;
}

int sw_client_submit(struct sw_client *client, const json_t *jobs, json_t **ret_answer, struct sw_err *err)
{
	char header[64];
	SW_CLEANUP(sw_freep) char *text = json_dumps(jobs, JSON_COMPACT);
	if (text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	int r = make_key(header, err);
	if (r < 0)
		return r;
	int64_t until_ms = sw_now_monotonic_ms() + AGAIN_MS;
	bool may_be_there = false;
	for (;;) {
		r = call(client, "/v1/jobs", header, text, ret_answer, err);
		bool first = !may_be_there;
		may_be_there = may_be_there || (client->away && client->reached && !client->refused);
		/* Where nothing answered to begin with, or there was no room for it,
		 * nothing can have been lost. */
		if (r == 0 || !client->away || !may_be_there)
			return r;
		if (sw_now_monotonic_ms() >= until_ms || stops(client))
			break;
		if (first)
			note(client, "%s; asking again for up to %d s, and the job is made once", err->fact, AGAIN_MS / 1000);
		sw_err_clear(err);
		poll(NULL, 0, AGAIN_PAUSE_MS);
	}
	sw_err_hint(err, "Whether it was submitted is not known; 'sharewell ps' will tell.");
	return r;
}

int sw_client_stream(struct sw_client *client, const char *path, sw_client_take_fn *take, void *user, struct sw_err *err)
{
	struct sw_err own = {0};
	int64_t until_ms = sw_now_monotonic_ms() + AGAIN_MS;
	bool told = false;
	int r;
	do {
		struct transfer transfer = {.client = client, .take = take, .user = user};
		r = perform(&transfer, path, NULL, &own);
		free(transfer.text);
	} while (r < 0 && wait_for_room(client, until_ms, &told, &own));
	if (r < 0 && err != NULL)
		*err = own;
	return r;
}
