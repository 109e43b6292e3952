/* TLS for clients beyond this machine: a certificate with its key, and connections that are
 * encrypted with them. TLS 1.2 and later.
 *
 * A certificate is known to clients by its signers, or by the fingerprint of its key ("sha256//..."
 * as curl writes it). A client that was given the fingerprint needs no signature, and need not be
 * told of a new certificate of the same key. */
#ifndef SW_SERVER_TLS_H
#define SW_SERVER_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"

struct bufferevent;
struct event_base;
struct sw_tls;

#define SW_TLS_PIN_SIZE 64u

/* Refused: files that are not what they should be, and a certificate of another key. So is a key
 * that all users can read or that wants a password. */
int sw_tls_open(const char *certificate, const char *key, struct sw_tls **ret_tls, struct sw_err *err);
/* Connections that were made with it go on. */
void sw_tls_free(struct sw_tls *tls);
SW_DEFINE_FREEP(struct sw_tls, sw_tls_free)

const char *sw_tls_pin(const struct sw_tls *tls);
/* When the certificate ends, in seconds since 1970. */
int64_t sw_tls_ends_at_s(const struct sw_tls *tls);

/* The handshake has begun when this returns; NULL: out of memory, and `fd` is still the
 * caller's. */
struct bufferevent *sw_tls_accept(const struct sw_tls *tls, struct event_base *base, int fd);
/* Tells the other side that nothing more will come. */
void sw_tls_end(struct bufferevent *bev);
/* Whether a handshake failed because the client spoke HTTP without TLS. */
bool sw_tls_was_plain(struct bufferevent *bev);

#endif
