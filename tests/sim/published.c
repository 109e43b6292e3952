#include "published.h"

#include <archive.h>
#include <archive_entry.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"

#define LOG_LIMIT (16u << 20)

const char *sw_published_folder(void)
{
	const char *folder = getenv("SHAREWELL_SHARED");
	if (folder == NULL)
		folder = SW_SOURCE_DIR "/../shared";
	if (access(folder, R_OK | X_OK) == 0)
		return folder;
	printf("skipped: no published data in '%s'; set SHAREWELL_SHARED to where it is\n", folder);
	return NULL;
}

/* ---- the muri world ---- */

int64_t sw_published_overhead_s(const char *model, uint32_t gpus)
{
	static const struct {
		const char *model;
		uint8_t seconds[6]; /* for 1, 2, 4, 8, 16, 32 GPUs */
	} table[] = {
		{"vgg16", {7, 7, 8, 9, 9, 10}},	    {"vgg19", {7, 7, 8, 9, 10, 10}},
		{"resnet18", {4, 5, 5, 7, 7, 7}},   {"shufflenet_v2_x1_0", {4, 4, 5, 5, 7, 8}},
		{"bert", {10, 10, 10, 10, 10, 10}}, {"gpt2", {10, 10, 10, 10, 10, 10}},
		{"a2c", {38, 39, 39, 46, 46, 46}},  {"dqn", {5, 5, 6, 6, 8, 8}},
	};
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		for (unsigned column = 0; column < 6; column++)
			if (gpus == 1u << column && strcmp(model, table[i].model) == 0)
				return table[i].seconds[column];
	return 10;
}

struct sw_naive_job *sw_published_jobs(const struct sw_trace *trace)
{
	struct sw_naive_job *jobs = calloc(trace->jobs.count + 1, sizeof jobs[0]);
	for (size_t i = 0; jobs != NULL && i < trace->jobs.count; i++) {
		const struct sw_trace_job *job = &trace->jobs.items[i];
		jobs[i] = (struct sw_naive_job){.submit_ns = job->submit_ns, .work_ns = job->duration_ns, .gpus = job->gpus};
		if (job->iteration_ns == 0)
			continue;
		jobs[i].work_ns = (int64_t)(((__int128)job->iterations * job->iteration_ns * 1015 + 500) / 1000);
		jobs[i].overhead_ns = sw_published_overhead_s(sw_trace_string(trace, job->model), job->gpus) * SW_NS_PER_S;
	}
	return jobs;
}

/* ---- job logs ---- */

static void archive_closep(struct archive **owner)
{
	archive_read_free(*owner);
}

/* The decompressed text of `path`, terminated. */
static int read_compressed(const char *path, char **ret_text, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *text = malloc(LOG_LIMIT + 1);
	SW_CLEANUP(archive_closep) struct archive *archive = archive_read_new();
	if (text == NULL || archive == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read '%s'", path);
	archive_read_support_filter_all(archive);
	archive_read_support_format_raw(archive);
	struct archive_entry *entry;
	if (archive_read_open_filename(archive, path, 65536) != ARCHIVE_OK || archive_read_next_header(archive, &entry) != ARCHIVE_OK) {
		sw_err_set(err, SW_EIO, "cannot read '%s'", path);
		sw_err_detail(err, "%s", archive_error_string(archive));
		return SW_EIO;
	}
	la_ssize_t size = 0, got;
	while ((got = archive_read_data(archive, text + size, LOG_LIMIT - (size_t)size)) > 0)
		size += got;
	if (got < 0 || size == LOG_LIMIT)
		return sw_err_set(err, SW_EIO, "cannot read '%s'", path);
	text[size] = '\0';
	*ret_text = SW_TAKE(text);
	return 0;
}

/* The field of `line` that stands in the column which `header` calls `name`, as a
 * decimal times `scale`. */
static int parse_column(const char *header, const char *line, const char *name, int64_t scale, int64_t *ret_value)
{
	while (strcspn(header, ",\r\n") != strlen(name) || strncmp(header, name, strlen(name)) != 0) {
		header += strcspn(header, ",\r\n");
		line += strcspn(line, ",\r\n");
		if (*header++ != ',' || *line++ != ',')
			return SW_EINPUT;
	}
	return sw_parse_decimal(line, strcspn(line, ",\r\n"), scale, ret_value);
}

static int parse_life(const char *header, const char *line, struct sw_published_life *life)
{
	int r = parse_column(header, line, "job_id", 1, &life->id);
	r = r < 0 ? r : parse_column(header, line, "start_time", SW_NS_PER_S, &life->start_ns);
	r = r < 0 ? r : parse_column(header, line, "end_time", SW_NS_PER_S, &life->end_ns);
	r = r < 0 ? r : parse_column(header, line, "preempt", 1, &life->preemptions);
	return r < 0 ? r : parse_column(header, line, "promote", 1, &life->promotions);
}

int sw_published_lives(const char *folder, const char *name, struct sw_published_life **ret_lives, size_t *ret_count, struct sw_err *err)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/baselines/jobs/%s.csv.xz", folder, name);
	SW_CLEANUP(sw_freep) char *text = NULL;
	int r = read_compressed(path, &text, err);
	if (r < 0)
		return r;
	assert(text != NULL);
	size_t lines = 0, count = 0;
	for (const char *at = text; *at != '\0'; at++)
		lines += *at == '\n';
	SW_CLEANUP(sw_freep) struct sw_published_life *lives = calloc(lines + 1, sizeof lives[0]);
	if (lives == NULL)
		return sw_err_set(err, SW_ENOMEM, "cannot read '%s'", path);
	const char *line = text;
	while (line += strcspn(line, "\n"), *line != '\0' && *++line != '\0') {
		r = parse_life(text, line, &lives[count++]);
		if (r < 0) {
			sw_err_set(err, r, "cannot read '%s'", path);
			sw_err_detail(err, "line %zu is no line of a job log", count + 1);
			return r;
		}
	}
	*ret_lives = SW_TAKE(lives);
	*ret_count = count;
	return 0;
}
