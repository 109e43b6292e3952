/* Processes kept to some GPUs by a program of the kernel: what the program says, by an interpreter
 * of the few instructions that it has, and what the kernel makes of it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/cgroup.h"
#include "agent/device_group.h"
#include "agent/supervisor/state.h"

/* What the program answers; fails on an instruction that it should not have, on a jump out of it or
 * back, and where it does not end. */
static uint64_t interpret(const struct bpf_insn *program, size_t size, const struct bpf_cgroup_dev_ctx *context)
{
	uint64_t registers[11] = {0};
	for (size_t at = 0; at < size; at++) {
		const struct bpf_insn *it = &program[at];
		uint64_t *to = &registers[it->dst_reg];
		bool jumps = false;
		switch (it->code) {
		case BPF_LDX | BPF_MEM | BPF_W:
			assert_true(it->src_reg == 1 && it->off >= 0 && (size_t)it->off + 4 <= sizeof *context && it->off % 4 == 0);
			*to = *(const uint32_t *)(const void *)((const char *)context + it->off);
			break;
		case BPF_ALU64 | BPF_AND | BPF_K:
			*to &= (uint64_t)it->imm;
			break;
		case BPF_ALU64 | BPF_MOV | BPF_K:
			*to = (uint64_t)it->imm;
			break;
		case BPF_JMP | BPF_JNE | BPF_K:
			jumps = *to != (uint64_t)it->imm;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			jumps = *to == (uint64_t)it->imm;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			jumps = *to >= (uint64_t)it->imm;
			break;
		case BPF_JMP | BPF_EXIT:
			return registers[0];
		default:
			fail_msg("instruction %zu has code %#x", at, it->code);
		}
		assert_true(it->off >= 0 && (!jumps || at + 1 + (size_t)it->off < size));
		at += jumps ? (size_t)it->off : 0;
	}
	fail_msg("it does not end");
	return 0;
}

/* Aim: of all devices only the files of other GPUs are refused, however many GPUs the job has. */
static void test_program(void **state)
{
	(void)state;
	static const uint32_t sets[][3] = {{0}, {3}, {0, 1, 2}, {253, 7, 0}};
	static const size_t counts[] = {0, 1, 3, 2};
	for (size_t s = 0; s < 4; s++) {
		struct bpf_insn program[SW_DEVICE_PROGRAM_MAX];
		size_t size = sw_device_assemble(sets[s], counts[s], program);
		assert_true(size <= SW_DEVICE_PROGRAM_MAX);
		for (uint32_t type = 1; type <= 2; type++)
			for (uint32_t access = 0; access < 8; access++)
				for (uint32_t major = 190; major < 240; major++)
					for (uint32_t minor = 0; minor < 300; minor++) {
						struct bpf_cgroup_dev_ctx context = {access << 16 | type, major, minor};
						bool own = false;
						for (size_t i = 0; i < counts[s]; i++)
							own |= sets[s][i] == minor;
						bool may = type != BPF_DEVCG_DEV_CHAR || major != 195 || minor >= 254 || own;
						assert_int_equal(interpret(program, size, &context), may);
					}
	}
	uint32_t many[100] = {0};
	struct bpf_insn program[SW_DEVICE_PROGRAM_MAX];
	assert_true(sw_device_assemble(many, 100, program) <= SW_DEVICE_PROGRAM_MAX);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Aim: the device file of a GPU is found by its UUID, as the driver lists them. */
static void test_minor(void **state)
{
	(void)state;
	char folder[] = "/tmp/test_device_XXXXXX", path[100];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/0000:01:00.0", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/0000:01:00.0/information", folder);
	write_file(path, "Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\nGPU UUID: \t GPU-aa\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
	snprintf(path, sizeof path, "%s/0000:02:00.0", folder);
	mkdir(path, 0700);
	snprintf(path, sizeof path, "%s/0000:02:00.0/information", folder);
	write_file(path, "GPU UUID: \t GPU-bb\nDevice Minor: \t 0\n");
	assert_int_equal(sw_device_minor(folder, "GPU-aa"), 3);
	assert_int_equal(sw_device_minor(folder, "GPU-bb"), 0);
	assert_int_equal(sw_device_minor(folder, "GPU-a"), -1);
	assert_int_equal(sw_device_minor("/nowhere", "GPU-aa"), -1);
	char command[120];
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
}

/* Whether these are the files that the run may open, whatever their order. */
static void expect_minors(const struct sw_supervisor *supervisor, const char *proc, uint64_t expected)
{
	uint32_t minors[SW_DEVICE_GPUS_MAX];
	size_t count = 0;
	uint64_t found = 0;
	assert_true(sw_supervisor_minors(supervisor, proc, minors, &count));
	for (size_t i = 0; i < count; i++)
		found |= UINT64_C(1) << minors[i];
	assert_int_equal(found, expected);
}

/* Aim: a run may open the files of its own GPUs; on its way to others of both, until it has arrived
 * or stays; then of those that it has, and of no others. */
static void test_move(void **state)
{
	(void)state;
	char folder[] = "/tmp/test_device_XXXXXX", path[100], text[100];
	assert_non_null(mkdtemp(folder));
	for (int g = 0; g < 5; g++) {
		snprintf(path, sizeof path, "%s/%d", folder, g);
		mkdir(path, 0700);
		snprintf(path, sizeof path, "%s/%d/information", folder, g);
		snprintf(text, sizeof text, "GPU UUID: \t GPU-%d\nDevice Minor: \t %d\n", g, g);
		write_file(path, text);
	}
	const char *own[] = {"GPU-0", "GPU-1", NULL};
	struct sw_run_order order = {.want.gpus = {own, 2}};
	struct sw_supervisor supervisor = {.order = &order};
	struct sw_supervisor_move *move = &supervisor.move;
	expect_minors(&supervisor, folder, 0x3);
	/* Of one of its two GPUs to another, and it arrives. */
	*move = (struct sw_supervisor_move){.count = 2, .from = {"GPU-0", "GPU-1"}, .to = {"GPU-0", "GPU-3"}};
	supervisor.account.run.moving = "GPU-0,GPU-3";
	expect_minors(&supervisor, folder, 0xb);
	supervisor.account.run.moving = NULL;
	snprintf(move->gpus, sizeof move->gpus, "GPU-0,GPU-3");
	expect_minors(&supervisor, folder, 0x9);
	/* To others, and it stays: `to` is where it is then. */
	*move = (struct sw_supervisor_move){.count = 2, .from = {"GPU-0", "GPU-3"}, .to = {"GPU-2", "GPU-4"}, .gpus = "GPU-0,GPU-3"};
	supervisor.account.run.moving = "GPU-2,GPU-4";
	expect_minors(&supervisor, folder, 0x1d);
	supervisor.account.run.moving = NULL;
	memcpy(move->to, move->from, sizeof move->to);
	expect_minors(&supervisor, folder, 0x9);
	/* A GPU without a file that is known: no rule at all, instead of one that
	 * keeps it from its own. */
	own[1] = "GPU-7";
	move->gpus[0] = '\0';
	uint32_t minors[SW_DEVICE_GPUS_MAX];
	size_t count = 0;
	assert_false(sw_supervisor_minors(&supervisor, folder, minors, &count));
	char command[120];
	snprintf(command, sizeof command, "rm -r '%s'", folder);
	assert_int_equal(system(command), 0);
}

/* Opens the files as a process of the group: the errno of each, as the two
 * digits of its exit code. */
static int try_open(const struct sw_cgroup *group, const char *own, const char *other)
{
	int procs = sw_cgroup_procs(group);
	pid_t pid = fork();
	if (pid == 0) {
		if (write(procs, "0", 1) != 1)
			_exit(99);
		int errors[2] = {0};
		for (int i = 0; i < 2; i++) {
			int fd = open(i == 0 ? own : other, O_RDWR);
			errors[i] = fd >= 0 ? 0 : errno == EPERM ? 1 : 2;
		}
		_exit(errors[0] * 10 + errors[1]);
	}
	close(procs);
	int status = 0;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* Aim: the kernel takes the program: a process of the group may not open the device file of another
 * GPU; while it moves it may open both, and then that of the other alone. Files of devices that do
 * not exist tell: they are refused for another reason. */
static void test_kernel(void **state)
{
	(void)state;
	char path[4096], note[200], own[100], other[100], name[64];
	snprintf(name, sizeof name, "sharewell-test-%ld", (long)getpid());
	int error = sw_cgroup_prepare(name, path, sizeof path, note, sizeof note);
	if (error != 0) {
		print_message("skipped: there are no control groups here: %s\n", strerror(error));
		skip();
	}
	snprintf(own, sizeof own, "/tmp/%s-own", name);
	snprintf(other, sizeof other, "/tmp/%s-other", name);
	struct sw_cgroup group;
	assert_int_equal(sw_cgroup_open(&group, path, "run", 0, 0, note, sizeof note), 0);
	const uint32_t first = 250, second = 251, both[] = {second, first};
	bool made = mknod(own, S_IFCHR | 0600, makedev(195, first)) == 0 && mknod(other, S_IFCHR | 0600, makedev(195, second)) == 0;
	int program = made ? sw_device_keep(group.folder, &first, 1, -1) : -EPERM;
	int before = -1, between = -1, after = -1;
	if (program >= 0) {
		before = try_open(&group, own, other);
		program = sw_device_keep(group.folder, both, 2, program);
		between = program >= 0 ? try_open(&group, own, other) : -1;
		program = program >= 0 ? sw_device_keep(group.folder, &second, 1, program) : program;
		after = program >= 0 ? try_open(&group, own, other) : -1;
	}
	unlink(own);
	unlink(other);
	sw_cgroup_close(&group);
	rmdir(path);
	if (before < 0 || before % 10 == before / 10) {
		print_message("skipped: %s\n", program < 0 ? strerror(-program) : "device files cannot be told apart here");
		skip();
	}
	close(program);
	assert_int_equal(before % 10, 1);
	assert_int_not_equal(before / 10, 1);
	assert_true(between >= 0 && between / 10 != 1 && between % 10 != 1);
	assert_int_equal(after / 10, 1);
	assert_int_not_equal(after % 10, 1);
}

/* Aim: where no rule can be made for a real GPU that is said, once; emulated GPUs of a
 * description need none. */
static void test_no_rule(void **state)
{
	(void)state;
	const char *own[] = {"GPU-of-no-driver", NULL};
	struct sw_run_order order = {.want.gpus = {own, 1}};
	static struct sw_supervisor supervisor;
	if (geteuid() != 0) {
		print_message("skipped: only root's supervisors make rules\n");
		skip();
	}
	supervisor.order = &order;
	supervisor.device_program = -1;
	supervisor.cgroup.folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sw_supervisor_keep_gpus(&supervisor);
	assert_null(supervisor.account.note);
	order.gpu_library = "/usr/lib/libsharewell-gpu.so";
	sw_supervisor_keep_gpus(&supervisor);
	assert_non_null(supervisor.account.note);
	assert_non_null(strstr(supervisor.account.note, "device file"));
	size_t size = strlen(supervisor.note);
	sw_supervisor_keep_gpus(&supervisor);
	assert_int_equal(strlen(supervisor.note), size);
	close(supervisor.cgroup.folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_program), cmocka_unit_test(test_minor), cmocka_unit_test(test_move),
					   cmocka_unit_test(test_kernel), cmocka_unit_test(test_no_rule)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
