/* Which user may ask what: tokens on TCP, the kernel's word on the UNIX socket, and what one sees
 * of other people's jobs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "base/file.h"
#include "server/tokens.h"
#include "unit/server/served.h"

static struct served served;

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	served_add_stranger(&served);
	served_start(&served);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	return 0;
}

static int status_of(const char *method, const char *target, const char *token, const char *body)
{
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, method, target, token, body);
	close(fd);
	int status = reply.status;
	reply_free(&reply);
	return status;
}

/* Over TCP everything but the bare health needs a token that is known, and the role
 * that the table asks for. */
static void test_tokens(void **state)
{
	(void)state;
	char *user = served_token(&served, SW_ROLE_USER), *operator= served_token(&served, SW_ROLE_OPERATOR),
	     *agent = served_token(&served, SW_ROLE_AGENT);
	const char *body = "{\"command\": [\"a\"]}";
	for (size_t i = 0; i < SW_ROUTES; i++) {
		const struct sw_route *route = &sw_routes[i];
		char target[64];
		const char *hole = strstr(route->path, "{id}");
		if (hole != NULL)
			snprintf(target, sizeof target, "%.*s1%s", (int)(hole - route->path), route->path, hole + 4);
		else
			snprintf(target, sizeof target, "%s", route->path);
		const char *method = route->method == SW_GET ? "GET" : "POST";
		assert_int_equal(status_of(method, target, NULL, NULL), route->roles == SW_ROLE_NOBODY ? 200 : 401);
		assert_int_equal(status_of(method, target, "0123456789abcdef0123456789abcdef", NULL),
				 route->roles == SW_ROLE_NOBODY ? 200 : 401);
		if (route->id == SW_ROUTE_EVENTS)
			continue; /* does not end */
		const struct {
			unsigned role;
			const char *token;
		} given[] = {{SW_ROLE_USER, user}, {SW_ROLE_OPERATOR, operator}, {SW_ROLE_AGENT, agent}};
		for (size_t t = 0; t < 3; t++) {
			bool allowed = route->roles == SW_ROLE_NOBODY || (route->roles & given[t].role) != 0;
			/* The operator's own token is of the user that runs this. */
			if (route->id == SW_ROUTE_SUBMIT && given[t].role == SW_ROLE_OPERATOR && geteuid() == 0)
				allowed = false;
			int status = status_of(method, target, given[t].token, NULL);
			if (allowed ? status == 401 || status == 403 : status != 403)
				fail_msg("%s %s with role %u gave %d", method, target, given[t].role, status);
		}
	}
	assert_int_equal(status_of("POST", "/v1/jobs", user, body), 201);
	/* A prefix, an extension, another case: all unknown. */
	char *other = strdup(user);
	other[strlen(other) - 1] = '\0';
	assert_int_equal(status_of("GET", "/v1/jobs", other, NULL), 401);
	free(other);
	free(user);
	free(operator);
	free(agent);
}

/* A caller hears no more than whether it works, without a token. */
static void test_bare_health(void **state)
{
	(void)state;
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, "GET", "/healthz", NULL, NULL);
	assert_string_equal(reply.body, "{\"status\":\"ok\"}\n");
	reply_free(&reply);
	close(fd);
}

/* Another user sees id, user, state, GPUs and times of a job, and can neither
 * look closer nor touch it. */
static void test_other_people(void **state)
{
	(void)state;
	long long id = submit(&served,
			      "{\"command\": [\"secret\"], \"name\": \"secret\", \"tenant\": \"secret\", \"env\": {\"KEY\": \"secret\"}}");
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", id);
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, "GET", target, SERVED_STRANGER, NULL);
	assert_int_equal(reply.status, 200);
	assert_null(strstr(reply.body, "secret"));
	json_t *job = json_loads(reply.body, 0, NULL);
	static const char *const seen[] = {"id",   "state",	   "state_long", "user",     "uid",
					   "gpus", "submitted_at", "started_at", "ended_at", "past"};
	assert_int_equal(json_object_size(job), sizeof seen / sizeof seen[0]);
	for (size_t i = 0; i < sizeof seen / sizeof seen[0]; i++)
		assert_non_null(json_object_get(job, seen[i]));
	json_decref(job);
	reply_free(&reply);
	reply = ask(fd, "GET", "/v1/jobs", SERVED_STRANGER, NULL);
	assert_null(strstr(reply.body, "secret"));
	assert_non_null(strstr(reply.body, "\"id\":"));
	reply_free(&reply);
	reply = ask(fd, "GET", "/v1/jobs?asked=true", SERVED_STRANGER, NULL);
	assert_null(strstr(reply.body, "asked"));
	reply_free(&reply);
	/* Tenants in which the stranger has no jobs are one sum. */
	reply = ask(fd, "GET", "/v1/quota", SERVED_STRANGER, NULL);
	assert_null(strstr(reply.body, "secret"));
	assert_non_null(strstr(reply.body, "\"tenant\":null"));
	assert_non_null(strstr(reply.body, "\"pending\":1"));
	reply_free(&reply);
	/* A filter that tells by what it finds would be a way to look closer. */
	reply = ask(fd, "GET", "/v1/jobs?name=secret", SERVED_STRANGER, NULL);
	assert_null(strstr(reply.body, "\"id\":"));
	reply_free(&reply);
	close(fd);
	static const char *const verbs[] = {"cancel", "hold", "release", "requeue", "suspend", "resume"};
	for (size_t i = 0; i < 6; i++) {
		snprintf(target, sizeof target, "/v1/jobs/%lld/%s", id, verbs[i]);
		assert_int_equal(status_of("POST", target, SERVED_STRANGER, NULL), 403);
	}
	snprintf(target, sizeof target, "/v1/jobs/%lld/logs", id);
	assert_int_equal(status_of("GET", target, SERVED_STRANGER, NULL), 403);
	snprintf(target, sizeof target, "/v1/jobs/%lld/why", id);
	assert_int_equal(status_of("GET", target, SERVED_STRANGER, NULL), 403);
	expect_state(&served, id, "PD");
	/* What the stranger submits is the stranger's; the user that runs the
	 * controller sees it all the same. */
	assert_int_equal(status_of("POST", "/v1/jobs", SERVED_STRANGER, "{\"command\": [\"x\"], \"name\": \"theirs\"}"), 201);
	snprintf(target, sizeof target, "/v1/jobs/%lld", id + 1);
	json_t *theirs = ask_json(&served, "GET", target, NULL, 200);
	assert_int_equal(json_integer_value(json_object_get(theirs, "uid")), 4242);
	json_decref(theirs);
}

/* As user 4242: what a submit over the UNIX socket gives; the exit status tells. */
static int submit_as_stranger(void)
{
	if (setgid(4242) < 0 || setuid(4242) < 0)
		return 10;
	int fd = dial(&served);
	struct reply reply = ask(fd, "POST", "/v1/jobs", NULL, "{\"command\": [\"x\"]}");
	if (reply.status != 201)
		return 11;
	reply = ask(fd, "POST", "/v1/jobs/1/cancel", NULL, NULL);
	if (reply.status != 403)
		return 12;
	reply = ask(fd, "POST", "/v1/quota", NULL, "{\"tenant\": \"x\", \"gpus\": 1}");
	if (reply.status != 403)
		return 13;
	return 0;
}

/* On the UNIX socket the kernel names the user; the socket is the owner's alone
 * unless it was opened to all. */
static void test_peer(void **state)
{
	(void)state;
	struct stat info;
	assert_int_equal(stat(served.socket, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	if (getuid() != 0) {
		print_message("skipped: needs root to be another user\n");
		skip();
	}
	served_stop(&served);
	served.options.socket_for_all = true;
	assert_int_equal(chmod(served.folder, 0755), 0);
	served_start(&served);
	assert_int_equal(submit(&served, "{\"command\": [\"x\"]}"), 1);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(submit_as_stranger());
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	json_t *job = ask_json(&served, "GET", "/v1/jobs/2", NULL, 200);
	assert_int_equal(json_integer_value(json_object_get(job, "uid")), 4242);
	json_decref(job);
}

/* Addresses that others could reach, and TCP without tokens, are refused at the start. */
static void test_addresses(void **state)
{
	(void)state;
	static const char *const beyond[] = {"0.0.0.0:0", "192.0.2.1:0", "[::]:0", "[2001:db8::1]:80"};
	struct sw_err err;
	served_stop(&served);
	for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
		served.options.listen = beyond[i];
		served_refused(&served, &err);
		assert_int_equal(err.code, SW_EDENIED);
		assert_non_null(strstr(err.detail, "TLS"));
	}
	static const char *const nonsense[] = {"7411", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "here:1", "[::1:1"};
	for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
		served.options.listen = nonsense[i];
		served_refused(&served, &err);
		assert_int_equal(err.code, SW_EINPUT);
	}
	served.options.listen = "127.0.0.1:0";
	served.options.tokens_path = NULL;
	served_refused(&served, &err);
	assert_int_equal(err.code, SW_EDENIED);
	served.options.tokens_path = served.tokens;
	assert_int_equal(chmod(served.tokens, 0640), 0);
	served_refused(&served, &err);
	assert_int_equal(err.code, SW_EDENIED);
	assert_non_null(strstr(err.hint, "chmod 600"));
	assert_int_equal(chmod(served.tokens, 0600), 0);
	served_start(&served);
}

static void write_tokens(const char *text)
{
	FILE *file = fopen(served.tokens, "w");
	fputs(text, file);
	fclose(file);
}

static bool find(const struct sw_tokens *tokens, const char *token, int64_t now_s, struct sw_token_owner *ret_owner)
{
	unsigned char digest[SW_TOKEN_DIGEST];
	sw_token_digest(token, digest);
	return sw_tokens_find(tokens, digest, now_s, ret_owner);
}

/* Lines that are not of the form are named by their number. */
static void test_token_file(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"operator\n",
		"king 00112233445566778899aabbccddeeff\n",
		"operator tooshort\n",
		"user 00112233445566778899aabbccddeeff\n",
		"user 00112233445566778899aabbccddeeff root\n",
		"user 00112233445566778899aabbccddeeff 1000:x\n",
		"user 00112233445566778899aabbccddeeff 1000 more words here\n",
		"user 00112233445566778899aabbccddeeff 1000 name expires=soon\n",
		"user 00112233445566778899aabbccddeeff 1000 name expires=0\n",
		"user 00112233445566778899aabbccddeeff 1000 name expires=99999999999999999999\n",
		"user 00112233445566778899aabbccddeeff 1000 name expires=5 expires=6\n",
		"user 00112233445566778899aabbccddeeff 1000 name unknown=5\n",
		"user 00112233445566778899aabbccddeeff 1000 name nodes=n\n",
		"agent 00112233445566778899aabbccddeeff 1000 name nodes=\n",
		"agent 00112233445566778899aabbccddeeff 1000 name nodes=a,,b\n",
		"agent 00112233445566778899aabbccddeeff 1000 name nodes=a,\n",
		"agent 00112233445566778899aabbccddeeff 1000 name nodes=a[1]\n",
		"agent 00112233445566778899aabbccddeeff 1000 name nodes=a nodes=b\n",
		"operator sha256:00112233445566778899aabbccddeeff\n",
		"operator sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeefg\n",
		"operator sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff0\n",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct sw_err err = {0};
		struct sw_tokens *tokens = NULL;
		char text[256];
		snprintf(text, sizeof text, "# comment\n\n%s", bad[i]);
		write_tokens(text);
		assert_int_equal(sw_tokens_read(served.tokens, &tokens, &err), SW_EINPUT);
		assert_non_null(strstr(err.detail, "line 3"));
	}
	struct sw_tokens *tokens = NULL;
	struct sw_token_owner owner;
	write_tokens("  operator\t00112233445566778899aabbccddeeff # me\nuser 10112233445566778899aabbccddeeff 7\n");
	assert_int_equal(sw_tokens_read(served.tokens, &tokens, NULL), 0);
	assert_true(find(tokens, "10112233445566778899aabbccddeeff", 100, &owner));
	assert_int_equal(owner.uid, 7);
	assert_int_equal(owner.gid, 7);
	assert_true(find(tokens, "00112233445566778899aabbccddeeff", 100, &owner));
	assert_int_equal(owner.role, SW_ROLE_OPERATOR);
	assert_false(find(tokens, "00112233445566778899aabbccddeef", 100, &owner));
	assert_false(find(tokens, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", 100, &owner));
	assert_false(find(tokens, "", 100, &owner));
	sw_tokens_free(tokens);
	assert_int_equal(sw_tokens_read("/nonexistent/tokens", &tokens, NULL), SW_ENOTFOUND);
}

/* A token ends at its moment, and what was opened with it ends too. */
static void test_expiry(void **state)
{
	(void)state;
	static const char token[] = "20112233445566778899aabbccddeeff";
	struct sw_tokens *tokens = NULL;
	struct sw_token_owner owner;
	write_tokens("user 20112233445566778899aabbccddeeff 7:7 - expires=200\n");
	assert_int_equal(sw_tokens_read(served.tokens, &tokens, NULL), 0);
	assert_true(find(tokens, token, 199, &owner));
	assert_int_equal(owner.expires_at_s, 200);
	assert_false(find(tokens, token, 200, &owner));
	assert_true(sw_tokens_ended(tokens, 199, 200));
	assert_false(sw_tokens_ended(tokens, 198, 199) || sw_tokens_ended(tokens, 200, 300));
	struct sw_token_view view;
	sw_tokens_view(tokens, 0, &view);
	assert_string_equal(view.name, "");
	sw_tokens_free(tokens);
	assert_int_equal(status_of("GET", "/v1/jobs", token, NULL), 401);

	write_tokens("user 20112233445566778899aabbccddeeff 7:7 - expires=7000000000\n");
	int fd = dial_tcp(&served);
	say_text(fd, "GET /v1/events HTTP/1.1\r\nAuthorization: Bearer 20112233445566778899aabbccddeeff\r\n\r\n");
	hear_head(fd, 200);
	free(hear_until(fd, "event: ready"));
	write_tokens("user 20112233445566778899aabbccddeeff 7:7 - expires=1000000000\n");
	while (!hears_end(fd))
		;
	close(fd);

	/* What is made with a last moment is read with it. */
	const struct sw_token_owner ends = {.role = SW_ROLE_AGENT, .uid = 7, .gid = 8, .expires_at_s = 5000000000};
	char made[SW_TOKEN_SIZE];
	assert_int_equal(sw_tokens_add(served.tokens, &ends, "", made, NULL), 0);
	assert_int_equal(sw_tokens_read(served.tokens, &tokens, NULL), 0);
	assert_true(find(tokens, made, 0, &owner));
	assert_int_equal(owner.expires_at_s, ends.expires_at_s);
	sw_tokens_free(tokens);
}

/* What a sync of this node is answered with. */
static int sync_as(const char *token, const char *node)
{
	static unsigned number;
	char body[400];
	snprintf(body, sizeof body,
		 "{\"node\": \"%s\", \"home\": \"%s\", \"start\": 1, \"instance\": \"i\", \"number\": %u, \"have\": 0, "
		 "\"inventory\": {\"cpus\": 1, \"memory_bytes\": 1, \"gpus\": [{\"uuid\": \"GPU-%s\"}]}}",
		 node, node, ++number, node);
	return status_of("POST", "/v1/agents/sync", token, body);
}

/* A token with names of nodes speaks for those; one without for the nodes that it was the first to
 * name, and for no more than so many. */
static void test_tokens_are_bound_to_nodes(void **state)
{
	(void)state;
	static const char bound[] = "50112233445566778899aabbccddeeff", first[] = "60112233445566778899aabbccddeeff",
			  second[] = "70112233445566778899aabbccddeeff";
	write_tokens("agent 50112233445566778899aabbccddeeff 0:0 - nodes=gpu-?,login\n"
		     "agent 60112233445566778899aabbccddeeff\nagent 70112233445566778899aabbccddeeff\n");
	assert_int_equal(sync_as(bound, "gpu-1"), 200);
	assert_int_equal(sync_as(bound, "login"), 200);
	assert_int_equal(sync_as(bound, "gpu-12"), 403);
	assert_int_equal(sync_as(bound, "other"), 403);
	/* The first to name a node has it. */
	assert_int_equal(sync_as(first, "a"), 200);
	assert_int_equal(sync_as(second, "a"), 403);
	assert_int_equal(sync_as(second, "gpu-1"), 403);
	assert_int_equal(sync_as(first, "a"), 200);
	/* No more than so many are invented. */
	char name[16];
	for (unsigned i = 1; i < SW_TOKEN_NODES_FREE; i++) {
		snprintf(name, sizeof name, "b%u", i);
		assert_int_equal(sync_as(first, name), 200);
	}
	assert_int_equal(sync_as(first, "one-more"), 403);
	assert_int_equal(sync_as(first, "b7"), 200);
	assert_int_equal(sync_as(second, "one-more"), 200);
	/* A new token takes over when the old one is gone, or when it names the node. */
	write_tokens("agent 50112233445566778899aabbccddeeff 0:0 - nodes=one-*\nagent 70112233445566778899aabbccddeeff\n");
	assert_int_equal(sync_as(second, "a"), 200);
	assert_int_equal(sync_as(bound, "one-more"), 200);
	assert_int_equal(sync_as(second, "one-more"), 403);
}

/* An operator's token never runs a job as root; one that names a user runs them as that user. */
static void test_operators_are_not_root(void **state)
{
	(void)state;
	write_tokens("operator 30112233445566778899aabbccddeeff 0:0\noperator 40112233445566778899aabbccddeeff 7:7\n");
	assert_int_equal(status_of("POST", "/v1/jobs", "30112233445566778899aabbccddeeff", "{\"command\": [\"id\"]}"), 403);
	assert_int_equal(status_of("GET", "/v1/jobs", "30112233445566778899aabbccddeeff", NULL), 200);
	assert_int_equal(status_of("POST", "/v1/jobs", "40112233445566778899aabbccddeeff", "{\"command\": [\"id\"]}"), 201);
}

/* A token that is made is kept as a hash and counts at once; taken back, it is refused at once, and
 * what was opened with it ends. */
static void test_change(void **state)
{
	(void)state;
	const struct sw_token_owner owner = {.role = SW_ROLE_USER, .uid = 7, .gid = 8};
	char token[SW_TOKEN_SIZE], again[SW_TOKEN_SIZE], *text = NULL;
	size_t size = 0;
	struct sw_err err = {0};
	assert_int_equal(sw_tokens_add(served.tokens, &owner, "laptop", token, NULL), 0);
	assert_int_equal(sw_tokens_add(served.tokens, &owner, "twin", again, NULL), 0);
	assert_string_not_equal(token, again);
	assert_int_equal(sw_tokens_add(served.tokens, &owner, "two words", again, &err), SW_EINPUT);
	assert_int_equal(sw_file_read(served.tokens, 1 << 20, &text, &size, NULL), 0);
	assert_null(strstr(text, token));
	free(text);
	struct stat info;
	assert_int_equal(stat(served.tokens, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(status_of("GET", "/v1/jobs", token, NULL), 200);
	int fd = dial_tcp(&served);
	char request[256];
	snprintf(request, sizeof request, "GET /v1/events HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n", token);
	say_text(fd, request);
	hear_head(fd, 200);
	free(hear_until(fd, "event: ready"));
	assert_int_equal(sw_tokens_remove(served.tokens, "laptop", NULL), 0);
	assert_int_equal(status_of("GET", "/v1/jobs", token, NULL), 401);
	while (!hears_end(fd))
		;
	close(fd);
	assert_int_equal(sw_tokens_remove(served.tokens, "laptop", &err), SW_ENOTFOUND);
	/* The others are untouched, the hand-written ones as well. */
	assert_int_equal(status_of("GET", "/v1/jobs", SERVED_STRANGER, NULL), 200);
	/* A name is one token's alone. */
	assert_int_equal(sw_tokens_add(served.tokens, &owner, "twin", again, &err), SW_EINPUT);
	assert_int_equal(sw_tokens_remove(served.tokens, "twin", NULL), 0);
	assert_int_equal(sw_tokens_add(served.tokens, &owner, "twin", again, NULL), 0);
	assert_int_equal(status_of("GET", "/v1/jobs", again, NULL), 200);
	/* A file that cannot be used changes nothing. */
	write_tokens("nonsense\n");
	assert_int_equal(status_of("GET", "/v1/jobs", again, NULL), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_tokens),
		TEST(test_bare_health),
		TEST(test_other_people),
		TEST(test_peer),
		TEST(test_addresses),
		TEST(test_token_file),
		TEST(test_change),
		TEST(test_expiry),
		TEST(test_tokens_are_bound_to_nodes),
		TEST(test_operators_are_not_root),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
