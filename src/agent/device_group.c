#include "agent/device_group.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NVIDIA's device files: major number, and the first minor number that is no GPU's. */
enum { NVIDIA_MAJOR = 195, NVIDIA_OTHERS = 254 };

/* ---- which file is which GPU's */

/* From one file "information": its minor number if it is of this GPU; -1. */
static int read_minor(const char *path, const char *uuid)
{
	char line[256], *value;
	int minor = -1;
	bool is_it = false;
	FILE *file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof line, file) != NULL) {
		value = strchr(line, ':');
		if (value == NULL)
			continue;
		*value++ = '\0';
		value += strspn(value, " \t");
		value[strcspn(value, " \t\n")] = '\0';
		if (strcmp(line, "GPU UUID") == 0)
			is_it = strcmp(value, uuid) == 0;
		if (strcmp(line, "Device Minor") == 0)
			minor = atoi(value);
	}
	if (file != NULL)
		fclose(file);
	return is_it && minor >= 0 && minor < NVIDIA_OTHERS ? minor : -1;
}

int sw_device_minor(const char *proc, const char *uuid)
{
	DIR *stream = opendir(proc);
	int minor = -1;
	for (const struct dirent *entry; stream != NULL && minor < 0 && (entry = readdir(stream)) != NULL;) {
		char path[600];
		if (entry->d_name[0] != '.' && (size_t)snprintf(path, sizeof path, "%s/%s/information", proc, entry->d_name) < sizeof path)
			minor = read_minor(path, uuid);
	}
	if (stream != NULL)
		closedir(stream);
	return minor;
}

/* ---- the program */

static struct bpf_insn load(uint8_t to, int16_t offset)
{
	return (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = to, .src_reg = BPF_REG_1, .off = offset};
}

/* Where the register compares so with the number, goes on behind so many instructions. */
static struct bpf_insn jump(uint8_t how, uint8_t of, int32_t number, size_t over)
{
	return (struct bpf_insn){.code = (uint8_t)(BPF_JMP | BPF_K | how), .dst_reg = of, .off = (int16_t)over, .imm = number};
}

static struct bpf_insn answer(int32_t number)
{
	return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = number};
}

static const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};

size_t sw_device_assemble(const uint32_t *minors, size_t count, struct bpf_insn program[SW_DEVICE_PROGRAM_MAX])
{
	if (count > SW_DEVICE_GPUS_MAX)
		count = SW_DEVICE_GPUS_MAX;
	const size_t yes = count + 9; /* where it lets in: behind the two that refuse */
	size_t n = 0;
	program[n++] = load(BPF_REG_2, (int16_t)offsetof(struct bpf_cgroup_dev_ctx, access_type));
	program[n++] = (struct bpf_insn){.code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = BPF_REG_2, .imm = 0xffff};
	program[n] = jump(BPF_JNE, BPF_REG_2, BPF_DEVCG_DEV_CHAR, yes - n - 1), n++;
	program[n++] = load(BPF_REG_3, (int16_t)offsetof(struct bpf_cgroup_dev_ctx, major));
	program[n] = jump(BPF_JNE, BPF_REG_3, NVIDIA_MAJOR, yes - n - 1), n++;
	program[n++] = load(BPF_REG_4, (int16_t)offsetof(struct bpf_cgroup_dev_ctx, minor));
	program[n] = jump(BPF_JGE, BPF_REG_4, NVIDIA_OTHERS, yes - n - 1), n++;
	for (size_t i = 0; i < count; i++)
		program[n] = jump(BPF_JEQ, BPF_REG_4, (int32_t)minors[i], yes - n - 1), n++;
	program[n++] = answer(0);
	program[n++] = leave;
	program[n++] = answer(1);
	program[n++] = leave;
	return n;
}

/* ---- the kernel */

static int attach(int command, int group, int program, uint32_t flags)
{
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof attributes);
	attributes.target_fd = (uint32_t)group;
	attributes.attach_bpf_fd = (uint32_t)program;
	attributes.attach_type = BPF_CGROUP_DEVICE;
	attributes.attach_flags = flags;
	return syscall(SYS_bpf, command, &attributes, sizeof attributes) != 0 ? -errno : 0;
}

/* The program in the kernel: its file descriptor, or a negative errno. */
static int load_program(const uint32_t *minors, size_t count)
{
	struct bpf_insn program[SW_DEVICE_PROGRAM_MAX];
	union bpf_attr attributes;
	memset(&attributes, 0, sizeof attributes);
	attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attributes.insn_cnt = (uint32_t)sw_device_assemble(minors, count, program);
	attributes.insns = (uint64_t)(uintptr_t)program;
	attributes.license = (uint64_t)(uintptr_t) "MIT";
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes);
	return fd < 0 ? -errno : fd;
}

int sw_device_try(void)
{
	int fd = load_program(NULL, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

int sw_device_keep(int group, const uint32_t *minors, size_t count, int before)
{
	int fd = load_program(minors, count);
	if (fd < 0)
		return fd;
	/* Others may have programs of theirs above this group: all of them must agree. */
	int r = attach(BPF_PROG_ATTACH, group, fd, BPF_F_ALLOW_MULTI);
	if (r < 0) {
		close(fd);
		return r;
	}
	if (before >= 0) {
		(void)attach(BPF_PROG_DETACH, group, before, 0);
		close(before);
	}
	return fd;
}
