#include "client/access.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/trust.h"

static char *copy(const char *text)
{
	return text != NULL && text[0] != '\0' ? strdup(text) : NULL;
}

/* An empty "Expect" stops curl from asking whether the body may come: it would cost a round
 * trip. */
static struct curl_slist *make_headers(void)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	struct curl_slist *both = headers != NULL ? curl_slist_append(headers, "Expect:") : NULL;
	if (both == NULL)
		curl_slist_free_all(headers);
	return both;
}

int sw_access_init(struct sw_access *access, const char *controller, const char *token, const char *ca, struct sw_err *err)
{
	struct sw_access made = {0};
	int r = sw_address_read(controller, &made.address, err);
	bool shows = token != NULL && token[0] != '\0' && made.address.socket[0] == '\0';
	r = r == 0 && shows ? sw_trust_check(made.address.url, err) : r;
	if (r < 0)
		return r;
	made.token = shows ? copy(token) : NULL;
	made.ca = copy(ca);
	made.headers = make_headers();
	if (made.headers == NULL || (shows && made.token == NULL) || (made.ca == NULL && ca != NULL && ca[0] != '\0')) {
		sw_access_release(&made);
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	*access = made;
	return 0;
}

void sw_access_release(struct sw_access *access)
{
	curl_slist_free_all(access->headers);
	free(access->token);
	free(access->ca);
	*access = (struct sw_access){0};
}

void sw_access_set(const struct sw_access *access, CURL *curl)
{
	if (access->address.socket[0] != '\0')
		curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, access->address.socket);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* a controller is near; proxies of the environment are for elsewhere */
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "sharewell/" SW_VERSION);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, access->headers);
	sw_trust_set(curl, access->ca);
	if (access->token != NULL) {
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, access->token);
	}
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

int sw_access_explain(const struct sw_access *access, long status, const char *text, size_t size, struct sw_err *err)
{
	json_t *root = size > 0 ? json_loadb(text, size, 0, NULL) : NULL;
	const char *fact = NULL, *detail = NULL, *hint = NULL;
	json_unpack(root, "{s:{s?s, s?s, s?s}}", "error", "fact", &fact, "detail", &detail, "hint", &hint);
	int code = code_of(status);
	if (fact == NULL || fact[0] == '\0') {
		sw_err_set(err, code, "the controller at %s refused", sw_address_place(&access->address));
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

bool sw_access_reached(CURL *curl, CURLcode code)
{
	long sent = 0;
	curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent);
	if (code == CURLE_OPERATION_TIMEDOUT || code == CURLE_ABORTED_BY_CALLBACK)
		return sent > 0;
	return code != CURLE_COULDNT_CONNECT && code != CURLE_COULDNT_RESOLVE_HOST;
}

int64_t sw_access_later_s(CURL *curl, long status)
{
	curl_off_t later_s = 0;
	if ((status != 429 && status != 503) || curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &later_s) != CURLE_OK)
		return 0;
	return later_s > 0 ? (int64_t)later_s : 0;
}
