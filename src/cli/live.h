/* What the commands for a live cluster share: options, numbers of jobs, and answers of
 * the controller as text. */
#ifndef SW_CLI_LIVE_H
#define SW_CLI_LIVE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/vec.h"
#include "cli/command.h"
#include "client/client.h"

#define SW_CLI_JOBS_MAX 100000u

/* Options, for a struct with a member of that name. */
#define SW_CLI_OPTION_CONTROLLER(type)                                                                                                   \
	{                                                                                                                                \
		"controller", .kind = SW_CLI_TEXT, .argument = "PLACE",                                                                  \
			      .about = "where the controller is: https://HOST:PORT or unix:/PATH; else $SHAREWELL_CONTROLLER, else the " \
				       "one started here",                                                                               \
			      .offset = offsetof(type, controller)                                                                       \
	}
/* The operands of commands about jobs, likewise. */
#define SW_CLI_OPERAND_JOBS(type)                                                                                                          \
	{                                                                                                                                  \
		"JOB", .kind = SW_CLI_TEXTS, .required = true, .about = "numbers, or ranges such as 12-15", .offset = offsetof(type, jobs) \
	}
#define SW_CLI_OPTION_JSON(type)                                                                        \
	{                                                                                               \
		"json", .about = "print JSON as the controller gave it", .offset = offsetof(type, json) \
	}
#define SW_CLI_OPTION_NOHEADER(type)                                                                      \
	{                                                                                                 \
		"noheader", 'h', .about = "print no line of headings", .offset = offsetof(type, noheader) \
	}

static inline void sw_json_decrefp(json_t **owner)
{
	json_decref(*owner);
}
#define SW_JSON SW_CLEANUP(sw_json_decrefp) json_t

/* ---- jobs */
typedef SW_VEC(uint64_t) sw_cli_ids;
/* From words such as "12" and "15-18". Release with sw_vec_free(). */
int sw_cli_job_ids(const struct sw_cli_texts *words, sw_cli_ids *ids, struct sw_err *err);
/* One number. */
int sw_cli_job_id(const char *word, uint64_t *ret_id, struct sw_err *err);
/* Every job that the words name, in their order, until one fails: then that code, else the highest
 * of what `take` returned. */
typedef int sw_cli_job_fn(void *user, struct sw_client *client, uint64_t id, struct sw_err *err);
int sw_cli_each_job(struct sw_client *client, const struct sw_cli_texts *words, sw_cli_job_fn *take, void *user, struct sw_err *err);
/* Every one of them, whatever becomes of the others, while the controller answers and there is no
 * interrupt. The first failure is the result, later ones are printed. */
int sw_cli_try_jobs(struct sw_client *client, const sw_cli_ids *ids, sw_cli_job_fn *take, void *user, struct sw_err *err);
int sw_cli_get_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err);
bool sw_cli_job_ended(const json_t *job);
/* What a shell would say of it: 0, its code, 128 and the signal, or 1 when it did not end well
 * without having either. */
int sw_cli_job_exit(const json_t *job);
/* Pages through /v1/jobs with the parameters `query` ("state=PD&"), oldest first; `take`
 * gets each page's jobs. */
typedef int sw_cli_page_fn(void *user, json_t *jobs, struct sw_err *err);
int sw_cli_each_page(struct sw_client *client, const char *query, sw_cli_page_fn *take, void *user, struct sw_err *err);

/* ---- members of answers; the fallback where they are missing or of another type */
const char *sw_cli_text(const json_t *object, const char *key, const char *fallback);
int64_t sw_cli_number(const json_t *object, const char *key, int64_t fallback);
double sw_cli_real(const json_t *object, const char *key, double fallback);

/* ---- how a job does on its GPUs, in words; each returns `text` */
/* "10.0 GiB of each GPU and 30 % of its time", "all of its GPUs". */
char *sw_cli_limit(const json_t *job, char *text, size_t size);
/* "9.5 GiB of 10.0 GiB, 1.2 GiB more in host memory"; "" where it is not known. */
char *sw_cli_gpu_memory(const json_t *job, char *text, size_t size);
/* How many of its processes go around the runtime, and what of it; "" where none does. */
char *sw_cli_outside(const json_t *job, char *text, size_t size);
char *sw_cli_trespass(const json_t *job, char *text, size_t size);
/* "30 %", or when it works beside guaranteed jobs; "" for all of the time, or
 * where it is not known. */
char *sw_cli_gpu_time(const json_t *job, char *text, size_t size);
/* "312 ms/it"; "" where it is not known. */
char *sw_cli_iteration(const json_t *job, char *text, size_t size);
/* "1.06x of the 12 ms/it that it takes alone"; "": not known. */
char *sw_cli_slowdown(const json_t *job, char *text, size_t size);

/* ---- how a GPU does, in words, of the controller's answer about nodes; "-" where it is not known,
 * or not yet. Each returns `text` */
/* "37%", of its time and of its memory. */
char *sw_cli_device_busy(const json_t *gpu, char *text, size_t size);
char *sw_cli_device_filled(const json_t *gpu, char *text, size_t size);
/* "312W"; no GPU that is on draws nothing. */
char *sw_cli_device_power(const json_t *gpu, char *text, size_t size);
/* "41C" */
/* Why it takes no jobs, or what shares it with them: "stranger: ann's train (pid
 * 7, 3 GiB)"; "": nothing. */
char *sw_cli_device_shut(const json_t *gpu, char *text, size_t size);
char *sw_cli_device_heat(const json_t *gpu, char *text, size_t size);

/* ---- printing */
/* "1-02:03:04", "2:03:04", "0:05": as squeue writes times. */
char *sw_cli_elapsed(int64_t seconds, char buffer[32]);
/* "2026-10-04T15:00:00", local time; "-" for null. */
char *sw_cli_local_time(const char *rfc3339, char buffer[32]);
/* What the controller says of a job, with the moments in it as local time. NULL: out of
 * memory; the caller frees. */
char *sw_cli_local_sentence(const char *text);
/* One line. */
int sw_cli_print_json(const json_t *value, struct sw_err *err);
/* Lengthens a query ("state=PD&", NULL: none yet) by a parameter; a value of NULL leaves it as it
 * is, but never NULL. The caller frees *query. */
int sw_cli_query_add(char **query, const char *name, const char *value, struct sw_err *err);

/* A table: cells are added row by row, columns are as wide as they need. */
struct sw_cli_column {
	const char *name;
	bool right;
	unsigned most; /* columns of the terminal; 0: no bound */
};
struct sw_cli_rows {
	const struct sw_cli_column *columns;
	size_t column_count;
	SW_VEC(char *) cells;
};
/* Text from outside is cleaned. 0 or SW_ENOMEM. */
int sw_cli_rows_add(struct sw_cli_rows *rows, const char *cell);
int sw_cli_rows_addf(struct sw_cli_rows *rows, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* `below`: nothing but the rows, under headings printed before. */
void sw_cli_rows_print(const struct sw_cli_rows *rows, FILE *out, bool headings);
void sw_cli_rows_release(struct sw_cli_rows *rows);

/* ---- waiting */
/* Waits until the job has ended, through restarts of the controller. */
int sw_cli_wait_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err);
/* Looks at the job, as soon as the controller answers. */
int sw_cli_await_job(struct sw_client *client, uint64_t id, json_t **ret_job, struct sw_err *err);
/* Waits until a job that is on its way to other GPUs is there, or is not. *job is what was heard of
 * it last, and is replaced. */
int sw_cli_wait_move(struct sw_client *client, uint64_t id, json_t **job, struct sw_err *err);
/* Copies the job's log to standard output; `follow`: until it has ended. *offset: where to
 * begin, and how far it came. */
int sw_cli_copy_log(struct sw_client *client, uint64_t id, const char *query, bool follow, int64_t *offset, struct sw_err *err);

#endif
