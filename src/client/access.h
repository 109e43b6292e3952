/* What every transfer of one caller has in common: where the controller is, the token, and which
 * controller is believed. */
#ifndef SW_CLIENT_ACCESS_H
#define SW_CLIENT_ACCESS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "client/address.h"

struct sw_access {
	struct sw_address address;
	char *token, *ca; /* NULL: none */
	struct curl_slist *headers;
};

/* `token` is for URLs: a socket knows its user. NULL or "": none. `ca` as in trust.h. */
int sw_access_init(struct sw_access *access, const char *controller, const char *token, const char *ca, struct sw_err *err);
void sw_access_release(struct sw_access *access);
/* All options of a handle but URL, body, callbacks and times. */
void sw_access_set(const struct sw_access *access, CURL *curl);

/* Whether a transfer that failed had come to something at that place; not known of what took
 * nothing within the time to connect: false. */
bool sw_access_reached(CURL *curl, CURLcode code);
/* In what words the controller refused: fact, detail and hint of its answer, or its status. Returns
 * the code. */
int sw_access_explain(const struct sw_access *access, long status, const char *text, size_t size, struct sw_err *err);
/* After how many seconds a request that was refused for want of room may come again; 0: the
 * controller said no such thing. */
int64_t sw_access_later_s(CURL *curl, long status);

#endif
