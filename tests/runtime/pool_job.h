/* What the tests of memory in stream order share. */
#ifndef TEST_RUNTIME_POOL_JOB_H
#define TEST_RUNTIME_POOL_JOB_H

#include "runtime/job.h"

/* cmocka's set-up of one case: machine_up(), and memory of pools moves. */
int pools_up(void **state);

#define POOL_CASE(name) cmocka_unit_test_setup_teardown(name, pools_up, machine_down)

/* ---- in a job */

/* The device's own pool, and two streams; open_streams() opens the driver and makes them. */
extern CUmemoryPool standard;
extern CUstream a, b;
void open_streams(void);

/* An attribute of a pool. */
uint64_t figure(CUmemoryPool pool, int attribute);
void set_threshold(CUmemoryPool pool, uint64_t bytes);
/* What the job holds, its context apart; of that, what cannot move. */
uint64_t charged(void);
uint64_t fixed(void);

CUdeviceptr take(size_t bytes, CUstream stream);
/* That all its bytes have this value, by those at its ends and in the middle. */
void expect(CUdeviceptr x, size_t bytes, unsigned char value);

#endif
