/* A controller in a process and a folder of its own, and a client that speaks HTTP byte by byte. */
#ifndef SW_TEST_SERVED_H
#define SW_TEST_SERVED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "server/server.h"

struct served {
	struct sw_controller_options options; /* may be changed before served_start() */
	char folder[64];
	char journal[128], socket[128], tokens[128], runs[128], logs[128];
	char address[64]; /* of TCP, once it runs */
	int port;
	uint64_t records, replayed; /* at the last start: of all times, and since the last snapshot */
	pid_t pid;
};

/* Makes the folder and usual options: UNIX socket and TCP, tokens, fifo. */
void served_make(struct served *served);
/* Before it starts: another user, whose token is this. */
#define SERVED_STRANGER "00112233445566778899aabbccddeeff00112233"
void served_add_stranger(const struct served *served);
void served_start(struct served *served);
/* SIGTERM; the process must end well. */
void served_stop(struct served *served);
/* SIGKILL. */
void served_kill(struct served *served);
/* Starts one that must refuse, and gives its error. */
void served_refused(struct served *served, struct sw_err *ret_err);
/* Stops it if it runs and removes the folder. */
void served_remove(struct served *served);
/* The first token of a role in the file; the caller frees. */
char *served_token(const struct served *served, unsigned role);

/* From now on this system call fails in this process and in controllers that it starts. False: the
 * machine cannot forbid it. */
bool served_forbid(long number, int error);

/* A connection. All calls fail the test when the other side does not do as
 * expected within a minute. */
int dial(const struct served *served);
int dial_tcp(const struct served *served);
/* The same through TLS: the other end of the socket is a process that encrypts. -1: no handshake.
 * `ret_pin`: the key of the server, as curl writes it; NULL. */
int dial_tls(const struct served *served, char ret_pin[64]);
void say(int fd, const char *bytes, size_t size);
void say_text(int fd, const char *text);

struct reply {
	int status;
	char *head, *body; /* NUL-terminated */
	size_t size;
	bool closes;
};
/* One whole answer; bodies with a length and chunked ones. */
struct reply hear(int fd);
void reply_free(struct reply *reply);
/* True when the other side closed without a word more. */
bool hears_end(int fd);
/* The head of an answer whose body comes as a stream, read up to the empty line. */
void hear_head(int fd, int status);
/* Reads a stream (chunked) until `word` has come, and returns all since the last
 * call; the caller frees. */
char *hear_until(int fd, const char *word);

/* A request and its answer on a connection; `token` may be NULL, `body` may be NULL. */
struct reply ask(int fd, const char *method, const char *target, const char *token, const char *body);
/* The same on a new connection to the socket, as JSON; fails unless the status is this one. The
 * caller frees with json_decref(). */
json_t *ask_json(const struct served *served, const char *method, const char *target, const char *body, int status);
/* Submits and returns the id. */
long long submit(const struct served *served, const char *body);
/* The value of a figure of /metrics, such as sharewell_journal_commits_total. */
double figure(const struct served *served, const char *name);
/* A string member of the JSON of a job. */
void expect_state(const struct served *served, long long id, const char *state);

/* Every key of an answer is in its schema, so the description tells no less than there is. */
void keys_are_described(json_t *object, const char *schema_name);

#endif
