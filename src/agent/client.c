#include "agent/client.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <event2/event.h>
#include <jansson.h>

#include "agent/trust.h"
#include "api/sync.h"

#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS 120000L

struct sw_client {
	struct event_base *base;
	sw_client_done *done;
	void *context;
	CURLM *multi;
	CURL *easy;
	struct curl_slist *headers;
	struct event *timer;
	char *url, *socket_path, *token, *ca_file;
	bool busy;
	uint64_t number;
	char *body; /* of the request */
	char *text; /* of the answer */
	size_t size, capacity;
	char problem[CURL_ERROR_SIZE];
	int64_t later_s; /* what the last answer said in Retry-After */
};

int64_t sw_client_later_s(const struct sw_client *client)
{
	return client->later_s;
}

/* ------------------------------------------------------------------------------------------------
 * the answer */

static size_t on_bytes(char *bytes, size_t unit, size_t count, void *context)
{
	struct sw_client *client = context;
	size_t size = unit * count;
	if (size > SW_ANSWER_BYTES_MAX - client->size)
		return 0;
	if (client->size + size >= client->capacity) {
		size_t capacity = (client->size + size + 1) * 2;
		char *grown = realloc(client->text, capacity);
		if (grown == NULL)
			return 0;
		client->text = grown;
		client->capacity = capacity;
	}
	memcpy(client->text + client->size, bytes, size);
	client->size += size;
	client->text[client->size] = '\0';
	return size;
}

static void abandon(struct sw_client *client)
{
	if (client->busy)
		curl_multi_remove_handle(client->multi, client->easy);
	client->busy = false;
	free(client->body);
	client->body = NULL;
}

/* What the controller says that it answers no more than an error with: fact, detail and hint,
 * or the text as it came. */
static void describe(const struct sw_client *client, long status, char *problem, size_t size)
{
	const char *fact = NULL, *detail = "", *hint = "";
	json_t *body = client->size > 0 ? json_loadb(client->text, client->size, 0, NULL) : NULL;
	if (body != NULL && json_unpack(body, "{s:{s:s, s?s, s?s}}", "error", "fact", &fact, "detail", &detail, "hint", &hint) == 0)
		snprintf(problem, size, "%s%s%s%s%s (%ld)", fact, detail[0] != '\0' ? ": " : "", detail, hint[0] != '\0' ? ". " : "", hint,
			 status);
	else
		snprintf(problem, size, "the controller answered %ld: %.400s", status, client->size > 0 ? client->text : "");
	json_decref(body);
}

static void finish(struct sw_client *client, CURLcode result)
{
	long status = 0;
	curl_easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
	char problem[600];
	bool good = result == CURLE_OK && status == 200 && client->text != NULL;
	curl_off_t later_s = 0;
	bool put_off = result == CURLE_OK && (status == 429 || status == 503);
	client->later_s = put_off && curl_easy_getinfo(client->easy, CURLINFO_RETRY_AFTER, &later_s) == CURLE_OK ? (int64_t)later_s : 0;
	/* curl would name the host that stands in the URL for want of one. */
	if (result != CURLE_OK && client->socket_path != NULL)
		snprintf(problem, sizeof problem, "%s: unix:%.400s", curl_easy_strerror(result), client->socket_path);
	else if (result != CURLE_OK)
		snprintf(problem, sizeof problem, "%s", client->problem[0] != '\0' ? client->problem : curl_easy_strerror(result));
	else if (!good)
		describe(client, status, problem, sizeof problem);
	for (char *at = problem; !good && *at != '\0'; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	abandon(client);
	client->done(client->context, client->number, good ? client->text : NULL, client->size, good ? NULL : problem);
}

static void look_for_end(struct sw_client *client)
{
	int left;
	for (CURLMsg *message; (message = curl_multi_info_read(client->multi, &left)) != NULL;)
		if (message->msg == CURLMSG_DONE && message->easy_handle == client->easy) {
			finish(client, message->data.result);
			return;
		}
}

/* ------------------------------------------------------------------------------------------------
 * curl in the event loop */

static void on_socket_event(evutil_socket_t fd, short what, void *context)
{
	struct sw_client *client = context;
	int running, mask = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	curl_multi_socket_action(client->multi, fd, mask, &running);
	look_for_end(client);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_client *client = context;
	int running;
	curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	look_for_end(client);
}

/* curl says which socket it waits for; `own` is the event that we keep for it. */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *context, void *own)
{
	(void)easy;
	struct sw_client *client = context;
	if (own != NULL)
		event_free(own);
	struct event *event = NULL;
	if (what != CURL_POLL_REMOVE) {
		short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
		event = event_new(client->base, fd, wanted, on_socket_event, client);
		if (event == NULL || event_add(event, NULL) != 0)
			return -1;
	}
	curl_multi_assign(client->multi, fd, event);
	return 0;
}

static int on_timeout_change(CURLM *multi, long timeout_ms, void *context)
{
	(void)multi;
	struct sw_client *client = context;
	if (timeout_ms < 0) {
		evtimer_del(client->timer);
		return 0;
	}
	struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	return evtimer_add(client->timer, &wait);
}

/* ------------------------------------------------------------------------------------------------
 * life */

/* Splits the controller's name into URL and socket; 0 or SW_EINPUT, SW_ENOMEM. */
static int set_address(struct sw_client *client, const struct sw_client_options *options, struct sw_err *err)
{
	const char *name = options->controller;
	const char *base = name;
	if (strncmp(name, "unix:", 5) == 0) {
		client->socket_path = strdup(name + 5);
		base = "http://localhost";
	} else if (strncmp(name, "http://", 7) != 0 && strncmp(name, "https://", 8) != 0) {
		sw_err_set(err, SW_EINPUT, "cannot use the controller '%s'", name);
		sw_err_detail(err, "expected http://HOST:PORT, https://HOST:PORT or unix:/PATH");
		return SW_EINPUT;
	}
	int r = options->token != NULL ? sw_trust_check(base, err) : 0;
	if (r < 0)
		return r;
	size_t length = strlen(base);
	while (length > 0 && base[length - 1] == '/')
		length--;
	if (asprintf(&client->url, "%.*s%s", (int)length, base, options->path) < 0)
		client->url = NULL;
	client->token = options->token != NULL ? strdup(options->token) : NULL;
	client->ca_file = options->ca_file != NULL ? strdup(options->ca_file) : NULL;
	return client->url == NULL ? sw_err_set(err, SW_ENOMEM, "out of memory") : 0;
}

static void set_up(struct sw_client *client)
{
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_interest);
	curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timeout_change);
	curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	CURL *easy = client->easy;
	curl_easy_setopt(easy, CURLOPT_URL, client->url);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, client->headers);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, client);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, client->problem);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	if (client->socket_path != NULL)
		curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
	sw_trust_set(easy, client->ca_file);
	if (client->token != NULL) {
		curl_easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, client->token);
	}
}

int sw_client_new(struct event_base *base, const struct sw_client_options *options, struct sw_client **ret_client, struct sw_err *err)
{
	SW_CLEANUP(sw_client_freep) struct sw_client *client = calloc(1, sizeof *client);
	if (client == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	client->base = base;
	client->done = options->done;
	client->context = options->context;
	int r = set_address(client, options, err);
	if (r < 0)
		return r;
	client->multi = curl_multi_init();
	client->easy = curl_easy_init();
	client->timer = evtimer_new(base, on_timer, client);
	client->headers = curl_slist_append(NULL, "Content-Type: application/json");
	/* The controller takes the whole body at once; asking first would cost a round trip. */
	struct curl_slist *both = client->headers != NULL ? curl_slist_append(client->headers, "Expect:") : NULL;
	if (client->multi == NULL || client->easy == NULL || client->timer == NULL || both == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	set_up(client);
	*ret_client = SW_TAKE(client);
	return 0;
}

void sw_client_post(struct sw_client *client, uint64_t number, char *body, size_t size)
{
	abandon(client);
	client->body = body;
	client->number = number;
	client->size = 0;
	client->problem[0] = '\0';
	curl_easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(client->easy, CURLOPT_POSTFIELDS, client->body);
	client->busy = curl_multi_add_handle(client->multi, client->easy) == CURLM_OK;
}

void sw_client_free(struct sw_client *client)
{
	if (client == NULL)
		return;
	abandon(client);
	if (client->easy != NULL)
		curl_easy_cleanup(client->easy);
	if (client->multi != NULL)
		curl_multi_cleanup(client->multi);
	if (client->timer != NULL)
		event_free(client->timer);
	curl_slist_free_all(client->headers);
	free(client->url);
	free(client->socket_path);
	free(client->token);
	free(client->ca_file);
	free(client->text);
	free(client);
}
