#include "cli/client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/trust.h"
#include "api/routes.h"
#include "base/now.h"
#include "cli/interrupt.h"
#include "cli/message.h"
#include "cli/places.h"
#include "server/tokens.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define CALL_SECONDS 60L
#define CONNECT_SECONDS 5L
#define SILENCE_MS 5000 /* a controller that is well answers within milliseconds */
#define AGAIN_MS 60000
#define AGAIN_PAUSE_MS 200

struct sw_cli_client {
	CURL *curl;
	struct curl_slist *headers;
	char socket[PATH_MAX]; /* empty: by URL */
	char url[512];	       /* without a slash at the end */
	char place[PATH_MAX + 8];
	char problem[CURL_ERROR_SIZE];
	sw_cli_client_look_fn *look; /* meanwhile; NULL: there is nothing to look at */
	void *look_user;
	bool away, reached, refused; /* of the last call: nobody answered; somebody was there; and said no */
	/* of the last call: it was refused for want of room, and may be tried
	 * again after this; 0: not so */
	int64_t later_ms;
};

/* What one transfer gathers. */
struct transfer {
	struct sw_cli_client *client;
	sw_cli_client_take_fn *take; /* of a stream */
	void *user;
	const char *header; /* one more; NULL: none */
	char *text;	    /* of an answer, or of the error that came instead of a stream */
	size_t size;
	int64_t heard_ms; /* when something came last, or the question went out */
	bool changes;	  /* what becomes of it only the answer tells */
	bool enough, too_large, out_of_memory, silent, told;
};

const char *sw_cli_client_place(const struct sw_cli_client *client)
{
	return client->place;
}

bool sw_cli_client_is_away(const struct sw_cli_client *client)
{
	return client->away;
}

bool sw_cli_client_is_unsure(const struct sw_cli_client *client)
{
	return client->away && client->reached && !client->refused;
}

void sw_cli_client_meanwhile(struct sw_cli_client *client, sw_cli_client_look_fn *look, void *user)
{
	client->look = look;
	client->look_user = user;
}

void sw_cli_client_free(struct sw_cli_client *client)
{
	if (client == NULL)
		return;
	curl_slist_free_all(client->headers);
	curl_easy_cleanup(client->curl);
	free(client);
}

/* ---- where it is */

static int add_token(struct sw_cli_client *client, struct sw_err *err)
{
	const char *given = getenv("SHAREWELL_TOKEN");
	SW_CLEANUP(sw_freep) char *own = NULL;
	struct sw_cli_places places;
	if (given == NULL || given[0] == '\0') {
		struct sw_err ignored = {0};
		if (sw_cli_places(NULL, false, &places, &ignored) == 0 && sw_tokens_first(places.tokens, SW_ROLE_USER, &own, &ignored) == 0)
			given = own;
	}
	/* Without one the controller says that it wants one. */
	if (given == NULL || given[0] == '\0')
		return 0;
	int r = sw_trust_check(client->url, err);
	if (r < 0)
		return r;
	SW_CLEANUP(sw_freep) char *line = NULL;
	if (asprintf(&line, "Authorization: Bearer %s", given) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	struct curl_slist *headers = curl_slist_append(client->headers, line);
	if (headers == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->headers = headers;
	return 0;
}

static int aim_at_socket(struct sw_cli_client *client, const char *path, struct sw_err *err)
{
	if (path[0] != '/' || strlen(path) > 107) {
		sw_err_set(err, SW_EINPUT, "'unix:%.200s' is no place of a controller", path);
		sw_err_detail(err, "it takes an absolute path of at most 107 bytes");
		return SW_EINPUT;
	}
	snprintf(client->socket, sizeof client->socket, "%s", path);
	snprintf(client->url, sizeof client->url, "http://localhost");
	snprintf(client->place, sizeof client->place, "%s", path);
	return 0;
}

static int aim(struct sw_cli_client *client, const char *controller, struct sw_err *err)
{
	const char *named = getenv("SHAREWELL_CONTROLLER");
	controller = controller != NULL ? controller : named != NULL && named[0] != '\0' ? named : NULL;
	if (controller == NULL) {
		struct sw_cli_places places;
		int r = sw_cli_places(NULL, false, &places, err);
		if (r < 0)
			return r;
		bool machine = access(places.socket, F_OK) != 0 && access(SW_CLI_SOCKET_FOR_ALL, F_OK) == 0;
		return aim_at_socket(client, machine ? SW_CLI_SOCKET_FOR_ALL : places.socket, err);
	}
	if (strncmp(controller, "unix:", 5) == 0)
		return aim_at_socket(client, controller + 5, err);
	bool is_url = strncmp(controller, "http://", 7) == 0 || strncmp(controller, "https://", 8) == 0;
	size_t size = strlen(controller);
	if (!is_url || size >= sizeof client->url) {
		sw_err_set(err, SW_EINPUT, "'%.200s' is no place of a controller", controller);
		sw_err_hint(err, "It takes https://HOST:PORT, http://127.0.0.1:PORT or unix:/PATH.");
		return SW_EINPUT;
	}
	while (size > 8 && controller[size - 1] == '/')
		size--;
	snprintf(client->url, sizeof client->url, "%.*s", (int)size, controller);
	snprintf(client->place, sizeof client->place, "%s", client->url);
	return add_token(client, err);
}

int sw_cli_client_open(const char *controller, struct sw_cli_client **ret_client, struct sw_err *err)
{
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = calloc(1, sizeof *client);
	if (client == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->curl = curl_easy_init();
	client->headers = curl_slist_append(NULL, "Content-Type: application/json");
	/* An empty one stops curl from waiting for "100 Continue". */
	struct curl_slist *headers = curl_slist_append(client->headers, "Expect:");
	if (client->curl == NULL || headers == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->headers = headers;
	int r = aim(client, controller, err);
	if (r == 0)
		*ret_client = SW_TAKE(client);
	return r;
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
	/* Who has not been asked is not silent; connecting has a time of its own. */
	if (sent == 0)
		transfer->heard_ms = sw_now_monotonic_ms();
	bool streams = transfer->take != NULL && status != 0; /* those have nothing to say for hours */
	if (streams || sw_now_monotonic_ms() - transfer->heard_ms < SILENCE_MS)
		return;
	transfer->silent = !transfer->changes;
	if (transfer->changes && !transfer->told)
		sw_cli_print_note("the controller at %s does not answer; waiting for up to %ld s", transfer->client->place, CALL_SECONDS);
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
	return transfer->silent || sw_cli_interrupted() != 0;
}

static void prepare(struct transfer *transfer, const char *url, const char *body, struct curl_slist *headers)
{
	CURL *curl = transfer->client->curl;
	curl_easy_reset(curl); /* keeps the connection */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	if (transfer->client->socket[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, transfer->client->socket);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* a controller is near; proxies of the environment are for elsewhere */
	sw_trust_set(curl, getenv("SHAREWELL_CA"));
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->client->problem);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "sharewell/" SW_VERSION);
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
	/* Over a connection that was kept, and turns out to be dead, curl would send it twice: by
	 * then it may have been done. */
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
}

static int explain_silence(const struct transfer *transfer, struct sw_err *err)
{
	sw_err_set(err, SW_EIO, "the controller at %s does not answer", transfer->client->place);
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
	struct sw_cli_client *client = transfer->client;
	if (transfer->out_of_memory)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	if (transfer->too_large)
		return sw_err_set(err, SW_ELIMIT, "the controller at %s sent more than %zu bytes", client->place, ANSWER_MAX);
	if (code == CURLE_ABORTED_BY_CALLBACK && !transfer->silent)
		return sw_err_set(err, SW_ESTOPPED, "interrupted");
	if (sw_trust_explain(code, client->place, client->problem, err))
		return err->code;
	client->away = true;
	if (!client->reached) {
		sw_err_set(err, SW_EIO, "no controller answers at %s", client->place);
		if (client->socket[0] != '\0' && access(client->socket, F_OK) == 0 && access(client->socket, W_OK) != 0)
			sw_err_hint(err, "You may not use this socket; its owner can allow it with 'sharewell up --all-users'.");
		else
			sw_err_hint(err, "start one with 'sharewell up'");
		return SW_EIO;
	}
	if (transfer->silent || code == CURLE_OPERATION_TIMEDOUT)
		return explain_silence(transfer, err);
	sw_err_set(err, SW_EIO, "the controller at %s broke off", client->place);
	sw_err_detail(err, "%s", curl_easy_strerror(code));
	if (transfer->changes)
		sw_err_hint(err, "Whether it did what it was asked to is not known; 'sharewell ps' and 'sharewell show' tell.");
	return SW_EIO;
}

static int code_of(long status)
{
	switch (status) {
	case 401:
	case 403:
		return SW_EDENIED;
	case 404:
		return SW_ENOTFOUND;
	case 413:
		return SW_ELIMIT;
	default:
		return status >= 400 && status < 500 ? SW_EINPUT : SW_EIO;
	}
}

/* What the controller itself says. */
static int explain_refusal(const struct transfer *transfer, long status, struct sw_err *err)
{
	json_t *root = transfer->size > 0 ? json_loadb(transfer->text, transfer->size, 0, NULL) : NULL;
	const char *fact = NULL, *detail = NULL, *hint = NULL;
	json_unpack(root, "{s:{s?s, s?s, s?s}}", "error", "fact", &fact, "detail", &detail, "hint", &hint);
	int code = code_of(status);
	if (fact == NULL || fact[0] == '\0') {
		sw_err_set(err, code, "the controller at %s refused", transfer->client->place);
		sw_err_detail(err, "HTTP status %ld", status);
	} else {
		sw_err_set(err, code, "%s", fact);
	}
	if (detail != NULL && detail[0] != '\0')
		sw_err_detail(err, "%s", detail);
	if (hint != NULL && hint[0] != '\0')
		sw_err_hint(err, "%s", hint);
	json_decref(root);
	return code;
}

/* Whether somebody was there; of who took nothing within the time to connect, nobody knows. */
static bool has_reached(CURL *curl, CURLcode code)
{
	long sent = 0;
	curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent);
	if (code == CURLE_OPERATION_TIMEDOUT || code == CURLE_ABORTED_BY_CALLBACK)
		return sent > 0;
	return code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST;
}

static int perform(struct transfer *transfer, const char *path, const char *body, struct sw_err *err)
{
	struct sw_cli_client *client = transfer->client;
	SW_CLEANUP(sw_freep) char *url = NULL;
	if (asprintf(&url, "%s%s", client->url, path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	/* The list's own type has room for a header of this call alone. */
	SW_CLEANUP(sw_freep) char *line = transfer->header != NULL ? strdup(transfer->header) : NULL;
	struct curl_slist first = {.data = line, .next = client->headers};
	if (transfer->header != NULL && line == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->away = client->refused = false;
	client->later_ms = 0;
	client->problem[0] = '\0';
	transfer->heard_ms = sw_now_monotonic_ms();
	transfer->changes = body != NULL;
	prepare(transfer, url, body, line != NULL ? &first : client->headers);
	CURLcode code = curl_easy_perform(client->curl);
	client->reached = has_reached(client->curl, code);
	if (code != CURLE_OK && transfer->enough)
		return 0;
	if (code != CURLE_OK)
		return explain_failure(transfer, code, err);
	long status = 0;
	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	client->away = client->refused = status == 503;
	curl_off_t later_s = 0;
	if ((status == 429 || status == 503) && curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &later_s) == CURLE_OK && later_s > 0)
		client->later_ms = later_s < AGAIN_MS / 1000 ? (int64_t)later_s * 1000 : AGAIN_MS;
	return status >= 200 && status <= 299 ? 0 : explain_refusal(transfer, status, err);
}

/* ---- what commands call */

/* The controller said no for want of room, and when to come back: waits for that. False: it was
 * something else, or has lasted too long. */
static bool wait_for_room(struct sw_cli_client *client, int64_t until_ms, bool *told, struct sw_err *err)
{
	int64_t now_ms = sw_now_monotonic_ms(), again_ms = now_ms + client->later_ms;
	if (client->later_ms == 0 || again_ms > until_ms)
		return false;
	if (!*told)
		sw_cli_print_note("%s; asking again for up to %d s", err->fact, AGAIN_MS / 1000);
	*told = true;
	for (; now_ms < again_ms && sw_cli_interrupted() == 0; now_ms = sw_now_monotonic_ms()) {
		if (client->look != NULL)
			client->look(client->look_user);
		poll(NULL, 0, again_ms - now_ms < AGAIN_PAUSE_MS ? (int)(again_ms - now_ms) : AGAIN_PAUSE_MS);
	}
	if (sw_cli_interrupted() != 0)
		return false;
	sw_err_clear(err);
	return true;
}

static int call_once(struct sw_cli_client *client, const char *path, const char *header, const char *body, json_t **ret_answer,
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
		sw_err_set(err, SW_EIO, "what answers at %s is no controller of Sharewell", client->place);
		sw_err_detail(err, "%s", error.text);
		return SW_EIO;
	}
	*ret_answer = answer;
	return 0;
}

static int call(struct sw_cli_client *client, const char *path, const char *header, const char *body, json_t **ret_answer,
		struct sw_err *err)
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

int sw_cli_client_get(struct sw_cli_client *client, const char *path, json_t **ret_answer, struct sw_err *err)
{
	return call(client, path, NULL, NULL, ret_answer, err);
}

int sw_cli_client_post(struct sw_cli_client *client, const char *path, const json_t *body, json_t **ret_answer, struct sw_err *err)
{
	if (body == NULL)
		return call(client, path, NULL, "", ret_answer, err);
	SW_CLEANUP(sw_freep) char *text = json_dumps(body, JSON_COMPACT);
	if (text == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	return call(client, path, NULL, text, ret_answer, err);
}

/* A key that nobody else takes. */
static int make_key(char header[64], struct sw_err *err)
{
	uint64_t words[2];
	if (getrandom(words, sizeof words, 0) != (ssize_t)sizeof words)
		return sw_err_set(err, SW_EIO, "the system gives no random numbers");
	snprintf(header, 64, "Idempotency-Key: %016" PRIx64 "%016" PRIx64, words[0], words[1]);
	return 0;
}

int sw_cli_client_submit(struct sw_cli_client *client, const json_t *jobs, json_t **ret_answer, struct sw_err *err)
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
		/* Where nobody was to begin with, or there was no room for it,
		 * nothing can have been lost. */
		if (r == 0 || !client->away || !may_be_there)
			return r;
		if (sw_now_monotonic_ms() >= until_ms || sw_cli_interrupted() != 0)
			break;
		if (first)
			sw_cli_print_note("%s; asking again for up to %d s, and the job is made once", err->fact, AGAIN_MS / 1000);
		sw_err_clear(err);
		poll(NULL, 0, AGAIN_PAUSE_MS);
	}
	sw_err_hint(err, "Whether it was submitted is not known; 'sharewell ps' will tell.");
	return r;
}

int sw_cli_client_stream(struct sw_cli_client *client, const char *path, sw_cli_client_take_fn *take, void *user, struct sw_err *err)
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
