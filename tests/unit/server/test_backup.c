/* The backup of the journal under the server: whole, while jobs are submitted; for
 * operators; one at a time. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/care.h"
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

static const char job[] = "{\"command\": [\"x\"], \"hold\": true}";

/* Aim: a backup that is made between submits is a journal by itself, with every job whose client
 * had heard its number before. */
static void test_whole(void **state)
{
	(void)state;
	struct sw_journal_report report;
	struct sw_err err = {0};
	char path[160];
	for (int i = 0; i < 30; i++)
		submit(&served, job);
	int fd = dial(&served);
	say_text(fd, "GET /v1/journal/backup HTTP/1.1\r\nHost: x\r\n\r\n");
	for (int i = 0; i < 10; i++)
		submit(&served, job);
	struct reply reply = hear(fd);
	close(fd);
	assert_int_equal(reply.status, 200);
	snprintf(path, sizeof path, "%s/copy.db", served.folder);
	FILE *file = fopen(path, "we");
	assert_int_equal(fwrite(reply.body, 1, reply.size, file), reply.size);
	fclose(file);
	reply_free(&reply);
	if (sw_journal_check(path, NULL, &report, &err) < 0)
		fail_msg("%s: %s", err.fact, err.detail);
	assert_string_equal(report.damage, "");
	assert_int_equal(report.bad_count, 0);
	assert_in_range(report.last, 30, 40);
	/* It goes on. */
	assert_int_equal(submit(&served, job), 41);
}

/* Aim: a user hears no; a client that leaves in the middle leaves nothing behind, and
 * the next backup is made. */
static void test_who_and_when(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		submit(&served, job);
	int fd = dial_tcp(&served);
	struct reply reply = ask(fd, "GET", "/v1/journal/backup", SERVED_STRANGER, NULL);
	assert_int_equal(reply.status, 403);
	reply_free(&reply);
	close(fd);
	for (int round = 0; round < 5; round++) {
		fd = dial(&served);
		say_text(fd, "GET /v1/journal/backup HTTP/1.1\r\nHost: x\r\n\r\n");
		close(fd);
	}
	/* One at a time: the controller may still be busy with one of them. */
	for (int i = 0; i < 500; i++) {
		fd = dial(&served);
		reply = ask(fd, "GET", "/v1/journal/backup", NULL, NULL);
		close(fd);
		int status = reply.status;
		assert_true(status == 200 || status == 503);
		reply_free(&reply);
		if (status == 200)
			break;
		usleep(10000);
		assert_true(i < 499);
	}
	char line[200];
	snprintf(line, sizeof line, "ls %s | grep -q backup-", served.folder);
	assert_int_not_equal(system(line), 0);
	served_stop(&served);
	served_start(&served);
	assert_int_equal(submit(&served, job), 21);
}

/* Aim: a controller that is stopped while a backup is under way ends well. */
static void test_stopped(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		submit(&served, job);
	int fd = dial(&served);
	say_text(fd, "GET /v1/journal/backup HTTP/1.1\r\nHost: x\r\n\r\n");
	served_stop(&served);
	close(fd);
	served_start(&served);
	assert_int_equal(submit(&served, job), 21);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_whole), TEST(test_who_and_when), TEST(test_stopped)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
