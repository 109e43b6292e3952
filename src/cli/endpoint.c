#include "cli/endpoint.h"

#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "server/server.h"

static int refuse(struct sw_err *err, const char *detail, const char *hint)
{
	sw_err_set(err, SW_EINPUT, "these options do not go together");
	sw_err_detail(err, "%s", detail);
	sw_err_hint(err, "%s", hint);
	return SW_EINPUT;
}

static int check(const struct sw_cli_endpoint *endpoint, struct sw_err *err)
{
	if (endpoint->port != NULL && endpoint->listen != NULL)
		return refuse(err, "--port is one of 127.0.0.1, and --listen names another address", "Give one of them.");
	if ((endpoint->tls_cert != NULL) != (endpoint->tls_key != NULL))
		return refuse(err, "a certificate and its key are needed both", "Give --tls-cert and --tls-key.");
	if (endpoint->self_signed && endpoint->tls_cert != NULL)
		return refuse(err, "a certificate is given, and one is to be made", "Give --tls-cert and --tls-key, or --tls-self-signed.");
	return 0;
}

int sw_cli_endpoint_places(const struct sw_cli_endpoint *endpoint, const char *state, struct sw_cli_places *ret_places, struct sw_err *err)
{
	struct sw_cli_places places;
	int r = check(endpoint, err);
	r = r < 0 ? r : sw_cli_places(state, endpoint->all_users, &places, err);
	if (r < 0)
		return r;
	if (endpoint->socket != NULL && (endpoint->socket[0] != '/' || strlen(endpoint->socket) > 107)) {
		sw_err_set(err, SW_EINPUT, "--socket cannot be '%.200s'", endpoint->socket);
		sw_err_detail(err, "it takes an absolute path of at most 107 bytes");
		return SW_EINPUT;
	}
	if (endpoint->socket != NULL)
		snprintf(places.socket, sizeof places.socket, "%s", endpoint->socket);
	*ret_places = places;
	return 0;
}

int sw_cli_user(const char *word, uint32_t *ret_uid, uint32_t *ret_gid, struct sw_err *err)
{
	uint64_t number;
	bool is_number = sw_parse_u64(word, strlen(word), &number) == 0 && number < UINT32_MAX;
	const struct passwd *entry = is_number ? getpwuid((uid_t)number) : getpwnam(word);
	if (entry == NULL && !is_number) {
		sw_err_set(err, SW_EINPUT, "there is no user '%.60s' on this machine", word);
		return SW_EINPUT;
	}
	*ret_uid = entry != NULL ? entry->pw_uid : (uint32_t)number;
	*ret_gid = entry != NULL ? entry->pw_gid : (uint32_t)number;
	return 0;
}

int sw_cli_endpoint_operators(const struct sw_cli_endpoint *endpoint, sw_cli_users *users, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *copy = strdup(endpoint->operators != NULL ? endpoint->operators : "");
	if (copy == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	char *rest = copy;
	for (char *word; (word = strsep(&rest, ",")) != NULL;) {
		uint32_t uid, gid;
		if (*word == '\0')
			continue;
		int r = sw_cli_user(word, &uid, &gid, err);
		uint32_t *slot = r == 0 ? sw_vec_push(users) : NULL;
		if (slot == NULL) {
			sw_vec_free(users);
			return r < 0 ? r : sw_err_set(err, SW_ENOMEM, "out of memory");
		}
		*slot = uid;
	}
	return 0;
}

int sw_cli_endpoint_address(const struct sw_cli_endpoint *endpoint, char buffer[32], const char **ret_address, struct sw_err *err)
{
	const char *port = endpoint->port;
	if (endpoint->listen != NULL) {
		*ret_address = endpoint->listen;
		return 0;
	}
	uint64_t number = 0;
	if (port == NULL || strcmp(port, "none") == 0) {
		*ret_address = NULL;
		return 0;
	}
	if (sw_parse_u64(port, strlen(port), &number) < 0 || number > 65535) {
		sw_err_set(err, SW_EINPUT, "--port cannot be '%.60s'", port);
		sw_err_detail(err, "it takes a number from 0 (any that is free) to 65535, or none");
		return SW_EINPUT;
	}
	snprintf(buffer, 32, "127.0.0.1:%u", (unsigned)number);
	*ret_address = buffer;
	return 0;
}

static int read_time(const char *option, const char *text, const char *or_else, int64_t *ret_ns, struct sw_err *err)
{
	if (sw_parse_duration(text, strlen(text), ret_ns) == 0 && *ret_ns > 0)
		return 0;
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, text);
	sw_err_detail(err, "it takes a time such as 12h or 30d%s", or_else);
	return SW_EINPUT;
}

static int read_number(const char *option, const char *text, uint64_t most, uint64_t *ret_number, struct sw_err *err)
{
	if (sw_parse_u64(text, strlen(text), ret_number) == 0 && *ret_number >= 1 && *ret_number <= most)
		return 0;
	sw_err_set(err, SW_EINPUT, "--%s cannot be '%.60s'", option, text);
	sw_err_detail(err, "it takes a number from 1 to %llu", (unsigned long long)most);
	return SW_EINPUT;
}

/* One of the two; what is not said stays 0. */
static int read_either(const char *option, const char *text, const char *or_else, uint64_t *ret_number, int64_t *ret_ns, struct sw_err *err)
{
	if (text == NULL)
		return 0;
	bool counts = text[strspn(text, "0123456789")] == '\0';
	return counts ? read_number(option, text, UINT32_MAX, ret_number, err) : read_time(option, text, or_else, ret_ns, err);
}

int sw_cli_endpoint_keep(const struct sw_cli_endpoint *endpoint, struct sw_controller_options *options, struct sw_err *err)
{
	uint64_t jobs = 0;
	int r = endpoint->keep_jobs != NULL ? read_number("keep-jobs", endpoint->keep_jobs, 10000000, &jobs, err) : 0;
	if (r == 0 && endpoint->keep_for != NULL)
		r = read_time("keep-for", endpoint->keep_for, "", &options->keep_for_ns, err);
	if (r == 0)
		r = read_either("keep-history", endpoint->keep_history, ", or a number of jobs", &options->keep_history,
				&options->keep_history_ns, err);
	if (r == 0)
		r = read_either("keep-events", endpoint->keep_events, ", or a number of events", &options->keep_events,
				&options->keep_events_ns, err);
	options->keep_jobs = (uint32_t)jobs;
	return r;
}

int sw_cli_endpoint_check(const struct sw_cli_endpoint *endpoint, const char *failures, struct sw_err *err)
{
	sw_cli_users operators = {0};
	char address[32];
	struct sw_controller_options options = {.tls_certificate = endpoint->tls_cert, .tls_key = endpoint->tls_key, .failures = failures};
	int r = sw_cli_endpoint_operators(endpoint, &operators, err);
	sw_vec_free(&operators);
	r = r < 0 ? r : sw_cli_endpoint_address(endpoint, address, &options.listen, err);
	if (r == 0 && endpoint->bounds != NULL)
		r = sw_user_bounds_parse(endpoint->bounds, &options.bounds, err);
	r = r < 0 ? r : sw_cli_endpoint_keep(endpoint, &options, err);
	return r < 0 ? r : sw_controller_check(&options, endpoint->self_signed, err);
}

void sw_cli_endpoint_print(const char *address, const char *pin, FILE *out)
{
	const char *colon = strrchr(address, ':');
	char host[256] = "";
	bool any = strncmp(address, "https://0.0.0.0:", 16) == 0 || strncmp(address, "https://[::]:", 13) == 0;
	if (strncmp(address, "https://", 8) != 0 || colon == NULL)
		return;
	if (any && gethostname(host, sizeof host - 1) != 0)
		snprintf(host, sizeof host, "HOST");
	fputs("From other machines, with a token that 'sharewell token create' makes:\n", out);
	if (any)
		fprintf(out, "  export SHAREWELL_CONTROLLER=https://%s%s", host, colon);
	else
		fprintf(out, "  export SHAREWELL_CONTROLLER=%s", address);
	if (pin[0] != '\0')
		fprintf(out, " SHAREWELL_CA=%s", pin);
	fputs(" SHAREWELL_TOKEN=...\n", out);
}
