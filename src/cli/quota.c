/* sharewell quota: how many GPUs each tenant holds, and how many it may hold. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "cli/connect.h"
#include "cli/live.h"

struct values {
	const char *tenant, *gpus, *controller;
	bool json, noheader;
};

static const struct sw_cli_column columns[] = {
	{.name = "TENANT"},
	{.name = "QUOTA", .right = true},
	{.name = "GPUS", .right = true},
	{.name = "GUARANTEED", .right = true},
	{.name = "RUNNING", .right = true},
	{.name = "PENDING", .right = true},
	{.name = "WANTED", .right = true},
};

static int add_tenant(struct sw_cli_rows *rows, const json_t *tenant)
{
	static const char *const keys[] = {"gpus", "gpus_guaranteed", "running", "pending", "gpus_wanted"};
	int64_t quota = sw_cli_number(tenant, "quota", -1);
	int r = sw_cli_rows_add(rows, sw_cli_text(tenant, "tenant", "(others)"));
	r = r < 0 ? r : quota < 0 ? sw_cli_rows_add(rows, "-") : sw_cli_rows_addf(rows, "%" PRId64, quota);
	for (size_t i = 0; i < SW_CLI_COUNT_OF(keys); i++)
		r = r < 0 ? r : sw_cli_rows_addf(rows, "%" PRId64, sw_cli_number(tenant, keys[i], 0));
	return r;
}

static int list(struct sw_client *client, const struct values *values, struct sw_err *err)
{
	SW_JSON *answer = NULL;
	struct sw_cli_rows rows = {columns, SW_CLI_COUNT_OF(columns), {0}};
	size_t i;
	json_t *tenant;
	int r = sw_client_get(client, "/v1/quota", &answer, err);
	if (r < 0 || values->json)
		return r < 0 ? r : sw_cli_print_json(answer, err);
	json_array_foreach(json_object_get(answer, "tenants"), i, tenant) r = r < 0 ? r : add_tenant(&rows, tenant);
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, !values->noheader);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, r, "out of memory") : 0;
}

static int set(struct sw_client *client, const struct values *values, struct sw_err *err)
{
	uint64_t gpus = 0;
	bool lift = strcmp(values->gpus, "none") == 0;
	if (!lift && (sw_parse_u64(values->gpus, strlen(values->gpus), &gpus) < 0 || gpus > INT32_MAX)) {
		sw_err_set(err, SW_EINPUT, "a quota cannot be '%.60s'", values->gpus);
		sw_err_detail(err, "it takes a number of GPUs, or none for no limit");
		return SW_EINPUT;
	}
	SW_JSON *body = json_pack("{s:s, s:o}", "tenant", values->tenant, "gpus", lift ? json_null() : json_integer((json_int_t)gpus)),
		*answer = NULL;
	if (body == NULL)
		return sw_err_set(err, SW_EINPUT, "the tenant's name is not UTF-8");
	int r = sw_client_post(client, "/v1/quota", body, &answer, err);
	if (r < 0 || values->json)
		return r < 0 ? r : sw_cli_print_json(answer, err);
	if (lift)
		printf("Guaranteed jobs of tenant %s may hold any number of GPUs\n", values->tenant);
	else
		printf("Guaranteed jobs of tenant %s may hold %" PRIu64 " %s\n", values->tenant, gpus, gpus == 1 ? "GPU" : "GPUs");
	return 0;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_client_freep) struct sw_client *client = NULL;
	if (values->tenant != NULL && values->gpus == NULL) {
		sw_err_set(err, SW_EINPUT, "'sharewell quota %.60s' needs a number of GPUs", values->tenant);
		sw_err_hint(err, "'none' lifts the quota.");
		return SW_EINPUT;
	}
	int r = sw_cli_connect(values->controller, &client, err);
	if (r < 0)
		return r;
	return values->tenant != NULL ? set(client, values, err) : list(client, values, err);
}

static const struct sw_cli_option options[] = {
	SW_CLI_OPTION_NOHEADER(struct values),
	SW_CLI_OPTION_JSON(struct values),
	SW_CLI_OPTION_CONTROLLER(struct values),
};

static const struct sw_cli_option operands[] = {
	{"TENANT", .kind = SW_CLI_TEXT, .about = "whose quota is set; without one, what all tenants hold is listed",
	 .offset = offsetof(struct values, tenant)},
	{"GPUS", .kind = SW_CLI_TEXT, .about = "that its guaranteed jobs may hold; none: no limit",
	 .offset = offsetof(struct values, gpus)},
};

static const struct sw_cli_example examples[] = {
	{"sharewell quota", "see how many GPUs each tenant holds"},
	{"sharewell quota vision 8", "let the guaranteed jobs of a tenant hold eight GPUs"},
};

const struct sw_cli_command sw_cli_quota = {
	.name = "quota",
	.about = "show what tenants hold, or set how many GPUs one may hold",
	.text = "Those are listed that have a quota or jobs. GUARANTEED are the GPUs that count against the quota; jobs of class "
		"opportunistic pay none. WANTED "
		"is what jobs that wait ask for.",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
