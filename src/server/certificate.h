/* A certificate that is signed by its own key, where there is no authority to sign one. Clients are
 * given the fingerprint of the key, or the certificate itself. */
#ifndef SW_SERVER_CERTIFICATE_H
#define SW_SERVER_CERTIFICATE_H

#include "base/error.h"

/* Makes what is missing: the key (mode 0600), and a certificate of it for ten years, for this
 * machine's names and addresses. One that ends within a month is made anew with the same key, so
 * that its fingerprint stays. */
int sw_certificate_make(const char *certificate, const char *key, struct sw_err *err);

#endif
