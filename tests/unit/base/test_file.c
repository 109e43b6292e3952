/* Whole files: reading with a bound, and outputs that appear complete or not at all. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"

/* Each test works in a fresh folder that is the current one. */
static char folder[64];
static int home = -1;

static int enter_folder(void **state)
{
	(void)state;
	home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(folder, sizeof folder, "test-file-XXXXXX");
	return home < 0 || mkdtemp(folder) == NULL || chmod(folder, 0755) != 0 || chdir(folder) != 0;
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) != 0)
			assert_int_equal(unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR), 0);
	}
	closedir(dir);
}

static int leave_folder(void **state)
{
	(void)state;
	remove_all(".");
	int r = fchdir(home);
	close(home);
	return r != 0 || rmdir(folder) != 0;
}

static int count_entries(void)
{
	DIR *dir = opendir(".");
	assert_non_null(dir);
	int count = -2; /* "." and ".." */
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

static void put(const char *path, const void *bytes, size_t size)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void assert_content(const char *path, const char *expected)
{
	SW_CLEANUP(sw_freep) char *text = NULL;
	size_t size;
	assert_int_equal(sw_file_read(path, 1 << 20, &text, &size, NULL), 0);
	assert_int_equal(size, strlen(expected));
	assert_string_equal(text, expected);
}

static struct sw_output *open_output(const char *path)
{
	struct sw_output *output = NULL;
	struct sw_err err = {0};
	if (sw_output_open(path, &output, &err) != 0)
		fail_msg("%s: %s", err.fact, err.detail);
	return output;
}

/* A file is read to its last byte, zeros included, and terminated; sizes around the reading
 * step make no difference. */
static void test_read(void **state)
{
	(void)state;
	static const size_t sizes[] = {0, 1, 65535, 65536, 65537, 131072, 300001};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		SW_CLEANUP(sw_freep) char *bytes = malloc(sizes[i] + 1);
		assert_non_null(bytes);
		for (size_t j = 0; j < sizes[i]; j++)
			bytes[j] = (char)(j * 7 % 256);
		put("file", bytes, sizes[i]);
		SW_CLEANUP(sw_freep) char *text = NULL;
		size_t size = 1;
		assert_int_equal(sw_file_read("file", 300001, &text, &size, NULL), 0);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(text, bytes, size);
		assert_int_equal(text[size], '\0');
	}
}

/* A file of exactly the limit is read, one byte more is refused, and so are endless ones;
 * nothing is written then. */
static void test_read_limit(void **state)
{
	(void)state;
	put("file", "12345", 5);
	char *text = NULL;
	size_t size = 99;
	struct sw_err err = {0};
	assert_int_equal(sw_file_read("file", 4, &text, &size, &err), SW_ELIMIT);
	assert_string_equal(err.fact, "cannot read 'file'");
	assert_string_equal(err.detail, "it is longer than 4 bytes");
	assert_int_equal(sw_file_read("file", 0, &text, &size, NULL), SW_ELIMIT);
	assert_int_equal(sw_file_read("/dev/zero", 100000, &text, &size, NULL), SW_ELIMIT);
	assert_null(text);
	assert_int_equal(size, 99);
	assert_int_equal(sw_file_read("file", 5, &text, &size, NULL), 0);
	assert_string_equal(text, "12345");
	free(text);
	put("file", "", 0);
	assert_int_equal(sw_file_read("file", 0, &text, &size, NULL), 0);
	assert_int_equal(size, 0);
	free(text);
}

/* What cannot be read is named together with the reason. */
static void test_read_errors(void **state)
{
	(void)state;
	char *text = NULL;
	size_t size = 0;
	struct sw_err err = {0};
	assert_int_equal(sw_file_read("absent", 10, &text, &size, &err), SW_ENOTFOUND);
	assert_string_equal(err.fact, "cannot read 'absent'");
	assert_string_equal(err.detail, "No such file or directory");
	sw_err_clear(&err);
	assert_int_equal(sw_file_read(".", 10, &text, &size, &err), SW_EIO);
	assert_string_equal(err.detail, "Is a directory");
	assert_null(text);
}

/* "-" reads standard input. */
static void test_read_standard_input(void **state)
{
	(void)state;
	put("file", "from a pipe", 11);
	assert_non_null(freopen("file", "r", stdin));
	assert_content("-", "from a pipe");
}

/* Until it is committed an output leaves the target alone; then the target changes at once
 * and nothing else is left. */
static void test_commit_replaces(void **state)
{
	(void)state;
	put("target", "old", 3);
	struct sw_output *output = open_output("target");
	fputs("new content", sw_output_stream(output));
	fflush(sw_output_stream(output));
	assert_content("target", "old");
	assert_int_equal(sw_output_commit(output, NULL), 0);
	assert_content("target", "new content");
	assert_int_equal(count_entries(), 1);
}

/* A discarded output leaves no trace, whether the target was there or not. */
static void test_discard(void **state)
{
	(void)state;
	{
		SW_CLEANUP(sw_output_discardp) struct sw_output *left = open_output("target");
		fputs("half", sw_output_stream(left));
		assert_int_equal(count_entries(), 1);
	}
	assert_int_equal(count_entries(), 0);
	put("target", "old", 3);
	struct sw_output *output = open_output("target");
	fputs("half", sw_output_stream(output));
	sw_output_discard(output);
	assert_content("target", "old");
	assert_int_equal(count_entries(), 1);
}

/* Two outputs to one name do not meet; the later commit wins with its whole text. */
static void test_two_writers(void **state)
{
	(void)state;
	struct sw_output *one = open_output("target"), *two = open_output("target");
	fputs("one one one", sw_output_stream(one));
	fputs("two", sw_output_stream(two));
	assert_int_equal(sw_output_commit(one, NULL), 0);
	assert_content("target", "one one one");
	assert_int_equal(sw_output_commit(two, NULL), 0);
	assert_content("target", "two");
	assert_int_equal(count_entries(), 1);
}

/* A new file gets the mode that the umask leaves; an old one keeps its own. */
static void test_mode(void **state)
{
	(void)state;
	struct stat info;
	mode_t before = umask(027);
	assert_int_equal(sw_output_commit(open_output("fresh"), NULL), 0);
	put("kept", "", 0);
	assert_int_equal(chmod("kept", 0604), 0);
	assert_int_equal(sw_output_commit(open_output("kept"), NULL), 0);
	umask(before);
	assert_int_equal(stat("fresh", &info), 0);
	assert_int_equal(info.st_mode & 0777, 0640);
	assert_int_equal(stat("kept", &info), 0);
	assert_int_equal(info.st_mode & 0777, 0604);
}

/* A symbolic link stays one; the file behind it changes. */
static void test_symbolic_link(void **state)
{
	(void)state;
	put("behind", "old", 3);
	assert_int_equal(symlink("behind", "link"), 0);
	struct sw_output *output = open_output("link");
	fputs("new", sw_output_stream(output));
	assert_int_equal(sw_output_commit(output, NULL), 0);
	struct stat info;
	assert_int_equal(lstat("link", &info), 0);
	assert_true(S_ISLNK(info.st_mode));
	assert_content("behind", "new");
}

/* An output in a folder that does not exist or is no folder, or onto a folder, is refused when it
 * is opened, with the reason. */
static void test_open_errors(void **state)
{
	(void)state;
	struct sw_output *output = NULL;
	struct sw_err err = {0};
	assert_int_equal(sw_output_open("absent/target", &output, &err), SW_ENOTFOUND);
	assert_string_equal(err.fact, "cannot write 'absent/target'");
	assert_string_equal(err.detail, "No such file or directory");
	assert_string_equal(err.hint, "The folder must exist.");
	put("file", "", 0);
	assert_int_equal(sw_output_open("file/target", &output, NULL), SW_EIO);
	assert_int_equal(sw_output_open(".", &output, NULL), SW_EIO);
	assert_int_equal(sw_output_open("", &output, NULL), SW_ENOTFOUND);
	assert_null(output);
	assert_int_equal(count_entries(), 1);
}

/* What sw_output_open() says to a user that is neither root nor the owner of the folder,
 * which has the given mode. */
static int open_as_stranger(const char *path, mode_t folder_mode, struct sw_err *err)
{
	uid_t user = geteuid();
	assert_int_equal(chmod(".", folder_mode), 0);
	/* Root may write anything, so it becomes user nobody for a moment. */
	if (user == 0 && seteuid(65534) != 0)
		skip();
	struct sw_output *output = NULL;
	int r = sw_output_open(path, &output, err);
	assert_int_equal(seteuid(user), 0);
	assert_int_equal(chmod(".", 0755), 0);
	assert_null(output);
	return r;
}

/* A folder that we may not write is refused when the output is opened, and so is a file, although a
 * rename could replace it. */
static void test_unwritable(void **state)
{
	(void)state;
	put("locked", "old", 3);
	assert_int_equal(chmod("locked", 0444), 0);
	struct sw_err err = {0};
	assert_int_equal(open_as_stranger("target", 0555, &err), SW_EIO);
	assert_string_equal(err.detail, "Permission denied");
	sw_err_clear(&err);
	assert_int_equal(open_as_stranger("locked", 0777, &err), SW_EIO);
	assert_string_equal(err.detail, "Permission denied");
	assert_content("locked", "old");
	assert_int_equal(count_entries(), 1);
}

/* When the disk is full while writing, commit fails, the target keeps its old content, and the
 * temporary file is gone. */
static void test_full_while_writing(void **state)
{
	(void)state;
	put("target", "old", 3);
	struct rlimit before, small;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);

	struct sw_output *output = open_output("target");
	for (int i = 0; i < 100000; i++)
		fputs("more and more", sw_output_stream(output));
	struct sw_err err = {0};
	int r = sw_output_commit(output, &err);

	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);
	assert_int_equal(r, SW_EIO);
	assert_string_equal(err.fact, "cannot write 'target'");
	assert_true(err.detail[0] != '\0');
	assert_content("target", "old");
	assert_int_equal(count_entries(), 1);
}

/* Devices are written in place, and a full one is an error at commit, however little was
 * written. */
static void test_devices(void **state)
{
	(void)state;
	struct sw_output *output = open_output("/dev/null");
	fputs("gone", sw_output_stream(output));
	assert_int_equal(sw_output_commit(output, NULL), 0);

	struct sw_err err = {0};
	output = open_output("/dev/full");
	fputs("x", sw_output_stream(output));
	assert_int_equal(sw_output_commit(output, &err), SW_EIO);
	assert_string_equal(err.fact, "cannot write '/dev/full'");
	assert_string_equal(err.detail, "No space left on device");

	/* So much that stdio meets the error long before the commit. */
	output = open_output("/dev/full");
	for (int i = 0; i < 100000; i++)
		fputs("more and more", sw_output_stream(output));
	assert_int_equal(sw_output_commit(output, NULL), SW_EIO);
	assert_int_equal(access("/dev/full", F_OK), 0);

	/* And one of which nothing is left in the buffer when the commit comes. */
	sw_err_clear(&err);
	output = open_output("/dev/full");
	setvbuf(sw_output_stream(output), NULL, _IONBF, 0);
	fputs("x", sw_output_stream(output));
	assert_int_equal(sw_output_commit(output, &err), SW_EIO);
	assert_string_equal(err.detail, "a write failed; the disk may be full");
}

/* "-" writes to standard output, leaves it open, and reports a full one. */
static void test_standard_output(void **state)
{
	(void)state;
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		int steps = 0;
		struct sw_output *output = NULL;
		if (freopen("captured", "w", stdout) != NULL && sw_output_open("-", &output, NULL) == 0) {
			fputs("one ", sw_output_stream(output));
			steps += sw_output_commit(output, NULL) == 0;
			steps += fputs("two", stdout) >= 0 && fflush(stdout) == 0;
		}
		if (freopen("/dev/full", "w", stdout) != NULL && sw_output_open("-", &output, NULL) == 0) {
			fputs("three", sw_output_stream(output));
			steps += sw_output_commit(output, NULL) == SW_EIO;
		}
		_exit(steps);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	assert_content("captured", "one two");
}

#define in_folder(test) cmocka_unit_test_setup_teardown(test, enter_folder, leave_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_folder(test_read),
		in_folder(test_read_limit),
		in_folder(test_read_errors),
		in_folder(test_read_standard_input),
		in_folder(test_commit_replaces),
		in_folder(test_discard),
		in_folder(test_two_writers),
		in_folder(test_mode),
		in_folder(test_symbolic_link),
		in_folder(test_open_errors),
		in_folder(test_unwritable),
		in_folder(test_full_while_writing),
		in_folder(test_devices),
		in_folder(test_standard_output),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
