#include "cli/daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/message.h"
#include "policy/registry.h"

void sw_cli_say_ready(const char *where)
{
	const char *text = getenv(SW_CLI_READY_FD);
	uint64_t fd;
	if (text == NULL || sw_parse_u64(text, strlen(text), &fd) < 0 || fd < 3 || fd > 1000000)
		return;
	(void)!write((int)fd, where, strlen(where));
	close((int)fd);
	unsetenv(SW_CLI_READY_FD);
}

void sw_cli_daemon_begin(void)
{
	if (getenv(SW_CLI_LOG_TIMES) == NULL)
		return;
	sw_cli_stamp_messages();
	unsetenv(SW_CLI_LOG_TIMES);
}

void sw_cli_daemon_note(void *user, const char *line)
{
	(void)user;
	sw_cli_print_note("%s", line);
}

static const char *policy_at(size_t index)
{
	size_t count = 0;
	while (count < index && sw_policies[count] != NULL)
		count++;
	const struct sw_policy *policy = sw_policies[count] != NULL ? sw_policies[count] : sw_policies_packed(index - count);
	return policy != NULL ? policy->name : NULL;
}
const struct sw_cli_words sw_cli_policy_names = {.at = policy_at};
