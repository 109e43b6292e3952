/* TLS: the same server behind it, certificates that can and cannot be used,
 * clients that do not speak it. */
#include <errno.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "server/certificate.h"
#include "server/tls.h"
#include "unit/server/served.h"

static struct served served;
static char certificate[128], key[128];
static char *user, *agent;

static int set_up(void **state)
{
	(void)state;
	served_make(&served);
	snprintf(certificate, sizeof certificate, "%s/tls.crt", served.folder);
	snprintf(key, sizeof key, "%s/tls.key", served.folder);
	assert_int_equal(sw_certificate_make(certificate, key, NULL), 0);
	served.options.tls_certificate = certificate;
	served.options.tls_key = key;
	served_start(&served);
	user = served_token(&served, SW_ROLE_USER);
	agent = served_token(&served, SW_ROLE_AGENT);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	served_remove(&served);
	free(user);
	free(agent);
	return 0;
}

static int dialled(void)
{
	int fd = dial_tls(&served, NULL);
	assert_true(fd >= 0);
	return fd;
}

/* One connection, many requests; a token is needed there as well. */
static void test_requests(void **state)
{
	(void)state;
	int fd = dialled();
	for (int i = 0; i < 20; i++) {
		struct reply reply = ask(fd, "POST", "/v1/jobs", user, "{\"command\": [\"x\"]}");
		assert_int_equal(reply.status, 201);
		reply_free(&reply);
	}
	struct reply reply = ask(fd, "GET", "/v1/jobs", NULL, NULL);
	assert_int_equal(reply.status, 401);
	assert_non_null(strstr(reply.head, "WWW-Authenticate: Bearer"));
	reply_free(&reply);
	close(fd);
}

/* Bodies of every size around what is read at a time arrive whole, and the connection goes on. */
static void test_bodies(void **state)
{
	(void)state;
	static const char job[] = "[{\"command\": [\"x\"]}]";
	static const size_t around[] = {16384, 32768, 65536, 81920, 131072, 1 << 20};
	int fd = dialled();
	char *body = malloc((4 << 20) + 64);
	for (size_t a = 0; a < sizeof around / sizeof around[0]; a++)
		for (size_t size = around[a] - 260; size < around[a] + 260; size += 13) {
			memset(body, ' ', size);
			memcpy(body, job, sizeof job - 1);
			body[size] = '\0';
			struct reply reply = ask(fd, "POST", "/v1/jobs", user, body);
			if (reply.status != 201)
				fail_msg("%zu bytes: %d", size, reply.status);
			reply_free(&reply);
		}
	memset(body, ' ', 4 << 20);
	memcpy(body, job, sizeof job - 1);
	body[4 << 20] = '\0';
	struct reply reply = ask(fd, "POST", "/v1/jobs", user, body);
	assert_int_equal(reply.status, 201);
	reply_free(&reply);
	close(fd);
	free(body);
}

static size_t write_submit(char *text, size_t size)
{
	int used = snprintf(text, 1024, "POST /v1/jobs HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n", user, size);
	memset(text + used, ' ', size);
	memcpy(text + used, "[{\"command\": [\"x\"]}]", 20);
	return (size_t)used + size;
}

/* A request that comes in one record with the end of a large body is not left lying there. */
static void test_behind_a_body(void **state)
{
	(void)state;
	int fd = dialled();
	char *text = malloc(200000);
	for (size_t size = 70000; size < 120000; size += 701) {
		size_t used = write_submit(text, size);
		used += write_submit(text + used, 3000);
		say(fd, text, used);
		struct reply first = hear(fd), second = hear(fd);
		assert_int_equal(first.status, 201);
		assert_int_equal(second.status, 201);
		reply_free(&first);
		reply_free(&second);
	}
	free(text);
	close(fd);
}

/* Requests that come faster than their answers are read wait, and none is lost. */
static void test_pipeline(void **state)
{
	(void)state;
	enum { REQUESTS = 3000 };
	int fd = dialled();
	char request[512];
	snprintf(request, sizeof request, "GET /v1/cluster HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n", user);
	fflush(NULL);
	pid_t writer = fork();
	if (writer == 0) {
		for (int i = 0; i < REQUESTS; i++)
			say_text(fd, request);
		_exit(0);
	}
	for (int i = 0; i < REQUESTS; i++) {
		struct reply reply = hear(fd);
		assert_int_equal(reply.status, 200);
		reply_free(&reply);
	}
	close(fd);
}

/* A stream of events stays open and brings what happens. */
static void test_events(void **state)
{
	(void)state;
	int fd = dialled();
	char request[512];
	snprintf(request, sizeof request, "GET /v1/events HTTP/1.1\r\nAuthorization: Bearer %s\r\n\r\n", user);
	say_text(fd, request);
	hear_head(fd, 200);
	free(hear_until(fd, "event: ready"));
	long long id = submit(&served, "{\"command\": [\"x\"], \"name\": \"streamed\"}");
	assert_true(id > 0);
	free(hear_until(fd, "\"name\":\"streamed\""));
	close(fd);
}

/* Sends a sync of an agent; hears nothing yet. */
static void say_sync(int fd, int number, long long have, const char *more)
{
	char body[1024], head[512];
	int size = snprintf(body, sizeof body, "{\"node\": \"n1\", \"instance\": \"abc\", \"number\": %d, \"have\": %lld%s}", number, have,
			    more);
	snprintf(head, sizeof head, "POST /v1/agents/sync HTTP/1.1\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", agent, size);
	say_text(fd, head);
	say_text(fd, body);
}

/* An agent's poll that has nothing to hear waits, and is answered as soon as there is something. */
static void test_poll(void **state)
{
	(void)state;
	int fd = dialled();
	say_sync(
		fd, 1, 0,
		", \"inventory\": {\"gpus\": [{\"uuid\": \"GPU-a\", \"name\": \"Card\", \"memory_bytes\": 17179869184, \"link_group\": 0}],"
		" \"cpus\": 8, \"memory_bytes\": 34359738368}");
	struct reply reply = hear(fd);
	assert_int_equal(reply.status, 200);
	json_t *answer = json_loads(reply.body, 0, NULL);
	long long version = json_integer_value(json_object_get(answer, "version"));
	json_decref(answer);
	reply_free(&reply);
	say_sync(fd, 2, version, "");
	assert_int_equal((int)figure(&served, "sharewell_gpus"), 1);
	submit(&served, "{\"command\": [\"x\"]}");
	reply = hear(fd);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "\"want\":\"run\""));
	reply_free(&reply);
	close(fd);
}

/* A client that does not speak TLS is told so, where that can be; others are
 * dropped; the rest goes on. */
static void test_strangers(void **state)
{
	(void)state;
	int fd = dial_tcp(&served);
	say_text(fd, "GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\n");
	char answer[512] = "";
	size_t used = 0;
	for (ssize_t got; used < sizeof answer - 1 && (got = read(fd, answer + used, sizeof answer - 1 - used)) > 0;)
		used += (size_t)got;
	assert_non_null(strstr(answer, "400 Bad Request"));
	assert_non_null(strstr(answer, "https://"));
	close(fd);
	fd = dial_tcp(&served);
	say(fd, "\x16\x03\x01\xff\xff garbage", 13);
	say_text(fd, "more and more of it, and nothing that could be a handshake");
	shutdown(fd, SHUT_WR);
	while (read(fd, answer, sizeof answer) > 0)
		;
	close(fd);
	test_requests(NULL);
	assert_true(figure(&served, "sharewell_tls_handshakes_failed_total") >= 1);
}

/* What is older than TLS 1.2 is refused. */
static void test_old(void **state)
{
	(void)state;
	for (int version = TLS1_1_VERSION; version <= TLS1_3_VERSION; version++) {
		SSL_CTX *context = SSL_CTX_new(TLS_client_method());
		SSL_CTX_set_security_level(context, 0);
		SSL_CTX_set_min_proto_version(context, version);
		SSL_CTX_set_max_proto_version(context, version);
		SSL *ssl = SSL_new(context);
		int fd = dial_tcp(&served);
		SSL_set_fd(ssl, fd);
		assert_int_equal(SSL_connect(ssl) == 1, version >= TLS1_2_VERSION);
		SSL_free(ssl);
		SSL_CTX_free(context);
		close(fd);
	}
}

/* Handshakes that never end do not keep others out: one that has not begun to ask gives way. */
static void test_stuck(void **state)
{
	(void)state;
	enum { STUCK = 12 };
	int fds[STUCK];
	served_stop(&served);
	served.options.connections_max = 4;
	served_start(&served);
	for (int i = 0; i < STUCK; i++) {
		fds[i] = dial_tcp(&served);
		say(fds[i], "\x16\x03\x01", 3);
	}
	test_requests(NULL);
	for (int i = 0; i < STUCK; i++)
		close(fds[i]);
}

static void expect_refused(const char *words)
{
	struct sw_err err;
	served_refused(&served, &err);
	if (strstr(err.fact, words) == NULL && strstr(err.detail, words) == NULL)
		fail_msg("'%s: %s' does not say '%s'", err.fact, err.detail, words);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	fputs(text, file);
	fclose(file);
}

/* Files that cannot be used are named, with the reason. */
static void test_files(void **state)
{
	(void)state;
	char other[160], other_key[160];
	served_stop(&served);
	snprintf(other, sizeof other, "%s/other.crt", served.folder);
	snprintf(other_key, sizeof other_key, "%s/other.key", served.folder);
	assert_int_equal(sw_certificate_make(other, other_key, NULL), 0);
	served.options.tls_certificate = "/nonexistent/cert";
	expect_refused("cannot read the certificate '/nonexistent/cert'");
	served.options.tls_certificate = certificate;
	served.options.tls_key = other_key;
	expect_refused("key values mismatch");
	assert_int_equal(chmod(other_key, 0644), 0);
	expect_refused("all users can read it");
	served.options.tls_key = key;
	served.options.tls_certificate = other;
	write_text(other, "no certificate");
	expect_refused("cannot use the certificate");
	/* With one, addresses beyond loopback are served. */
	served.options.tls_certificate = certificate;
	served.options.listen = "0.0.0.0:0";
	served_start(&served);
	test_requests(NULL);
}

/* SIGHUP takes a new certificate, and keeps the old one where the new one is bad. */
static void test_again(void **state)
{
	(void)state;
	char first[64], pin[64], next_certificate[160], next_key[160];
	close(dial_tls(&served, first));
	snprintf(next_certificate, sizeof next_certificate, "%s/next.crt", served.folder);
	snprintf(next_key, sizeof next_key, "%s/next.key", served.folder);
	assert_int_equal(sw_certificate_make(next_certificate, next_key, NULL), 0);
	int open_before = dialled();
	write_text(certificate, "nothing\n");
	assert_int_equal(kill(served.pid, SIGHUP), 0);
	struct reply reply = ask(open_before, "GET", "/v1/jobs", user, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(dial_tls(&served, pin));
	assert_string_equal(pin, first);
	assert_int_equal(rename(next_certificate, certificate), 0);
	assert_int_equal(rename(next_key, key), 0);
	assert_int_equal(kill(served.pid, SIGHUP), 0);
	for (int i = 0; i < 500 && strcmp(pin, first) == 0; i++) {
		close(dial_tls(&served, pin));
		usleep(10000);
	}
	assert_string_not_equal(pin, first);
	reply = ask(open_before, "GET", "/v1/jobs", user, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(open_before);
}

/* A certificate that is made anew has the same key, so that clients that were given its
 * fingerprint need not be told. */
static void test_made_anew(void **state)
{
	(void)state;
	struct sw_tls *tls = NULL;
	char before[SW_TLS_PIN_SIZE];
	struct stat info;
	assert_int_equal(sw_tls_open(certificate, key, &tls, NULL), 0);
	strcpy(before, sw_tls_pin(tls));
	sw_tls_free(tls);
	assert_int_equal(unlink(certificate), 0);
	assert_int_equal(sw_certificate_make(certificate, key, NULL), 0);
	assert_int_equal(sw_tls_open(certificate, key, &tls, NULL), 0);
	assert_string_equal(sw_tls_pin(tls), before);
	assert_true(sw_tls_ends_at_s(tls) > (int64_t)time(NULL) + 9 * 365 * 86400LL);
	sw_tls_free(tls);
	assert_int_equal(stat(key, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	/* One that is good is left alone. */
	ino_t number = (stat(certificate, &info), info.st_ino);
	assert_int_equal(sw_certificate_make(certificate, key, NULL), 0);
	assert_int_equal(stat(certificate, &info), 0);
	assert_int_equal(info.st_ino, number);
}

/* Aim: a certificate without an end, as one of the year 9999 means, is served like any other. */
static void test_without_end(void **state)
{
	(void)state;
	served_stop(&served);
	FILE *file = fopen(certificate, "r"), *keys = fopen(key, "r");
	assert_true(file != NULL && keys != NULL);
	X509 *made = PEM_read_X509(file, NULL, NULL, NULL);
	EVP_PKEY *signer = PEM_read_PrivateKey(keys, NULL, NULL, NULL);
	fclose(file);
	fclose(keys);
	assert_int_equal(ASN1_TIME_set_string_X509(X509_getm_notAfter(made), "99991231235959Z"), 1);
	assert_true(X509_sign(made, signer, EVP_sha256()) > 0);
	assert_non_null(file = fopen(certificate, "w"));
	assert_int_equal(PEM_write_X509(file, made), 1);
	fclose(file);
	X509_free(made);
	EVP_PKEY_free(signer);
	served_start(&served);
	int fd = dialled();
	struct reply reply = ask(fd, "GET", "/v1/jobs", user, NULL);
	assert_int_equal(reply.status, 200);
	reply_free(&reply);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_requests), TEST(test_bodies),	   TEST(test_behind_a_body), TEST(test_pipeline), TEST(test_events),
		TEST(test_poll),     TEST(test_strangers), TEST(test_old),	     TEST(test_stuck),	  TEST(test_files),
		TEST(test_again),    TEST(test_made_anew), TEST(test_without_end),
	};
	signal(SIGCHLD, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
