/* What the load generators share: HTTP on a UNIX socket, one request at a time, and the reckoning
 * of times. They end the program when something fails. */
#ifndef SW_BENCH_CLIENT_H
#define SW_BENCH_CLIENT_H

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BENCH_TEXT_MAX ((size_t)64 << 20)

struct bench_client {
	int fd;
	char *text; /* of the last answer's body, NUL-terminated */
	size_t size;
	char *buffer;
};

__attribute__((format(printf, 1, 2))) static inline _Noreturn void bench_fail(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	fputs("bench: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static inline int64_t bench_clock(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int bench_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
		bench_fail("cannot connect to '%s': %s", path, strerror(errno));
	return fd;
}

static inline void bench_open(struct bench_client *client, const char *path)
{
	client->fd = bench_connect(path);
	client->buffer = malloc(BENCH_TEXT_MAX + 1);
	if (client->buffer == NULL)
		bench_fail("out of memory");
}

static inline void bench_close(struct bench_client *client)
{
	close(client->fd);
	free(client->buffer);
}

static inline void bench_send(int fd, const char *text, size_t size)
{
	while (size > 0) {
		ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			bench_fail("cannot write to the controller: %s", strerror(errno));
		text += n;
		size -= (size_t)n;
	}
}

/* The whole size of the answer that `text` begins with; 0: its head is not complete. */
static inline size_t bench_answer_size(const char *text, size_t *ret_head)
{
	const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");
	if (end == NULL)
		return 0;
	if (length == NULL || length > end)
		bench_fail("an answer has no length");
	*ret_head = (size_t)(end + 4 - text);
	return *ret_head + strtoul(length + 17, NULL, 10);
}

static inline int bench_receive(struct bench_client *client)
{
	size_t used = 0, head = 0, whole = 0;
	do {
		if (used == BENCH_TEXT_MAX)
			bench_fail("an answer is too large");
		ssize_t n = recv(client->fd, client->buffer + used, BENCH_TEXT_MAX - used, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			bench_fail("the controller hung up");
		used += (size_t)n;
		client->buffer[used] = '\0';
		if (whole == 0)
			whole = bench_answer_size(client->buffer, &head);
	} while (whole == 0 || used < whole);
	client->text = client->buffer + head;
	client->size = whole - head;
	return atoi(client->buffer + 9);
}

/* The status. `body` may be NULL. */
static inline int bench_ask(struct bench_client *client, const char *method, const char *target, const char *body)
{
	char head[512];
	size_t size = body != NULL ? strlen(body) : 0;
	int n = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n", method, target, size);
	bench_send(client->fd, head, (size_t)n);
	bench_send(client->fd, body, size);
	return bench_receive(client);
}

static inline void bench_must(struct bench_client *client, const char *method, const char *target, const char *body, int expected)
{
	int status = bench_ask(client, method, target, body);
	if (status != expected)
		bench_fail("%s %s was answered with %d: %.300s", method, target, status, client->text);
}

/* A number behind "name": or, in /metrics, behind the name and a space; -1: it is not there. */
static inline double bench_number(const char *text, const char *name)
{
	const char *at = strstr(text, name);
	if (at == NULL)
		return -1;
	at += strlen(name);
	at += strspn(at, "\": ");
	return strtod(at, NULL);
}

/* The cursor of the next page, which stands behind its jobs: these have
 * members of that name, too. */
static inline double bench_next(const char *text)
{
	const char *last = text;
	for (const char *at = text; (at = strstr(at, "\"next\"")) != NULL; at++)
		last = at;
	return bench_number(last, "\"next\"");
}

static inline int bench_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return x < y ? -1 : x > y;
}

/* Sorts them, and prints their quantiles as members of a JSON object. */
static inline void bench_print_times(const char *name, int64_t *times_ns, size_t count)
{
	if (count == 0)
		return;
	qsort(times_ns, count, sizeof *times_ns, bench_compare);
	printf(", \"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, \"%s_max_ms\": %.3f", name, (double)times_ns[count / 2] / 1e6, name,
	       (double)times_ns[count * 99 / 100] / 1e6, name, (double)times_ns[count - 1] / 1e6);
}

#endif
