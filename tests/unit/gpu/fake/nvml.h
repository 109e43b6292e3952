/* What a test tells the stand-in for NVIDIA's management library, through its symbol "fake". */
#ifndef TEST_GPU_FAKE_NVML_H
#define TEST_GPU_FAKE_NVML_H

#define FAKE_GPUS_MAX 70

struct fake_gpu {
	const char *uuid, *name;
	unsigned long long total, free, reserved;
	int memory_code, other_code; /* what its calls return */
	int nvlink;		     /* GPUs that have a bit in common are linked */
	int node;		     /* of the machine */
	int bus;
	unsigned mig;
	int watched;	    /* for its errors */
	unsigned processes; /* 1000, 1001, ...: every third does not know its memory */
};

struct fake {
	int init_code, count_code;
	unsigned count;
	int inits, shutdowns;
	unsigned long long xid; /* an error that this GPU has reported, and that was not heard of; 0: none */
	unsigned xid_gpu;
	struct fake_gpu gpus[FAKE_GPUS_MAX];
};

#endif
