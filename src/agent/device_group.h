/* Keeps the processes of a control group (version 2) to some of the machine's NVIDIA GPUs. It is a
 * program of the kernel that refuses to open the device files of the others. The files that are for
 * all GPUs stay open to all (nvidiactl, nvidia-modeset, nvidia-uvm, caps). Needs root, and a kernel
 * that lets us.
 */
#ifndef SW_AGENT_DEVICE_GROUP_H
#define SW_AGENT_DEVICE_GROUP_H

#include <stddef.h>
#include <stdint.h>

#include <linux/bpf.h>

#define SW_DEVICE_GPUS_MAX 64u
#define SW_DEVICE_PROGRAM_MAX (SW_DEVICE_GPUS_MAX + 16u)
#define SW_DEVICE_PROC "/proc/driver/nvidia/gpus"

/* The number of the device file of a GPU, as the driver says in the folder
 * `proc`; -1: not known. */
int sw_device_minor(const char *proc, const char *uuid);
/* The program that lets in the device files of these GPUs; returns how many instructions it has. */
size_t sw_device_assemble(const uint32_t *minors, size_t count, struct bpf_insn program[SW_DEVICE_PROGRAM_MAX]);
/* Whether the kernel takes such a program at all: 0 or a negative errno. */
int sw_device_try(void);
/* Puts such a program on the group, in the place of `before` (-1: none): its file
 * descriptor, or a negative errno. */
int sw_device_keep(int group, const uint32_t *minors, size_t count, int before);

#endif
