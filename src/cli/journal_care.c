/* sharewell journal check, repair, backup, restore: taking care of the file
 * that a cluster lives in. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/connect.h"
#include "cli/live.h"
#include "cli/places.h"
#include "cli/progress.h"
#include "store/care.h"

struct values {
	const char *state, *controller, *file;
	bool all_users, json, force, quiet;
};

/* ---- how far it is */

struct watch {
	struct sw_cli_progress progress;
	bool shows, begun;
};

static bool look(void *user, uint64_t done, uint64_t total)
{
	struct watch *watch = user;
	if (watch->shows && !watch->begun)
		sw_cli_progress_start(&watch->progress, total);
	watch->begun = true;
	watch->progress.unit = "records";
	watch->progress.total = total;
	if (watch->shows)
		sw_cli_progress_draw(&watch->progress, done, "");
	return true;
}

static void wipe(struct watch *watch)
{
	if (watch->shows && watch->begun)
		sw_cli_progress_end(&watch->progress);
}

static struct watch watch_for(const struct values *values)
{
	return (struct watch){.shows = !values->quiet && !values->json && isatty(STDERR_FILENO) == 1};
}

/* ---- what is said */

static const char *plural(uint64_t count, const char *one, const char *more)
{
	return count == 1 ? one : more;
}

static int print_json(const char *path, const struct sw_journal_report *report, struct sw_err *err)
{
	json_t *bad = json_array();
	for (uint64_t i = 0; i < report->bad_count && i < SW_JOURNAL_SHOWN; i++)
		json_array_append_new(bad,
				      json_pack("{s:I, s:s}", "record", (json_int_t)report->bad[i].seq, "reason", report->bad[i].reason));
	json_t *value = json_pack(
		"{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:s, s:s, s:s, s:I, s:b, s:o}", "journal", path, "sound",
		report->sound, "usable", report->usable, "bytes", (json_int_t)report->bytes, "first", (json_int_t)report->first, "last",
		(json_int_t)report->last, "records", (json_int_t)report->records, "unreadable", (json_int_t)report->bad_count, "missing",
		(json_int_t)report->lost, "aside", (json_int_t)report->aside, "snapshots", (int)report->snapshots, "snapshots_damaged",
		(int)report->snapshots_bad, "snapshot", (json_int_t)report->snapshot, "damage", report->damage, "mark", report->mark,
		"kept", report->kept, "numbers_above", (json_int_t)report->floor, "numbers_unsure", report->unsure, "bad", bad);
	int r = value != NULL ? sw_cli_print_json(value, err) : sw_err_set(err, SW_ENOMEM, "out of memory");
	json_decref(value);
	return r;
}

static void print_report(const char *path, const struct sw_journal_report *report)
{
	printf("%s: %s\n", path, report->sound ? "sound" : report->usable ? "damaged" : "damaged beyond repair");
	printf("  records    %" PRIu64 " can be read, %" PRIu64 " to %" PRIu64 "\n", report->records, report->first, report->last);
	printf("  snapshots  %u%s", report->snapshots, report->snapshots > 0 ? "" : "\n");
	if (report->snapshots > 0)
		printf(", the last covers the records up to %" PRIu64 "\n", report->snapshot);
	if (report->snapshots_bad > 0)
		printf("  damaged    %u %s\n", report->snapshots_bad, plural(report->snapshots_bad, "snapshot", "snapshots"));
	if (report->damage[0] != '\0')
		printf("  damaged    %s\n", report->damage);
	if (report->bad_count > 0)
		printf("  unreadable %" PRIu64 " %s\n", report->bad_count, plural(report->bad_count, "record", "records"));
	for (uint64_t i = 0; i < report->bad_count && i < SW_JOURNAL_SHOWN; i++)
		printf("               record %" PRIu64 ": %s\n", report->bad[i].seq, report->bad[i].reason);
	if (report->bad_count > SW_JOURNAL_SHOWN)
		printf("               and %" PRIu64 " more\n", report->bad_count - SW_JOURNAL_SHOWN);
	if (report->lost > 0)
		printf("  missing    %" PRIu64 " %s behind the last: the mark knows of %s\n", report->lost,
		       plural(report->lost, "record", "records"), plural(report->lost, "it", "them"));
	if (report->mark[0] != '\0')
		printf("  mark       %s\n", report->mark);
	if (report->aside > 0)
		printf("  aside      %" PRIu64 " %s set aside before\n", report->aside,
		       plural(report->aside, "record was", "records were"));
}

static int print_aside(void *user, const struct sw_journal_aside *aside)
{
	(void)user;
	printf("               record %" PRIu64 " (kind %u): %s\n", aside->seq, aside->kind, aside->reason);
	return 0;
}

static void print_asides(const char *path)
{
	struct sw_journal *journal = NULL;
	if (sw_journal_open(path, &journal, NULL) < 0)
		return;
	sw_journal_asides(journal, SW_JOURNAL_SHOWN, print_aside, NULL, NULL);
	sw_journal_close(journal);
}

static void print_numbers(const struct sw_journal_report *report)
{
	if (report->unsure)
		puts("Job numbers go on with a gap, so that none is used twice: which ones were given out cannot be told.");
	else if (report->floor > 0)
		printf("Job numbers go on above %" PRIu64 ", so that none is used twice.\n", report->floor);
}

static int find_journal(const struct values *values, struct sw_cli_places *ret_places, struct sw_err *err)
{
	return sw_cli_places(values->state, values->all_users, ret_places, err);
}

/* ---- check */

static int check(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	struct sw_journal_report report;
	struct watch watch = watch_for(values);
	const struct sw_journal_care care = {look, &watch};
	int r = find_journal(values, &places, err);
	const char *path = values->file != NULL ? values->file : places.journal;
	r = r < 0 ? r : sw_journal_check(path, &care, &report, err);
	wipe(&watch);
	if (r < 0)
		return r;
	if (values->json) {
		r = print_json(path, &report, err);
		return r < 0 ? r : report.sound ? 0 : 1;
	}
	print_report(path, &report);
	if (report.aside > 0 && report.sound)
		print_asides(path);
	if (!report.sound)
		puts(report.usable ? "'sharewell journal repair' makes a journal of all that can be read, and keeps this one."
				   : "Put a backup in its place: 'sharewell journal restore'.");
	return report.sound ? 0 : 1;
}

#define PLACE_OPTIONS                                                                                 \
	{"state",                                                                                     \
	 .kind = SW_CLI_TEXT,                                                                         \
	 .is_path = true,                                                                             \
	 .argument = "DIR",                                                                           \
	 .about = "as it was given to the controller",                                                \
	 .offset = offsetof(struct values, state)},                                                   \
		{"all-users", .about = "of the controller that serves every user of this machine",    \
		 .offset = offsetof(struct values, all_users)},                                       \
		{"quiet", 'q', .about = "no progress bar", .offset = offsetof(struct values, quiet)}, \
	{                                                                                             \
		"json", .about = "as JSON", .offset = offsetof(struct values, json)                   \
	}

static const struct sw_cli_option check_options[] = {PLACE_OPTIONS};
static const struct sw_cli_option check_operands[] = {
	{"FILE", .kind = SW_CLI_TEXT, .is_path = true, .about = "a journal or a backup; that of the state folder by default",
	 .offset = offsetof(struct values, file)},
};
static const struct sw_cli_example check_examples[] = {
	{"sharewell journal check", "the journal of your own cluster, while it is down"},
	{"sharewell journal check /backup/monday.db", "whether a backup is whole"},
};
const struct sw_cli_command sw_cli_journal_check = {
	.name = "journal check",
	.about = "read a whole journal and say what is amiss",
	.text = "Changes nothing. The journal of a running controller is in use: make a backup and check that. The exit status is 1 where "
		"something is "
		"amiss.",
	SW_CLI_OPTIONS(check_options),
	SW_CLI_OPERANDS(check_operands),
	SW_CLI_EXAMPLES(check_examples),
	.values_size = sizeof(struct values),
	.run = check,
};

/* ---- repair */

static int repair(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	struct sw_journal_report report;
	struct watch watch = watch_for(values);
	const struct sw_journal_care care = {look, &watch};
	int r = find_journal(values, &places, err);
	const char *path = values->file != NULL ? values->file : places.journal;
	r = r < 0 ? r : sw_journal_repair(path, &care, &report, err);
	wipe(&watch);
	if (r < 0)
		return r;
	if (values->json)
		return print_json(path, &report, err);
	if (report.sound) {
		printf("%s: sound, nothing to repair\n", path);
		return 0;
	}
	print_report(path, &report);
	printf("Repaired. The old file is kept as %s.\n", report.kept);
	if (report.bad_count + report.lost > 0)
		printf("Lost: what %" PRIu64 " %s said.\n", report.bad_count + report.lost,
		       plural(report.bad_count + report.lost, "record", "records"));
	print_numbers(&report);
	return 0;
}

static const struct sw_cli_example repair_examples[] = {
	{"sharewell journal repair", "after the controller refused to start with its journal"},
};
const struct sw_cli_command sw_cli_journal_repair = {
	.name = "journal repair",
	.about = "make a journal of all that can be read of a damaged one",
	.text = "Writes a new file beside the damaged one and then puts it in place; the old one is kept under another name. Records that "
		"cannot be read "
		"are set aside and named. Where records are missing at the end, it goes on without them. Where nothing is amiss, nothing "
		"is done. The "
		"controller must be down.",
	SW_CLI_OPTIONS(check_options),
	SW_CLI_OPERANDS(check_operands),
	SW_CLI_EXAMPLES(repair_examples),
	.values_size = sizeof(struct values),
	.run = repair,
};

/* ---- backup */

struct download {
	FILE *file;
	bool failed;
};

static bool take(void *user, const char *bytes, size_t size)
{
	struct download *download = user;
	download->failed = fwrite(bytes, 1, size, download->file) != size;
	return !download->failed;
}

static int fail_file(const char *path, struct sw_err *err)
{
	int error = errno;
	sw_err_set(err, SW_EIO, "cannot write '%.200s'", path);
	sw_err_detail(err, "%s", strerror(error));
	return SW_EIO;
}

/* What the controller sends, under a name for the time being. */
static int fetch(struct sw_client *client, const char *partial, struct sw_err *err)
{
	int fd = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct download download = {.file = fd >= 0 ? fdopen(fd, "w") : NULL};
	if (download.file == NULL) {
		if (fd >= 0)
			close(fd);
		return fail_file(partial, err);
	}
	int r = sw_client_stream(client, "/v1/journal/backup", take, &download, err);
	if (r == 0 && (download.failed || fflush(download.file) != 0 || fsync(fd) != 0))
		r = fail_file(partial, err);
	if (fclose(download.file) != 0 && r == 0)
		r = fail_file(partial, err);
	return r;
}

static int check_copy(const char *partial, struct sw_journal_report *ret_report, struct sw_err *err)
{
	struct sw_err words = {0};
	char lock[4200];
	int r = sw_journal_check(partial, NULL, ret_report, &words);
	snprintf(lock, sizeof lock, "%.4000s.lock", partial);
	unlink(lock);
	bool whole = r == 0 && ret_report->damage[0] == '\0' && ret_report->usable;
	/* A copy has no mark, and says so. */
	if (whole && ret_report->bad_count == 0)
		return 0;
	if (whole) {
		sw_err_set(err, SW_EINPUT, "the journal is damaged, and its backup would be");
		sw_err_detail(err, "record %" PRIu64 ": %s", ret_report->bad[0].seq, ret_report->bad[0].reason);
		sw_err_hint(
			err,
			"With the controller down, 'sharewell journal check' says what is left, and 'sharewell journal repair' saves it.");
		return SW_EINPUT;
	}
	sw_err_set(err, SW_EIO, "the backup did not arrive whole");
	sw_err_detail(err, "%s", r < 0 ? words.fact : ret_report->damage);
	sw_err_hint(err, "The log of the controller may say why. Try again.");
	return SW_EIO;
}

static int back_up(const struct values *values, struct sw_journal_report *ret_report, struct sw_err *err)
{
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	SW_CLEANUP(sw_freep) char *partial = NULL;
	struct sw_cli_places places;
	struct sw_err words = {0};
	struct watch watch = watch_for(values);
	const struct sw_journal_care care = {look, &watch};
	if (access(values->file, F_OK) == 0) {
		sw_err_set(err, SW_EINPUT, "'%.200s' exists already", values->file);
		sw_err_hint(err, "Give the backup another name.");
		return SW_EINPUT;
	}
	if (asprintf(&partial, "%s.partial", values->file) < 0) {
		partial = NULL;
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	}
	unlink(partial);
	int r = values->state == NULL && !values->all_users ? sw_cli_connect(values->controller, &client, &words) : SW_ENOTFOUND;
	if (r == 0)
		r = fetch(client, partial, &words);
	r = r < 0 ? r : check_copy(partial, ret_report, &words);
	if (r == 0 && rename(partial, values->file) != 0)
		r = fail_file(values->file, &words);
	if (r < 0)
		unlink(partial);
	bool down = values->controller == NULL && (client == NULL || sw_client_is_away(client));
	if (r < 0 && down) {
		/* No controller: the file itself. */
		r = find_journal(values, &places, err);
		r = r < 0 ? r : sw_journal_copy(places.journal, values->file, &care, err);
		wipe(&watch);
		return r < 0 ? r : check_copy(values->file, ret_report, err);
	}
	if (r < 0 && err != NULL)
		*err = words;
	return r;
}

static int backup(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_journal_report report = {0};
	int r = back_up(values, &report, err);
	if (r < 0)
		return r;
	if (values->json)
		return print_json(values->file, &report, err);
	printf("%s: %" PRIu64 " bytes, records up to %" PRIu64 "\n", values->file, report.bytes, report.last);
	return 0;
}

static const struct sw_cli_option backup_options[] = {
	{"controller", .kind = SW_CLI_TEXT, .argument = "URL", .about = "where the controller is, as for other commands",
	 .offset = offsetof(struct values, controller)},
	PLACE_OPTIONS,
};
static const struct sw_cli_option backup_operands[] = {
	{"FILE", .kind = SW_CLI_TEXT, .is_path = true, .required = true, .about = "where the copy goes; it must not exist yet",
	 .offset = offsetof(struct values, file)},
};
static const struct sw_cli_example backup_examples[] = {
	{"sharewell journal backup /backup/monday.db", "while the cluster runs"},
};
const struct sw_cli_command sw_cli_journal_backup = {
	.name = "journal backup",
	.about = "copy the journal, also while the controller runs",
	.text = "Operators only. The copy is one file, checked before it gets its name. Jobs and other users are not held up meanwhile. "
		"Where no controller "
		"runs, the file in the state folder is copied.",
	SW_CLI_OPTIONS(backup_options),
	SW_CLI_OPERANDS(backup_operands),
	SW_CLI_EXAMPLES(backup_examples),
	.values_size = sizeof(struct values),
	.run = backup,
};

/* ---- restore */

static int restore(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	struct sw_journal_report report;
	struct watch watch = watch_for(values);
	const struct sw_journal_care care = {look, &watch};
	int r = find_journal(values, &places, err);
	r = r < 0 ? r : sw_cli_places_make(&places, values->all_users, err);
	r = r < 0 ? r : sw_journal_restore(values->file, places.journal, values->force, &care, &report, err);
	wipe(&watch);
	if (r < 0)
		return r;
	if (values->json)
		return print_json(places.journal, &report, err);
	printf("Restored %s, with the records up to %" PRIu64 ".\n", places.journal, report.last);
	if (report.kept[0] != '\0')
		printf("The old file is kept as %s.\n", report.kept);
	print_numbers(&report);
	return 0;
}

static const struct sw_cli_option restore_options[] = {
	{"force", .about = "also where there is a journal already, which is then kept under another name",
	 .offset = offsetof(struct values, force)},
	PLACE_OPTIONS,
};
static const struct sw_cli_option restore_operands[] = {
	{"FILE", .kind = SW_CLI_TEXT, .is_path = true, .required = true, .about = "the backup", .offset = offsetof(struct values, file)},
};
static const struct sw_cli_example restore_examples[] = {
	{"sharewell journal restore /backup/monday.db --force", "go back to Monday; the controller must be down"},
};
const struct sw_cli_command sw_cli_journal_restore = {
	.name = "journal restore",
	.about = "put a backup in place of the journal",
	.text = "The controller must be down. What happened since the backup is lost: jobs that were submitted since then are not known "
		"any more. Their "
		"numbers are not used again.",
	SW_CLI_OPTIONS(restore_options),
	SW_CLI_OPERANDS(restore_operands),
	SW_CLI_EXAMPLES(restore_examples),
	.values_size = sizeof(struct values),
	.run = restore,
};
