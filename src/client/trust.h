/* Which controller a client believes: one that the system's authorities vouch for, or those of a
 * file, or one key by its fingerprint. */
#ifndef SW_CLIENT_TRUST_H
#define SW_CLIENT_TRUST_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/error.h"

/* A token does not go over a network in the clear: refused are http://
 * addresses other than loopback. */
int sw_trust_check(const char *url, struct sw_err *err);
/* `ca`: a file of certificates, "sha256//..." (the fingerprint of the controller's key), or NULL
 * for the system's authorities. The handle keeps no copy of a path that it would need later. */
void sw_trust_set(CURL *easy, const char *ca);
/* A transfer that failed for want of trust, in words; false: it failed
 * otherwise. `detail` is curl's. */
bool sw_trust_explain(CURLcode code, const char *place, const char *detail, struct sw_err *err);

#endif
