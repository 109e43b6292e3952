/* What machine is emulated: from SHAREWELL_EMU (a file, or the settings themselves when it holds a
 * '='). README.md lists the settings. */
#ifndef EMU_CONFIG_H
#define EMU_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { EMU_GPUS_MAX = 16, EMU_NAME_BYTES = 96, EMU_UUID_BYTES = 48, EMU_FAULTS_MAX = 32 };

struct emu_gpu_config {
	char name[EMU_NAME_BYTES];
	char uuid[EMU_UUID_BYTES]; /* "GPU-" and so on */
	uint64_t memory_bytes;
	uint64_t context_bytes; /* what a context takes */
	uint64_t h2d_bps, d2h_bps, d2d_bps;
	uint64_t copy_latency_ns;
	uint64_t launch_ns; /* the least a kernel takes */
	uint64_t speed_ppm; /* modelled kernel times are divided by this share of 1,000,000 */
	uint64_t slice_ns;  /* how long a process keeps the GPU while others wait */
	uint64_t checkpoint_bps;
	unsigned multiprocessors;
};

/* A fault: at calls of `entry` (or "alloc": any call that takes device memory) number `first`
 * to `first + count - 1`. */
struct emu_fault {
	char entry[64];
	uint64_t first, count;
	int error;	   /* returned when not 0 */
	uint64_t delay_ns; /* waited before */
	char hold[192];	   /* a file that is made then; the call goes on when it is gone; "": none */
	bool lose_device;
};

/* As outside a container; as in one: by numbers of another namespace, or not at all. */
enum emu_pids { EMU_PIDS_REAL, EMU_PIDS_FOREIGN, EMU_PIDS_NONE };

struct emu_config {
	unsigned gpu_count;
	struct emu_gpu_config gpus[EMU_GPUS_MAX];
	char state_path[512];
	char control_path[512]; /* faults that come and go while a job runs; "" when none */
	struct emu_fault faults[EMU_FAULTS_MAX];
	unsigned fault_count;
	enum emu_pids pids; /* how the management library names processes */
	char problem[256];  /* what is wrong with the settings; "" when nothing */
};

/* The settings of this process, read once. Never NULL; look at `problem`. */
const struct emu_config *emu_config(void);

/* "entry:first=3:count=1:error=2:delay_us=100:hold=FILE:lose" into `ret_fault`. */
bool emu_config_parse_fault(const char *text, size_t length, struct emu_fault *ret_fault);

/* One setting; for the control file and the tests. */
bool emu_config_parse_bytes(const char *text, uint64_t *ret_bytes);

#endif
