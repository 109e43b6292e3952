/* sharewell quota: who holds how many GPUs, and how many a tenant may hold. */
#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "cli/live.h"

#define TENANTS_MAX 10000u

struct values {
	const char *tenant, *gpus, *controller;
	bool json, noheader;
};

static const struct sw_cli_column columns[] = {
	{.name = "TENANT"},
	{.name = "RUNNING", .right = true},
	{.name = "GPUS", .right = true},
	{.name = "PENDING", .right = true},
	{.name = "WANTED", .right = true},
};

static void count(json_t *tenant, const char *key, int64_t more)
{
	json_object_set_new(tenant, key, json_integer(sw_cli_number(tenant, key, 0) + more));
}

/* Adds jobs to the object of their tenant. */
static int take_page(void *user, json_t *jobs, struct sw_err *err)
{
	json_t *tenants = user, *job;
	size_t i;
	json_array_foreach(jobs, i, job)
	{
		const char *name = sw_cli_text(job, "tenant", "(others)");
		if (json_object_get(tenants, name) == NULL && json_object_size(tenants) < TENANTS_MAX)
			json_object_set_new(tenants, name,
					    json_pack("{s:i, s:i, s:i, s:i}", "running", 0, "gpus", 0, "pending", 0, "wanted", 0));
		json_t *tenant = json_object_get(tenants, name);
		if (tenant == NULL)
			return sw_err_set(err, SW_ELIMIT, "there are more than %u tenants", TENANTS_MAX);
		bool runs = strcmp(sw_cli_text(job, "state", ""), "R") == 0;
		count(tenant, runs ? "running" : "pending", 1);
		count(tenant, runs ? "gpus" : "wanted", sw_cli_number(job, "gpus", 0));
	}
	return 0;
}

static int list(struct sw_cli_client *client, const struct values *values, struct sw_err *err)
{
	SW_JSON *tenants = json_object();
	struct sw_cli_rows rows = {columns, SW_CLI_COUNT_OF(columns), {0}};
	const char *name;
	json_t *tenant;
	int r = sw_cli_each_page(client, "state=active&", take_page, tenants, err);
	if (r < 0)
		return r;
	if (values->json)
		return sw_cli_print_json(tenants, err);
	json_object_foreach(tenants, name, tenant)
	{
		r = r < 0 ? r : sw_cli_rows_add(&rows, name);
		for (size_t i = 0; i < 4; i++) {
			static const char *const keys[] = {"running", "gpus", "pending", "wanted"};
			r = r < 0 ? r : sw_cli_rows_addf(&rows, "%" PRId64, sw_cli_number(tenant, keys[i], 0));
		}
	}
	if (r == 0)
		sw_cli_rows_print(&rows, stdout, !values->noheader);
	sw_cli_rows_release(&rows);
	return r < 0 ? sw_err_set(err, r, "out of memory") : 0;
}

static int set(struct sw_cli_client *client, const struct values *values, struct sw_err *err)
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
	int r = sw_cli_client_post(client, "/v1/quota", body, &answer, err);
	return r == 0 && values->json ? sw_cli_print_json(answer, err) : r;
}

static int run(const struct sw_cli_call *call, struct sw_err *err)
{
	const struct values *values = call->values;
	SW_CLEANUP(sw_cli_client_freep) struct sw_cli_client *client = NULL;
	if (values->tenant != NULL && values->gpus == NULL) {
		sw_err_set(err, SW_EINPUT, "'sharewell quota %.60s' needs a number of GPUs", values->tenant);
		sw_err_hint(err, "'none' lifts the quota.");
		return SW_EINPUT;
	}
	int r = sw_cli_client_open(values->controller, &client, err);
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
	{"sharewell quota", "see who holds how many GPUs"},
	{"sharewell quota vision 8", "let the guaranteed jobs of a tenant hold eight GPUs"},
};

const struct sw_cli_command sw_cli_quota = {
	.name = "quota",
	.about = "show what tenants hold, or set how many GPUs one may hold",
	SW_CLI_OPTIONS(options),
	SW_CLI_OPERANDS(operands),
	SW_CLI_EXAMPLES(examples),
	.values_size = sizeof(struct values),
	.run = run,
};
