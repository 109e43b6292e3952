#include "runtime/pace_job.h"

#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void hear_again(void)
{
	/* Any wish makes the processes look again. */
	assert_true(sw_share_page_wait(page(), sw_share_page_want(page(), SW_PAGE_RUN), PATIENCE));
}

bool heard(int socket)
{
	struct pollfd wait = {.fd = socket, .events = POLLIN};
	return poll(&wait, 1, 0) > 0;
}

void spin(int socket)
{
	CUstream stream = NULL;
	open_driver();
	assert_cuda(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	tell(socket, 'r');
	while (!heard(socket)) {
		assert_cuda(launch_spin(stream, 1000000));
		assert_cuda(launch_spin(stream, 1000000));
		assert_cuda(cuStreamSynchronize(stream));
	}
}

uint64_t wait_for_silence(void)
{
	uint64_t before;
	do {
		before = gpu_busy_ns();
		for (unsigned i = 0; i < 60; i++)
			doze();
	} while (gpu_busy_ns() != before);
	return before;
}

void rest(int64_t for_ns)
{
	for (int64_t begun = now_ns(); now_ns() - begun < for_ns;)
		doze();
}

const struct sw_page_slot *slot_of(const struct sw_page *shared, const struct job *job)
{
	for (unsigned i = 0; i < SW_PAGE_SLOTS; i++)
		if (atomic_load(&shared->slots[i].pid) == job->pid)
			return &shared->slots[i];
	fail_msg("the process has no place in the page");
	return NULL;
}

struct sw_page_slot *make_neighbour(const char *name, struct sw_share_page **ret_page)
{
	const char *const uuids[] = {"GPU-5ba7e001-0000-4000-8000-000000000001"};
	char path[SW_PAGE_PATH] = {0};
	strcpy(path, beside(name)); /* NOLINT(clang-analyzer-security.insecureAPI.strcpy): both are of this test */
	assert_int_equal(sw_share_page_new(path, uuids, 1, ret_page, NULL), 0);
	struct sw_page *shared = raw_page(page_path());
	struct sw_page_slot *slot = &raw_page(path)->slots[3];
	atomic_store(&slot->pid, getpid());
	atomic_store(&slot->state, SW_PAGE_RUNNING);
	memcpy(shared->neighbours[0], path, sizeof path);
	atomic_store(&shared->yields, 1);
	return slot;
}
