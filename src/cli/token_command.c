/* sharewell token create, list, revoke: users and agents that may come over TCP. They change a file
 * in the state folder, which is its owner's alone; the controller notices. */
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/routes.h"
#include "api/when.h"
#include "base/number.h"
#include "cli/endpoint.h"
#include "cli/live.h"
#include "server/tokens.h"

#define SW_CLI_TOKEN_MOST_NS (3650 * 86400 * SW_NS_PER_S)

struct values {
	const char *state, *role, *user, *name, *expires, *nodes, *which;
	bool all_users, json, noheader;
};

static int find_file(const struct values *values, struct sw_cli_places *ret_places, struct sw_err *err)
{
	return sw_cli_places(values->state, values->all_users, ret_places, err);
}

/* ---- create */

static int set_expiry(const char *text, struct sw_token_owner *owner, struct sw_err *err)
{
	int64_t ns;
	if (text == NULL)
		return 0;
	if (sw_parse_duration(text, strlen(text), &ns) < 0 || ns < SW_NS_PER_S || ns > SW_CLI_TOKEN_MOST_NS) {
		sw_err_set(err, SW_EINPUT, "'%.40s' is not a time that a token can be valid", text);
		sw_err_hint(err, "From 1s to 3650d, such as 12h or 90d.");
		return SW_EINPUT;
	}
	owner->expires_at_s = time(NULL) + ns / SW_NS_PER_S;
	return 0;
}

static int set_nodes(const char *text, struct sw_token_owner *owner, struct sw_err *err)
{
	if (text == NULL)
		return 0;
	if (owner->role != SW_ROLE_AGENT)
		return sw_err_set(err, SW_EINPUT, "--nodes is for tokens of agents");
	if (!sw_token_nodes_are_good(text)) {
		sw_err_set(err, SW_EINPUT, "'%.100s' are not names of nodes", text);
		sw_err_hint(err, "Such as gpu1,gpu2 or 'gpu*': at most %u characters, commas between names, * and ? for any.",
			    SW_TOKEN_NODES_MAX);
		return SW_EINPUT;
	}
	snprintf(owner->nodes, sizeof owner->nodes, "%s", text);
	return 0;
}

static int create(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_token_owner owner = {.role = sw_role_find(values->role), .uid = geteuid(), .gid = getegid()};
	struct sw_cli_places places;
	char token[SW_TOKEN_SIZE];
	int r = values->user != NULL ? sw_cli_user(values->user, &owner.uid, &owner.gid, err) : 0;
	r = r < 0 ? r : set_expiry(values->expires, &owner, err);
	r = r < 0 ? r : set_nodes(values->nodes, &owner, err);
	r = r < 0 ? r : find_file(values, &places, err);
	r = r < 0 ? r : sw_cli_places_make(&places, values->all_users, err);
	r = r < 0 ? r : sw_tokens_make(places.tokens, err);
	r = r < 0 ? r : sw_tokens_add(places.tokens, &owner, values->name != NULL ? values->name : "", token, err);
	if (r < 0)
		return r;
	puts(token);
	explicit_bzero(token, sizeof token);
	return 0;
}

static const char *role_at(size_t index)
{
	static const char *const names[] = {"user", "operator", "agent"};
	return index < 3 ? names[index] : NULL;
}
static const struct sw_cli_words role_words = {.at = role_at};

#define PLACE_OPTIONS                                                                             \
	{"state",                                                                                 \
	 .kind = SW_CLI_TEXT,                                                                     \
	 .is_path = true,                                                                         \
	 .argument = "DIR",                                                                       \
	 .about = "as it was given to the controller",                                            \
	 .offset = offsetof(struct values, state)},                                               \
	{                                                                                         \
		"all-users", .about = "of the controller that serves every user of this machine", \
			     .offset = offsetof(struct values, all_users)                         \
	}

static const struct sw_cli_option create_options[] = {
	{"role", 'r', .kind = SW_CLI_WORD, .argument = "ROLE", .preset = "user", .words = &role_words, .about = "what it is good for",
	 .offset = offsetof(struct values, role)},
	{"user", 'u', .kind = SW_CLI_TEXT, .argument = "USER", .about = "whose jobs it may make and see, by name or number; you by default",
	 .offset = offsetof(struct values, user)},
	{"name", .kind = SW_CLI_TEXT, .argument = "NAME", .about = "what to call it in the list", .offset = offsetof(struct values, name)},
	{"expires", .kind = SW_CLI_TEXT, .argument = "TIME", .about = "how long it is valid, such as 90d; for ever by default",
	 .offset = offsetof(struct values, expires)},
	{"nodes", .kind = SW_CLI_TEXT, .argument = "NAMES",
	 .about = "of an agent: the nodes that it may speak for, such as gpu1,gpu2 or 'gpu*'; by default the first 64 that it names",
	 .offset = offsetof(struct values, nodes)},
	PLACE_OPTIONS,
};

static const struct sw_cli_example create_examples[] = {
	{"sharewell token create --user alice --name laptop --expires 90d", "let alice come from another machine, for 90 days"},
	{"sharewell token create --role agent --nodes gpu7", "let another machine offer its GPUs"},
};

const struct sw_cli_command sw_cli_token_create = {
	.name = "token create",
	.about = "make a token, and print it",
	.text = "The token is printed now and never again: only its hash is kept. Users submit jobs and see their own in full; operators "
		"see and "
		"change everything; agents offer GPUs and start jobs, and do nothing else. It is valid at once.",
	SW_CLI_OPTIONS(create_options),
	SW_CLI_EXAMPLES(create_examples),
	.values_size = sizeof(struct values),
	.run = create,
};

/* ---- list */

static int add_row(struct sw_cli_rows *rows, const struct sw_token_view *view)
{
	const struct passwd *entry = getpwuid(view->owner.uid);
	int r = sw_cli_rows_add(rows, view->id);
	r = r < 0 ? r : sw_cli_rows_add(rows, view->role);
	r = r < 0 ? r : entry != NULL ? sw_cli_rows_add(rows, entry->pw_name) : sw_cli_rows_addf(rows, "%u", view->owner.uid);
	char when[SW_WHEN_SIZE] = "never";
	if (view->owner.expires_at_s != 0)
		sw_when_format_seconds(view->owner.expires_at_s, when);
	r = r < 0 ? r : sw_cli_rows_add(rows, when);
	r = r < 0 ? r : sw_cli_rows_add(rows, view->owner.nodes[0] != '\0' ? view->owner.nodes : "-");
	return r < 0 ? r : sw_cli_rows_add(rows, view->name[0] != '\0' ? view->name : "-");
}

static int print_table(const struct sw_tokens *tokens, bool headings, struct sw_err *err)
{
	static const struct sw_cli_column columns[] = {{"ID", .right = false},	    {"ROLE", .right = false},  {"USER", .right = false},
						       {"EXPIRES", .right = false}, {"NODES", .right = false}, {"NAME", .right = false}};
	struct sw_cli_rows rows = {.columns = columns, .column_count = 6};
	int r = 0;
	for (size_t i = 0; r == 0 && i < sw_tokens_count(tokens); i++) {
		struct sw_token_view view;
		sw_tokens_view(tokens, i, &view);
		r = add_row(&rows, &view);
	}
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, headings);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, r, "out of memory") : 0;
}

static json_t *expiry(int64_t at_s)
{
	char when[SW_WHEN_SIZE];
	return at_s != 0 ? json_string(sw_when_format_seconds(at_s, when)) : json_null();
}

static int print_list(const struct sw_tokens *tokens, struct sw_err *err)
{
	SW_JSON *list = json_array();
	for (size_t i = 0; list != NULL && i < sw_tokens_count(tokens); i++) {
		struct sw_token_view view;
		sw_tokens_view(tokens, i, &view);
		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:s, s:o, s:s}", "id", view.id, "role", view.role, "uid",
						      (json_int_t)view.owner.uid, "name", view.name, "expires",
						      expiry(view.owner.expires_at_s), "nodes", view.owner.nodes));
	}
	return list != NULL ? sw_cli_print_json(list, err) : sw_err_set(err, SW_ENOMEM, "out of memory");
}

static int list(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_tokens_freep) struct sw_tokens *tokens = NULL;
	struct sw_cli_places places;
	int r = find_file(values, &places, err);
	r = r < 0 ? r : sw_tokens_read(places.tokens, &tokens, err);
	if (r < 0)
		return r;
	return values->json ? print_list(tokens, err) : print_table(tokens, !values->noheader, err);
}

static const struct sw_cli_option list_options[] = {
	{"json", .about = "print JSON", .offset = offsetof(struct values, json)},
	SW_CLI_OPTION_NOHEADER(struct values),
	PLACE_OPTIONS,
};

static const struct sw_cli_example list_examples[] = {{"sharewell token list", "see which users and agents may come over TCP"}};

const struct sw_cli_command sw_cli_token_list = {
	.name = "token list",
	.about = "list tokens by their ids; the tokens themselves are not kept",
	SW_CLI_OPTIONS(list_options),
	SW_CLI_EXAMPLES(list_examples),
	.values_size = sizeof(struct values),
	.run = list,
};

/* ---- revoke */

static int take_back(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	struct sw_cli_places places;
	int r = find_file(values, &places, err);
	return r < 0 ? r : sw_tokens_remove(places.tokens, values->which, err);
}

static const struct sw_cli_option revoke_options[] = {PLACE_OPTIONS};

static const struct sw_cli_option revoke_operands[] = {
	{"TOKEN", .kind = SW_CLI_TEXT, .required = true, .about = "its id or its name, as in the list",
	 .offset = offsetof(struct values, which)},
};

static const struct sw_cli_example revoke_examples[] = {{"sharewell token revoke laptop", "take a token back"}};

const struct sw_cli_command sw_cli_token_revoke = {
	.name = "token revoke",
	.about = "take a token back, at once",
	.text = "Requests with it are refused from now on, and streams that were opened with it end within a second. Jobs that were "
		"submitted with it go on.",
	SW_CLI_OPTIONS(revoke_options),
	SW_CLI_OPERANDS(revoke_operands),
	SW_CLI_EXAMPLES(revoke_examples),
	.values_size = sizeof(struct values),
	.run = take_back,
};
