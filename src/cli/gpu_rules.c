#include "cli/gpu_rules.h"

#include <string.h>

#include "agent/agent.h"
#include "base/number.h"

int sw_cli_gpu_rules_read(const struct sw_cli_gpu_rules *rules, struct sw_agent_options *options, struct sw_err *err)
{
	int64_t patience = 0;
	options->throttle = rules->throttle;
	options->exclude_gpus = rules->exclude_gpus;
	options->stop_trespassers = rules->trespass != NULL && strcmp(rules->trespass, "stop") == 0;
	options->no_device_rules = rules->device_rules != NULL && strcmp(rules->device_rules, "off") == 0;
	options->strangers = rules->strangers == NULL || strcmp(rules->strangers, "avoid") == 0 ? SW_STRANGERS_AVOID
			     : strcmp(rules->strangers, "share") == 0				? SW_STRANGERS_SHARE
												: SW_STRANGERS_IGNORE;
	if (rules->stranger_memory != NULL && sw_cli_share_size("stranger-memory", rules->stranger_memory, &options->small_bytes, err) < 0)
		return SW_EINPUT;
	if (rules->host_memory != NULL && sw_cli_share_size("host-memory", rules->host_memory, &options->host_bytes, err) < 0)
		return SW_EINPUT;
	if (rules->driver_patience == NULL)
		return 0;
	if (sw_parse_duration(rules->driver_patience, strlen(rules->driver_patience), &patience) < 0 || patience < SW_NS_PER_S ||
	    patience > 3600 * SW_NS_PER_S) {
		sw_err_set(err, SW_EINPUT, "'%.60s' is not a time for --driver-patience", rules->driver_patience);
		sw_err_hint(err, "Write it as 20s or 1m: from 1s to 1h.");
		return SW_EINPUT;
	}
	options->patience_ms = patience / SW_NS_PER_MS;
	return 0;
}
