#include "client/poster.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <event2/event.h>

#include "client/access.h"
#include "client/trust.h"

#define CONNECT_TIMEOUT_MS 5000L
#define TIMEOUT_MS 120000L

struct sw_poster {
	struct event_base *base;
	sw_poster_done *done;
	void *context;
	CURLM *multi;
	CURL *easy;
	struct event *timer;
	struct sw_access access;
	char *url;
	bool busy, too_large;
	uint64_t number;
	char *body; /* of the request */
	char *text; /* of the answer */
	size_t size, capacity, answer_max;
	char problem[CURL_ERROR_SIZE];
	int64_t later_s; /* what the last answer said in Retry-After */
};

int64_t sw_poster_later_s(const struct sw_poster *poster)
{
	return poster->later_s;
}

/* ---- the answer */

static size_t on_bytes(char *bytes, size_t unit, size_t count, void *context)
{
	struct sw_poster *poster = context;
	size_t size = unit * count;
	poster->too_large = size > poster->answer_max - poster->size;
	if (poster->too_large)
		return 0;
	if (poster->size + size >= poster->capacity) {
		size_t capacity = (poster->size + size + 1) * 2;
		char *grown = realloc(poster->text, capacity);
		if (grown == NULL)
			return 0;
		poster->text = grown;
		poster->capacity = capacity;
	}
	memcpy(poster->text + poster->size, bytes, size);
	poster->size += size;
	poster->text[poster->size] = '\0';
	return size;
}

static void abandon(struct sw_poster *poster)
{
	if (poster->busy)
		curl_multi_remove_handle(poster->multi, poster->easy);
	poster->busy = false;
	free(poster->body);
	poster->body = NULL;
}

/* No answer came. */
static void explain(const struct sw_poster *poster, CURLcode result, struct sw_err *err)
{
	const char *place = sw_address_place(&poster->access.address);
	if (sw_trust_explain(result, place, poster->problem, err))
		return;
	if (poster->too_large)
		sw_err_set(err, SW_ELIMIT, "the controller at %s sent more than %zu bytes", place, poster->answer_max);
	else if (sw_access_reached(poster->easy, result))
		sw_err_set(err, SW_EIO, "the controller at %s broke off", place);
	else
		sw_err_set(err, SW_EIO, "no controller answers at %s", place);
	/* curl would name the host that stands in the URL for want of one. */
	bool by_url = poster->access.address.socket[0] == '\0' && poster->problem[0] != '\0';
	sw_err_detail(err, "%s", by_url ? poster->problem : curl_easy_strerror(result));
}

/* In the controller's words, and with the status: it is read in a log. */
static void explain_refusal(const struct sw_poster *poster, long status, struct sw_err *err)
{
	sw_access_explain(&poster->access, status, poster->text, poster->size, err);
	size_t size = strlen(err->fact);
	snprintf(err->fact + size, sizeof err->fact - size, " (%ld)", status);
}

static void finish(struct sw_poster *poster, CURLcode result)
{
	long status = 0;
	struct sw_err problem = {0};
	curl_easy_getinfo(poster->easy, CURLINFO_RESPONSE_CODE, &status);
	bool good = result == CURLE_OK && status == 200 && poster->text != NULL;
	poster->later_s = result == CURLE_OK ? sw_access_later_s(poster->easy, status) : 0;
	if (result != CURLE_OK)
		explain(poster, result, &problem);
	else if (!good)
		explain_refusal(poster, status, &problem);
	abandon(poster);
	poster->done(poster->context, poster->number, good ? poster->text : NULL, poster->size, good ? NULL : &problem);
}

static void look_for_end(struct sw_poster *poster)
{
	int left;
	for (CURLMsg *message; (message = curl_multi_info_read(poster->multi, &left)) != NULL;)
		if (message->msg == CURLMSG_DONE && message->easy_handle == poster->easy) {
			finish(poster, message->data.result);
			return;
		}
}

/* ---- curl in the event loop */

static void on_socket_event(evutil_socket_t fd, short what, void *context)
{
	struct sw_poster *poster = context;
	int running, mask = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	curl_multi_socket_action(poster->multi, fd, mask, &running);
	look_for_end(poster);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct sw_poster *poster = context;
	int running;
	curl_multi_socket_action(poster->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	look_for_end(poster);
}

/* curl says which socket it waits for; `own` is the event that we keep for it. */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *context, void *own)
{
	(void)easy;
	struct sw_poster *poster = context;
	if (own != NULL)
		event_free(own);
	struct event *event = NULL;
	if (what != CURL_POLL_REMOVE) {
		short wanted = (short)((what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0) | EV_PERSIST);
		event = event_new(poster->base, fd, wanted, on_socket_event, poster);
		if (event == NULL || event_add(event, NULL) != 0)
			return -1;
	}
	curl_multi_assign(poster->multi, fd, event);
	return 0;
}

static int on_timeout_change(CURLM *multi, long timeout_ms, void *context)
{
	(void)multi;
	struct sw_poster *poster = context;
	if (timeout_ms < 0) {
		evtimer_del(poster->timer);
		return 0;
	}
	struct timeval wait = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
	return evtimer_add(poster->timer, &wait);
}

/* ---- life */

static void set_up(struct sw_poster *poster)
{
	curl_multi_setopt(poster->multi, CURLMOPT_SOCKETFUNCTION, on_interest);
	curl_multi_setopt(poster->multi, CURLMOPT_SOCKETDATA, poster);
	curl_multi_setopt(poster->multi, CURLMOPT_TIMERFUNCTION, on_timeout_change);
	curl_multi_setopt(poster->multi, CURLMOPT_TIMERDATA, poster);
	CURL *easy = poster->easy;
	sw_access_set(&poster->access, easy);
	curl_easy_setopt(easy, CURLOPT_URL, poster->url);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, poster);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, poster->problem);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
}

int sw_poster_new(struct event_base *base, const struct sw_poster_options *options, struct sw_poster **ret_poster, struct sw_err *err)
{
	SW_CLEANUP(sw_poster_freep) struct sw_poster *poster = calloc(1, sizeof *poster);
	if (poster == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	poster->base = base;
	poster->done = options->done;
	poster->context = options->context;
	poster->answer_max = options->answer_max;
	int r = sw_access_init(&poster->access, options->controller, options->token, options->ca, err);
	if (r < 0)
		return r;
	if (asprintf(&poster->url, "%s%s", poster->access.address.url, options->path) < 0)
		poster->url = NULL;
	poster->multi = curl_multi_init();
	poster->easy = curl_easy_init();
	poster->timer = evtimer_new(base, on_timer, poster);
	if (poster->url == NULL || poster->multi == NULL || poster->easy == NULL || poster->timer == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	set_up(poster);
	*ret_poster = SW_TAKE(poster);
	return 0;
}

void sw_poster_send(struct sw_poster *poster, uint64_t number, char *body, size_t size)
{
	abandon(poster);
	poster->body = body;
	poster->number = number;
	poster->size = 0;
	poster->too_large = false;
	poster->problem[0] = '\0';
	curl_easy_setopt(poster->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
	curl_easy_setopt(poster->easy, CURLOPT_POSTFIELDS, poster->body);
	poster->busy = curl_multi_add_handle(poster->multi, poster->easy) == CURLM_OK;
}

void sw_poster_free(struct sw_poster *poster)
{
	if (poster == NULL)
		return;
	abandon(poster);
	if (poster->easy != NULL)
		curl_easy_cleanup(poster->easy);
	if (poster->multi != NULL)
		curl_multi_cleanup(poster->multi);
	if (poster->timer != NULL)
		event_free(poster->timer);
	sw_access_release(&poster->access);
	free(poster->url);
	free(poster->text);
	free(poster);
}
