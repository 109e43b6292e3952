#include "unit/server/served.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/routes.h"
#include "client/token.h"
#include "server/tokens.h"

#define PATIENCE_MS 60000

/* ---- the controller */

/* What the child tells through the pipe: where it listens, or why it does not. */
struct word {
	bool ready;
	char address[64];
	uint64_t records, replayed;
	struct sw_err err;
};

static void tell(void *user, const struct sw_controller_place *place)
{
	struct word word = {.ready = true, .records = place->records, .replayed = place->replayed};
	snprintf(word.address, sizeof word.address, "%s", place->address != NULL ? place->address : "");
	if (write(*(int *)user, &word, sizeof word) != (ssize_t)sizeof word)
		abort();
}

void served_make(struct served *served)
{
	memset(served, 0, sizeof *served);
	strcpy(served->folder, "/tmp/sharewell-test-XXXXXX");
	assert_non_null(mkdtemp(served->folder));
	snprintf(served->journal, sizeof served->journal, "%s/journal.db", served->folder);
	snprintf(served->socket, sizeof served->socket, "%s/socket", served->folder);
	snprintf(served->tokens, sizeof served->tokens, "%s/tokens", served->folder);
	snprintf(served->runs, sizeof served->runs, "%s/runs", served->folder);
	snprintf(served->logs, sizeof served->logs, "%s/logs", served->folder);
	assert_int_equal(sw_tokens_make(served->tokens, NULL), 0);
	served->options = (struct sw_controller_options){
		.journal_path = served->journal,
		.socket_path = served->socket,
		.listen = "127.0.0.1:0",
		.tokens_path = served->tokens,
		.runs_folder = served->runs,
		.logs_folder = served->logs,
		.policy = "fifo",
	};
}

static struct word launch(struct served *served)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	fflush(NULL);
	served->pid = fork();
	assert_true(served->pid >= 0);
	if (served->pid == 0) {
		close(ends[0]);
		struct word word = {0};
		served->options.on_ready = tell;
		served->options.user = &ends[1];
		int r = sw_controller_run(&served->options, &word.err);
		/* This is not read once the controller was ready. */
		signal(SIGPIPE, SIG_IGN);
		if (r < 0 && write(ends[1], &word, sizeof word) < 0)
			r = SW_EIO;
		exit(r < 0 ? 3 : 0);
	}
	close(ends[1]);
	struct word word;
	assert_int_equal(read(ends[0], &word, sizeof word), (ssize_t)sizeof word);
	close(ends[0]);
	return word;
}

void served_add_stranger(const struct served *served)
{
	FILE *file = fopen(served->tokens, "a");
	assert_non_null(file);
	fputs("user " SERVED_STRANGER " 4242:4242\n", file);
	assert_int_equal(fclose(file), 0);
}

void served_start(struct served *served)
{
	struct word word = launch(served);
	if (!word.ready)
		fail_msg("did not start: %s: %s", word.err.fact, word.err.detail);
	strcpy(served->address, word.address);
	const char *colon = strrchr(word.address, ':');
	served->port = colon != NULL ? atoi(colon + 1) : 0;
	served->records = word.records;
	served->replayed = word.replayed;
}

void served_refused(struct served *served, struct sw_err *ret_err)
{
	struct word word = launch(served);
	assert_false(word.ready);
	assert_int_equal(waitpid(served->pid, NULL, 0), served->pid);
	served->pid = 0;
	*ret_err = word.err;
}

void served_stop(struct served *served)
{
	int status;
	assert_int_equal(kill(served->pid, SIGTERM), 0);
	assert_int_equal(waitpid(served->pid, &status, 0), served->pid);
	served->pid = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

void served_kill(struct served *served)
{
	kill(served->pid, SIGKILL);
	waitpid(served->pid, NULL, 0);
	served->pid = 0;
}

void served_remove(struct served *served)
{
	if (served->pid > 0)
		served_stop(served);
	char command[128];
	snprintf(command, sizeof command, "rm -rf '%s'", served->folder);
	assert_int_equal(system(command), 0);
}

char *served_token(const struct served *served, unsigned role)
{
	char *token = NULL;
	assert_int_equal(sw_token_first(served->tokens, role, &token, NULL), 0);
	return token;
}

bool served_forbid(long number, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* ---- the client */

int dial(const struct served *served)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	strcpy(address.sun_path, served->socket);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

int dial_tcp(const struct served *served)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)served->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* What has come from TLS goes to the plain socket; false at the end. */
static bool relay_in(int plain, SSL *ssl)
{
	char bytes[20000];
	int got = SSL_read(ssl, bytes, sizeof bytes);
	if (got <= 0)
		return SSL_get_error(ssl, got) == SSL_ERROR_WANT_READ;
	return write(plain, bytes, (size_t)got) == got;
}

/* Copies between the plain socket and TLS until one of them ends. Never waits for one of them
 * alone: the server may be waiting for the other. */
static void relay(int plain, SSL *ssl)
{
	char waiting[16000];
	int size = 0;
	fcntl(SSL_get_fd(ssl), F_SETFL, O_NONBLOCK);
	for (;;) {
		struct pollfd waits[2] = {{.fd = plain, .events = size == 0 ? POLLIN : 0},
					  {.fd = SSL_get_fd(ssl), .events = (short)(POLLIN | (size > 0 ? POLLOUT : 0))}};
		if (SSL_pending(ssl) == 0 && poll(waits, 2, -1) < 0)
			return;
		if ((SSL_pending(ssl) > 0 || (waits[1].revents & (POLLIN | POLLHUP)) != 0) && !relay_in(plain, ssl))
			return;
		if (size == 0 && (waits[0].revents & (POLLIN | POLLHUP)) != 0 && (size = (int)read(plain, waiting, sizeof waiting)) <= 0)
			return;
		int sent = size > 0 ? SSL_write(ssl, waiting, size) : 0;
		if (sent > 0)
			size = 0;
		else if (size > 0 && SSL_get_error(ssl, sent) != SSL_ERROR_WANT_WRITE && SSL_get_error(ssl, sent) != SSL_ERROR_WANT_READ)
			return;
	}
}

static void pin_of(SSL *ssl, char pin[64])
{
	X509 *certificate = SSL_get1_peer_certificate(ssl);
	unsigned char *key = NULL, hash[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
	unsigned size = 0;
	int key_size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key);
	EVP_Digest(key, (size_t)key_size, hash, &size, EVP_sha256(), NULL);
	EVP_EncodeBlock(text, hash, (int)size);
	snprintf(pin, 64, "sha256//%.44s", (const char *)text);
	OPENSSL_free(key);
	X509_free(certificate);
}

int dial_tls(const struct served *served, char ret_pin[64])
{
	int ends[2];
	char pin[64] = "";
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fflush(NULL);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		SSL_CTX *context = SSL_CTX_new(TLS_client_method());
		SSL *ssl = SSL_new(context);
		int fd = dial_tcp(served), on = 1;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
		SSL_set_fd(ssl, fd);
		signal(SIGPIPE, SIG_IGN);
		if (SSL_connect(ssl) == 1)
			pin_of(ssl, pin);
		if (write(ends[1], pin, sizeof pin) == (ssize_t)sizeof pin && pin[0] != '\0')
			relay(ends[1], ssl);
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], pin, sizeof pin), (ssize_t)sizeof pin);
	if (ret_pin != NULL)
		memcpy(ret_pin, pin, sizeof pin);
	if (pin[0] != '\0')
		return ends[0];
	close(ends[0]);
	return -1;
}

void say(int fd, const char *bytes, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
		if (sent < 0)
			return; /* the other side has heard enough; its answer tells */
		bytes += sent;
		size -= (size_t)sent;
	}
}

void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* At most `size` bytes; 0 at the end. */
static size_t take(int fd, char *bytes, size_t size)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	if (poll(&wait, 1, PATIENCE_MS) != 1)
		fail_msg("the controller said nothing");
	ssize_t got = recv(fd, bytes, size, 0);
	return got < 0 ? 0 : (size_t)got;
}

static bool take_line(int fd, char *line, size_t size)
{
	size_t used = 0;
	while (used + 1 < size && take(fd, line + used, 1) == 1) {
		used++;
		if (line[used - 1] == '\n') {
			line[used] = '\0';
			return true;
		}
	}
	return false;
}

/* The room that a text of this size has. */
static size_t room_of(size_t size)
{
	size_t room = 1;
	while (room < size + 1)
		room *= 2;
	return room;
}

/* Appends exactly this many bytes. */
static void take_exactly(int fd, size_t size, char **text, size_t *used)
{
	if (*text == NULL || room_of(*used + size) != room_of(*used))
		*text = realloc(*text, room_of(*used + size));
	while (size > 0) {
		size_t got = take(fd, *text + *used, size);
		if (got == 0)
			fail_msg("the answer ended too early");
		*used += got;
		size -= got;
	}
	(*text)[*used] = '\0';
}

/* Appends one chunk; false at the last. */
static bool take_chunk(int fd, char **text, size_t *used)
{
	char line[64], *skip = NULL;
	size_t skipped = 0;
	assert_true(take_line(fd, line, sizeof line));
	size_t size = strtoul(line, NULL, 16);
	if (size > 0)
		take_exactly(fd, size, text, used);
	take_exactly(fd, 2, &skip, &skipped);
	assert_string_equal(skip, "\r\n");
	free(skip);
	return size > 0;
}

struct reply hear(int fd)
{
	struct reply reply = {.head = strdup(""), .body = strdup("")};
	char line[4096];
	size_t length = 0;
	bool chunked = false;
	while (take_line(fd, line, sizeof line)) {
		if (strcmp(line, "\r\n") == 0)
			break;
		if (reply.status == 0)
			sscanf(line, "HTTP/1.1 %d ", &reply.status);
		sscanf(line, "Content-Length: %zu", &length);
		chunked = chunked || strstr(line, "chunked") != NULL;
		reply.closes = reply.closes || strstr(line, "Connection: close") != NULL;
		reply.head = realloc(reply.head, strlen(reply.head) + strlen(line) + 1);
		strcat(reply.head, line);
	}
	if (chunked)
		while (take_chunk(fd, &reply.body, &reply.size))
			;
	else if (reply.status != 100)
		take_exactly(fd, length, &reply.body, &reply.size);
	return reply;
}

void reply_free(struct reply *reply)
{
	free(reply->head);
	free(reply->body);
}

bool hears_end(int fd)
{
	char byte;
	return take(fd, &byte, 1) == 0;
}

void hear_head(int fd, int status)
{
	char line[4096];
	int got = 0;
	assert_true(take_line(fd, line, sizeof line));
	sscanf(line, "HTTP/1.1 %d ", &got);
	assert_int_equal(got, status);
	while (take_line(fd, line, sizeof line) && strcmp(line, "\r\n") != 0)
		;
}

char *hear_until(int fd, const char *word)
{
	char *text = strdup("");
	size_t used = 0, looked = 0;
	while (strstr(text + looked, word) == NULL) {
		/* What was looked through before cannot hold it, but for its beginning. */
		looked = used > strlen(word) ? used - strlen(word) : 0;
		if (!take_chunk(fd, &text, &used))
			fail_msg("the stream ended without '%s': %s", word, text);
	}
	return text;
}

struct reply ask(int fd, const char *method, const char *target, const char *token, const char *body)
{
	char head[8192];
	size_t size = body != NULL ? strlen(body) : 0;
	int used = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: x\r\n", method, target);
	if (token != NULL)
		used += snprintf(head + used, sizeof head - (size_t)used, "Authorization: Bearer %s\r\n", token);
	snprintf(head + used, sizeof head - (size_t)used, "Content-Length: %zu\r\n\r\n", size);
	say_text(fd, head);
	if (size > 0)
		say(fd, body, size);
	return hear(fd);
}

json_t *ask_json(const struct served *served, const char *method, const char *target, const char *body, int status)
{
	int fd = dial(served);
	struct reply reply = ask(fd, method, target, NULL, body);
	close(fd);
	if (reply.status != status)
		fail_msg("%s %s gave %d, expected %d: %s", method, target, reply.status, status, reply.body);
	json_error_t error;
	json_t *root = json_loadb(reply.body, reply.size, JSON_REJECT_DUPLICATES, &error);
	if (root == NULL)
		fail_msg("%s %s gave no JSON: %s: %s", method, target, error.text, reply.body);
	reply_free(&reply);
	return root;
}

long long submit(const struct served *served, const char *body)
{
	json_t *root = ask_json(served, "POST", "/v1/jobs", body, 201);
	long long id = json_integer_value(json_object_get(root, "id"));
	json_decref(root);
	assert_true(id > 0);
	return id;
}

double figure(const struct served *served, const char *name)
{
	int fd = dial(served);
	struct reply reply = ask(fd, "GET", "/metrics", NULL, NULL);
	close(fd);
	assert_int_equal(reply.status, 200);
	size_t size = strlen(name);
	double value = -1;
	for (const char *line = reply.body; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, size) == 0 && line[size] == ' ')
			value = atof(line + size);
		if (*line == '\0')
			break;
	}
	reply_free(&reply);
	if (value < 0)
		fail_msg("there is no figure %s", name);
	return value;
}

void expect_state(const struct served *served, long long id, const char *state)
{
	char target[64];
	snprintf(target, sizeof target, "/v1/jobs/%lld", id);
	json_t *root = ask_json(served, "GET", target, NULL, 200);
	assert_string_equal(json_string_value(json_object_get(root, "state")), state);
	json_decref(root);
}

void keys_are_described(json_t *object, const char *schema_name)
{
	const struct sw_schema *schema = sw_schema_find(schema_name);
	const struct sw_field *bounds;
	struct sw_api_field field;
	const char *key;
	json_t *value;
	assert_non_null(schema);
	json_object_foreach(object, key, value)
	{
		bool known = false;
		for (size_t i = 0; !known && sw_schema_field(schema, i, &field, &bounds); i++)
			known = strcmp(field.name, key) == 0;
		if (!known)
			fail_msg("'%s' is not in the schema %s", key, schema_name);
	}
}
