/* A process outside the queue that uses a GPU of a node: no job may be started there once its node
 * has seen it, and no job may lose work by it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "storm.h"

#define SEEN_PATIENCE_NS (30 * SW_NS_PER_S)

static const char *node_of(const struct cluster *cluster)
{
	return cluster->daemons[1 + cluster->stranger.plan.node].name;
}

static _Noreturn void become_stranger(const struct cluster *cluster)
{
	char gpu[12];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
	snprintf(gpu, sizeof gpu, "%u", cluster->stranger.plan.gpu);
	setenv("CUDA_VISIBLE_DEVICES", gpu, 1);
	setenv("LD_LIBRARY_PATH", cluster->emu, 1);
	execl(cluster->job, "stranger", "--stranger", cluster->folder, node_of(cluster), (char *)NULL);
	_exit(127);
}

static void come(struct cluster *cluster)
{
	pid_t pid = fork();
	if (pid == 0)
		become_stranger(cluster);
	cluster->stranger.pid = pid > 0 ? pid : 0;
	cluster->stranger.comes_at_ns = INT64_MAX;
	cluster->tally->strangers += pid > 0;
}

void stranger_leave(struct cluster *cluster)
{
	struct stranger *stranger = &cluster->stranger;
	stranger->comes_at_ns = INT64_MAX;
	if (stranger->pid == 0 || stranger->has_left)
		return;
	stranger->left_at_ns = boot_now_ns();
	stranger->has_left = true;
	kill(stranger->pid, SIGKILL);
}

void stranger_pump(struct cluster *cluster, int64_t now_ns)
{
	struct stranger *stranger = &cluster->stranger;
	if (now_ns >= stranger->comes_at_ns)
		come(cluster);
	else if (stranger->pid > 0 && now_ns >= stranger->leaves_at_ns)
		stranger_leave(cluster);
}

/* Whether the controller keeps jobs off the GPU because of this very process. */
static bool is_seen(const struct cluster *cluster, const json_t *answer)
{
	size_t n, d, s;
	const json_t *node, *device, *other;
	json_array_foreach(json_object_get(answer, "nodes"), n, node)
	{
		if (strcmp(json_string_value(json_object_get(node, "name")), node_of(cluster)) != 0)
			continue;
		json_array_foreach(json_object_get(node, "devices"), d, device)
		{
			const char *shut = json_string_value(json_object_get(device, "shut"));
			if (d != cluster->stranger.plan.gpu || shut == NULL || strcmp(shut, "stranger") != 0)
				continue;
			json_array_foreach(json_object_get(device, "strangers"), s,
					   other) if (json_integer_value(json_object_get(other, "pid")) ==
						      cluster->stranger.pid) return true;
		}
	}
	return false;
}

void stranger_prepare(struct cluster *cluster, const struct stranger_plan *plan)
{
	struct stranger *stranger = &cluster->stranger;
	*stranger = (struct stranger){.plan = *plan, .comes_at_ns = INT64_MAX, .leaves_at_ns = INT64_MAX};
	if (!plan->is_first)
		return;
	come(cluster);
	for (int64_t end_ns = boot_now_ns() + SEEN_PATIENCE_NS; !stranger->is_seen && boot_now_ns() < end_ns; rest_us(5000)) {
		json_t *answer;
		ask_patiently(cluster, "/v1/nodes", SEEN_PATIENCE_NS, &answer);
		stranger->is_seen = is_seen(cluster, answer);
		json_decref(answer);
	}
	if (!stranger->is_seen)
		violation(cluster, CHECK_STRANGERS, "process %ld on GPU %u of node %s was not seen", (long)stranger->pid, plan->gpu,
			  node_of(cluster));
}

void stranger_begin(struct cluster *cluster, int64_t start_ns)
{
	struct stranger *stranger = &cluster->stranger;
	int64_t comes_at_ns = start_ns + (int64_t)stranger->plan.at_us * SW_NS_PER_US;
	if (stranger->plan.stay_us == 0)
		return;
	if (!stranger->plan.is_first)
		stranger->comes_at_ns = comes_at_ns;
	stranger->leaves_at_ns = comes_at_ns + (int64_t)stranger->plan.stay_us * SW_NS_PER_US;
}

void stranger_check(struct cluster *cluster, const char *node, const char *gpus, int64_t started_ns, const char *run)
{
	const struct stranger *stranger = &cluster->stranger;
	char uuid[64];
	if (!stranger->is_seen || started_ns >= stranger->left_at_ns || strcmp(node, node_of(cluster)) != 0)
		return;
	cluster->tally->checked[CHECK_STRANGERS]++;
	snprintf(uuid, sizeof uuid, GPU_UUID, node, stranger->plan.gpu);
	if (strstr(gpus, uuid) != NULL)
		violation(cluster, CHECK_STRANGERS, "a run was started on GPU %u of node %s, which a stranger used: %s", stranger->plan.gpu,
			  node, run);
}
