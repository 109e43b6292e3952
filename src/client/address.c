#include "client/address.h"

#include <stdio.h>
#include <string.h>

static int read_socket(const char *path, struct sw_address *ret_address, struct sw_err *err)
{
	if (path[0] != '/' || strlen(path) > SW_ADDRESS_SOCKET_MAX) {
		sw_err_set(err, SW_EINPUT, "'unix:%.200s' is no place of a controller", path);
		sw_err_detail(err, "it takes an absolute path of at most %u bytes", SW_ADDRESS_SOCKET_MAX);
		return SW_EINPUT;
	}
	*ret_address = (struct sw_address){.url = "http://localhost"};
	snprintf(ret_address->socket, sizeof ret_address->socket, "%s", path);
	return 0;
}

int sw_address_read(const char *text, struct sw_address *ret_address, struct sw_err *err)
{
	if (strncmp(text, "unix:", 5) == 0)
		return read_socket(text + 5, ret_address, err);
	bool is_url = strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
	size_t size = strlen(text);
	if (!is_url || size >= sizeof ret_address->url) {
		sw_err_set(err, SW_EINPUT, "'%.200s' is no place of a controller", text);
		sw_err_hint(err, "It takes https://HOST:PORT, http://127.0.0.1:PORT or unix:/PATH.");
		return SW_EINPUT;
	}
	while (size > 8 && text[size - 1] == '/')
		size--;
	*ret_address = (struct sw_address){0};
	snprintf(ret_address->url, sizeof ret_address->url, "%.*s", (int)size, text);
	return 0;
}

const char *sw_address_place(const struct sw_address *address)
{
	return address->socket[0] != '\0' ? address->socket : address->url;
}
