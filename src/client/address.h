/* Where a controller is: "https://host:port", "http://127.0.0.1:port" or "unix:/path". */
#ifndef SW_CLIENT_ADDRESS_H
#define SW_CLIENT_ADDRESS_H

#include <stdbool.h>

#include "base/error.h"

#define SW_ADDRESS_SOCKET_MAX 107u /* bytes of a path, by the kernel */

struct sw_address {
	char socket[SW_ADDRESS_SOCKET_MAX + 1]; /* "": it is found by the URL */
	char url[512];				/* without a slash at the end */
};

/* SW_EINPUT: it is none of these. */
int sw_address_read(const char *text, struct sw_address *ret_address, struct sw_err *err);
/* For messages: the path of the socket, or the URL. */
const char *sw_address_place(const struct sw_address *address);

#endif
