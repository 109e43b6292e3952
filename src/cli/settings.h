/* --set OWNER.KEY=VALUE: values of policies' parameters and of the world. */
#ifndef SW_CLI_SETTINGS_H
#define SW_CLI_SETTINGS_H

#include "base/error.h"
#include "core/params.h"
#include "world/world.h"

struct sw_cli_setting {
	char owner[64]; /* a policy, "world" or "core" */
	char key[64];
	const char *value; /* the rest of the text; may be empty, and may contain anything */
};

/* Takes the text apart at its first dot and its first equals sign. */
int sw_cli_setting_parse(const char *text, struct sw_cli_setting *ret_setting, struct sw_err *err);

/* Whether it is about the world; and then sets it. `world` also takes it into its name, so that no
 * report calls a changed world by its plain name. */
bool sw_cli_setting_is_world(const struct sw_cli_setting *setting);
int sw_cli_setting_world(const struct sw_cli_setting *setting, struct sw_world *world, struct sw_err *err);
/* To be asked after the last setting: whether what was changed still makes a world. */
int sw_cli_check_world(const struct sw_world *world, struct sw_err *err);

/* Sets a parameter of the policy that `params` is about. A file of numbers is read where `files` is
 * true; otherwise its name is taken for its content. */
int sw_cli_setting_policy(const struct sw_cli_setting *setting, struct sw_params *params, bool files, struct sw_err *err);

/* For lists: the values of a world that can be set; a NULL name ends. */
struct sw_cli_world_value {
	const char *name;
	const char *about;
};
const struct sw_cli_world_value *sw_cli_world_value(size_t index);

#endif
