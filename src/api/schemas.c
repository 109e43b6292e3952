/* The bodies of requests and answers, described. What writes and reads them is elsewhere; tests
 * hold the two together. */
#include <string.h>

#include "api/job.h"
#include "api/routes.h"
#include "api/sync_tables.h"
#include "api/views.h"

#define END                      \
	{                        \
		NULL, NULL, NULL \
	}

static const struct sw_api_field submitted[] = {
	{"id", "integer", "of the first job"},
	{"ids", "integer[]", "of all of them, in the order of the request"},
	{"warnings", "string[]",
	 "about inputs that they name and that others failed on lately, models without a profile, and what the policy makes of them"},
	END,
};
static const struct sw_api_field job[] = {
	{"stop", "#Stop", "the last time that its run was suspended, stopped or moved from outside; null: it never was"},
	{"limit", "#Limit", "what it may have of its GPUs, as a user set it; null: not set"},
	{"gpu", "#JobGpu", "how it does on its GPUs; null: it does not run, or has not been looked at"},
	{"speed", "#Speed", "how long its iterations take; null: it does not run, or was not measured"},
	{"sharing", "#Sharing", "the jobs with which it shares GPUs now; null: it does not run, or alone"},
	{"failure", "#Failure", "why its last failed run failed; null: none did"},
	{"request", "#JobRequest", "what was asked for; only where one job is shown"},
	{"asked", "#Asked", "the same in short; only in lists, with the parameter `asked`"},
	{"changed", "boolean", "only in answers to a change; false: there was nothing to do, as with a requeue of a job that waits"},
	END,
};
static const struct sw_api_field stop[] = {
	{"kind", "string",
	 "`suspended` (it stands still), `stopped` (it starts anew, if it may), `cancelled`, or `moved` (to other GPUs of its node)"},
	{"at", "string", "when: RFC 3339"},
	{"by", "string", "`user` (its owner), `operator`, `policy`, or `node` (that was lost, or has other GPUs now)"},
	{"user", "string", "which user that was, of the first two; null"},
	{"job", "integer", "for which it had to make room; null: for none"},
	{"why", "string", "the same in words: `for job 7 (guaranteed, user ann)`"},
	{"next", "string", "what has to happen before it goes on: `it goes on when job 7 ends or makes way`; else empty"},
	{"until", "string", "when it went on, or started anew; null: not yet"},
	END,
};
static const struct sw_api_field limit[] = {
	{"gpu_memory", "integer|string", "of each GPU: bytes, at least 16 MiB, or in requests `20G`; null: no limit"},
	{"compute", "integer", "percent of each GPU's time, 1 to 100; null: all of it"},
	END,
};
static const struct sw_api_field move[] = {
	{"gpus", "integer[]", "numbers of GPUs on its node, as many as it has; null or not there: any that are free"},
	END,
};
static const struct sw_api_field change[] = {
	{"verb", "string", "`cancel`, `hold`, `release`, `requeue`, `suspend` or `resume`: as the path of one job says"},
	{"jobs", "integer[]", "1 to 100000 of them; one that is named twice is changed once"},
	{"deep", "boolean", "of `suspend`: as the parameter for one job"},
	{"force", "boolean", "of `suspend`: as the parameter for one job"},
	{"skip_ended", "boolean", "jobs that have ended are left alone; by default one such job is a conflict and none is changed"},
	END,
};
static const struct sw_api_field changed[] = {
	{"jobs", "#ChangedJob[]", "in the order of the request"},
	END,
};
static const struct sw_api_field changed_job[] = {
	{"id", "integer", ""},
	{"state", "string", "as in Job"},
	{"changed", "boolean", "false: there was nothing to do, as with a requeue of a job that waits"},
	{"ended", "boolean", "it had ended before, and was left alone"},
	END,
};
static const struct sw_api_field job_gpu[] = {
	{"memory_bytes", "integer", "that it holds, on all its GPUs together"},
	{"limit_bytes", "integer", "that it may hold, on all of them; null: there is none, or it is not known"},
	{"host_bytes", "integer", "of its GPU memory whose contents lie in host memory for now"},
	{"iteration_s", "number", "seconds that one step of its repeating work takes; null: none was found"},
	{"outside_processes", "integer", "its processes, counted on each GPU, that use it outside the runtime, where no limit holds"},
	{"trespass", "boolean", "a process of it uses a GPU that it was not given"},
	{"compute", "number", "percent of each GPU's time that it may take now; 0: it stands still; null: not known"},
	{"yields", "boolean", "it works only while the guaranteed jobs on its GPUs do not"},
	{"sampled_at", "string", "RFC 3339"},
	END,
};
static const struct sw_api_field speed[] = {
	{"iteration_s", "number", "seconds that one takes now; null: not known beside the jobs that are on its GPUs now"},
	{"alone_s", "number",
	 "seconds that one took alone there, of this job or an earlier one of the same user and command; null: not known"},
	{"slowdown", "number", "the one against the other; null: not both are known"},
	{"iterations", "integer", "that had ended when this was measured"},
	{"beside", "integer[]", "jobs on its GPUs then"},
	END,
};
static const struct sw_api_field sharing[] = {
	{"predicted", "number", "how many times as long as alone its iterations should take; null: not known"},
	{"learned", "boolean", "whether slowdowns that were measured earlier have changed what is predicted"},
	{"measured", "number", "how many times as long they take; null: not measured beside these, or never alone"},
	{"unpredicted", "string", "why that is not known; null: it is predicted"},
	{"with", "#Neighbour[]", "the other jobs on its GPUs"},
	END,
};
static const struct sw_api_field neighbour[] = {
	{"job", "integer", "its number"},
	{"node", "string", "where"},
	{"gpu_indexes", "integer[]", "GPUs there that both have"},
	{"predicted", "number", "of this job, as above"},
	{"learned", "boolean", "of this job, as above"},
	{"measured", "number", "of this job, as above"},
	END,
};
static const struct sw_api_field failure[] = {
	{"class", "string", "docs/failures.md has them all"},
	{"layer", "string", "what can do something about it: `user`, `framework`, `infrastructure`, or `unknown`"},
	{"line", "string", "of its log that gave it away; may be empty"},
	{"says", "string", "what went wrong, in words"},
	{"hint", "string", "what to do; may be empty"},
	{"done", "string", "what was done about it"},
	END,
};
static const struct sw_api_field job_list[] = {
	{"jobs", "#Job[]", "one page"},
	{"next", "integer", "the cursor of the next page; null: there is none. A page may be short and have a next one"},
	END,
};
static const struct sw_api_field kept_event[] = {
	{"seq", "integer", "number of its record in the journal"},
	{"at", "string", "when it happened; null: its record has a moment that cannot be"},
	{"kind", "string",
	 "`hold` or `release`; with `all` also `submit`, `cancel`, `requeue`, `run`, `exit`, `quota`, `profile`, `policy`, `world`, "
	 "`numbers`, `node`, `node_removed`, `node_unreachable`, `node_closed`, `node_opened`, `gpus`, or `wake`: the scheduler had asked "
	 "to be woken. Operators alone hear of profiles"},
	{"job", "integer",
	 "of all that concerns one job: which. A submit does not say: jobs have numbers in the order of their submits, up to `last_job`"},
	{"leaves", "boolean", "of a hold: a run goes on, and the job is held once that is over"},
	{"member", "boolean", "of a submit: one more member of the array that the submit before made; it is as that job"},
	{"prerun", "boolean", "of a submit: a pre-run was made before the job"},
	{"spec", "object",
	 "of a submit: the job as the scheduler was asked for it (src/core/spec.c); fields that are zero are left out. Of jobs of others: "
	 "`gpus` alone"},
	{"tenant", "string", "of a submit or a quota"},
	{"model", "string", "of a submit: the profile by which its speed is predicted; not there where it has none"},
	{"deadline", "string", "of a submit: a moment; not there where it has none"},
	{"depends", "integer[]", "of a submit: the jobs that it waits for; not there where there are none"},
	{"user", "string", "of a submit; not there for jobs of others"},
	{"how", "string", "of an exit: `completed`, `failed` or `timed out`"},
	{"ran_ns", "integer",
	 "of an exit or a cancel: the time that the job has had on GPUs by then. Not there for jobs of others, and of earlier versions"},
	{"stops", "integer", "likewise, how often it was preempted"},
	{"policy", "string", "of a policy: in charge from now on"},
	{"world", "string", "of a world: in force from now on"},
	{"above", "integer", "of numbers: the next job gets a number above this one"},
	{"begins", "boolean", "of a run: all of it that this node has was heard to run for the first time"},
	{"frees", "boolean", "of a run: its GPU memory leaves its GPUs while it is suspended"},
	{"gpus", "integer", "of a quota; null: it was lifted"},
	{"name", "string",
	 "of a submit; of a profile: the model; `use_milli`, `busy_milli` and `busy_known` are what is known of it from now on"},
	{"node", "string", "of a node"},
	{"shut", "integer[]", "of a node or GPUs: which of them take no jobs; not there where nothing was said"},
	END,
};
static const struct sw_api_field event_list[] = {
	{"events", "#KeptEvent[]", "one page"},
	{"next", "integer", "the `after` of the next page; null: there is none. A page may be short and have a next one"},
	{"last_job", "integer", "the highest number that a job has: on the last page, that of the last submit"},
	{"since", "string", "what happened before this moment is not there any more; null: all is there"},
	END,
};
static const struct sw_api_field why[] = {
	{"id", "integer", "the job"},
	{"state", "string", "as in Job"},
	{"why", "string", "one sentence"},
	{"held", "boolean", "a user holds it back"},
	{"stop", "#Stop", "as in Job; null for one that has left the controller's memory"},
	{"sharing", "#Sharing", "as in Job"},
	END,
};
static const struct sw_api_field forecast[] = {
	{"at", "string", "the moment of the state that it was made of"},
	{"seq", "integer", "the last event of that state"},
	{"jobs", "#Estimate[]", "those that wait; of a trial, one for each job of the request, and of an array for its first member"},
	{"failed", "string", "why there is no forecast now; null: there is one"},
	{"next", "integer", "the cursor of the next page; null: there is none. A page may be short and have a next one"},
	END,
};
static const struct sw_api_field estimate[] = {
	{"id", "integer", "the job; null: it was tried and not submitted"},
	{"estimated_start_at", "string", "when it will probably start; null: there is no estimate"},
	{"basis", "#Basis", "how many jobs are taken to end before that, by what their lengths rest on; null: there is no estimate"},
	{"no_estimate", "string", "why there is none; null: there is one"},
	{"makes_jobs", "integer", "of a trial, how many jobs a submit would make: the members of an array, else 1; null: it is a job"},
	{"would_be_refused", "boolean", "of a trial: a submit would make a job that the scheduler does not take"},
	END,
};
static const struct sw_api_field basis[] = {
	{"expected", "integer", "what their owners expect"},
	{"limits", "integer", "their time limits: they may end sooner"},
	{"alike", "integer", "the median of earlier jobs of the same user and name"},
	{"all", "integer", "the median of all earlier jobs"},
	{"again", "integer", "they run longer than any job before: as long again as until now"},
	END,
};
static const struct sw_api_field gpu[] = {
	{"index", "integer", "on its node"},
	{"uuid", "string", "as the driver names it"},
	{"name", "string", "its model; null: not known"},
	{"memory_bytes", "integer", "in all"},
	{"memory_used_bytes", "integer", "this and what follows: as last sampled; null: no sample"},
	{"busy", "number", "share of the time that it worked, 0 to 1"},
	{"power_w", "number", "watts"},
	{"temperature_c", "integer", "degrees Celsius"},
	{"sampled_at", "string", "RFC 3339"},
	{"shut", "string",
	 "why it takes no jobs; null: it does. `stranger`: processes outside the queue use it. `excluded`: the operator keeps it back. "
	 "`dead`: it does not answer its driver. `silent`: the driver does not answer at all"},
	{"shut_by", "string", "what uses it, or what the driver says; null: nothing is known"},
	{"shut_since", "string", "RFC 3339; not there: it takes jobs"},
	{"strangers", "#Stranger[]", "processes outside the queue that use it"},
	END,
};
static const struct sw_api_field stranger[] = {
	{"pid", "integer", "null: not known, as where the driver counts in another namespace"},
	{"user", "string", "null: not known"},
	{"program", "string", "null: not known"},
	{"memory_bytes", "integer", "of the GPU's"},
	{"since", "string", "when it was seen first, RFC 3339"},
	END,
};
static const struct sw_api_field node[] = {
	{"devices", "#Gpu[]", "as its agent described them; empty until it has since the controller started"},
	END,
};
static const struct sw_api_field node_change[] = {
	{"name", "string", "of the node"},
	{"closed", "boolean", "whether it takes no new jobs; needed unless it is removed"},
	{"removed", "boolean",
	 "true: it is given up for good. It must be unreachable. Its jobs end as lost, but those with `on_lost` restart start anew"},
	{"reason", "string", "for people"},
	END,
};
static const struct sw_api_field node_list[] = {
	{"nodes", "#Node[]", ""},
	END,
};
static const struct sw_api_field cluster[] = {
	{"version", "string", "of Sharewell"},
	{"policy", "string", "in charge"},
	{"nodes", "integer", ""},
	{"nodes_up", "integer", ""},
	{"gpus", "integer", "of the nodes that are up"},
	{"gpus_free", "integer", "of those"},
	{"jobs", "object", "how many in each state, by its short name"},
	{"now", "string", "the controller's clock"},
	{"started_at", "string", "when this controller started"},
	{"seq", "integer", "number of the last event"},
	{"aside", "integer", "records of the journal that could not be applied or read, and are set aside"},
	END,
};
static const struct sw_api_field policy[] = {
	{"policy", "string", "in charge"},
	{"settings", "object", "its parameters as they are, by name, as `set` takes them"},
	{"placement", "string", "the placement rule"},
	{"available", "object[]", "each with name, about and parameters"},
	END,
};
static const struct sw_api_field policy_change[] = {
	{"policy", "string", "its name"},
	{"set", "object", "its parameters, by name; what is left out has its preset"},
	END,
};
static const struct sw_api_field world[] = {
	{"world", "string", "its name; empty: the controller was given none"},
	{"chosen", "boolean", "an operator chose it while the cluster ran, so that a restart keeps it"},
	{"terms", "object", "quantum_ns, moves and the others, as the engine has them"},
	{"text", "string", "the file, as it was given"},
	END,
};
static const struct sw_api_field world_change[] = {
	{"name", "string", "what it is called in messages"},
	{"text", "string", "a world file (docs/worlds.md); it may begin with `base: live`"},
	END,
};
static const struct sw_api_field quota[] = {
	{"tenant", "string", ""},
	{"gpus", "integer", "its guaranteed jobs may hold this many; null lifts the quota"},
	END,
};
static const struct sw_api_field tenant[] = {
	{"tenant", "string", "null: all those together that the asker has nothing to do with"},
	{"quota", "integer", "GPUs that its guaranteed jobs may hold; null: no limit"},
	{"gpus", "integer", "its jobs hold"},
	{"gpus_guaranteed", "integer", "of these, those that count against the quota"},
	{"running", "integer", "jobs"},
	{"pending", "integer", "jobs that compete; those on hold are not counted"},
	{"gpus_wanted", "integer", "by those"},
	END,
};
static const struct sw_api_field tenant_list[] = {
	{"tenants", "#Tenant[]", "operators see all, others those that they have living jobs of"},
	END,
};
static const struct sw_api_field event[] = {
	{"seq", "integer", "its number; also the id of the server-sent event"},
	{"at", "string", "RFC 3339"},
	{"kind", "string",
	 "submit cancel hold release requeue limit move node node_lost node_unreachable node_removed node_closed node_opened gpus report "
	 "policy world quota. `ended`: of a job that is watched alone and ended with another. `reset`: events were missed, look anew"},
	{"job", "#Job", "as it is now, which may be later than the event"},
	{"node", "string", "where it happened, if it did somewhere"},
	END,
};
static const struct sw_api_field health[] = {
	{"status", "string", "`ok` or `failing`"},
	{"journal", "string", "`ok`, what is amiss with it, or why it cannot be written; only for those with a name"},
	END,
};
static const struct sw_api_field error_inner[] = {
	{"fact", "string", "what went wrong"},
	{"detail", "string", "where and why; may be empty"},
	{"hint", "string", "what to do; may be empty"},
	END,
};
static const struct sw_api_field error[] = {
	{"error", "#Problem", ""},
	END,
};
static const struct sw_api_field sync_lists[] = {
	{"inventory", "#Inventory", "what the node has; not there: as before"},
	{"jobs", "#Run[]", "every run that the agent knows"},
	{"samples", "#Sample[]", "looks at GPUs and runs since the sync before"},
	{"shut", "#Shut[]", "GPUs that take no jobs; not there: the agent does not know"},
	{"strangers", "#Outsider[]", "processes outside the queue that use GPUs"},
	END,
};
static const struct sw_api_field inventory_lists[] = {
	{"gpus", "#InventoryGpu[]", "its GPUs, in their order"},
	END,
};
static const struct sw_api_field answer_lists[] = {
	{"wants", "#Want[]", "one for each run that shall be there: a run that is not among them must stop"},
	END,
};
static const struct sw_api_field want_parts[] = {
	{"spec", "#RunSpec", "how to run it, where the agent does not know it yet"},
	END,
};

const struct sw_schema sw_schemas[] = {
	{"JobRequest", "A job as it is asked for", .tables = {&sw_job_table}},
	{"Submitted", "What a submit made", .fields = submitted},
	{"Job", "A job as it stands", .fields = job, .tables = {&sw_job_brief_table, &sw_job_details_table}},
	{"Asked", "What a job asked for, in short", .tables = {&sw_asked_table}},
	{"Limit", "What a job may have of its GPUs. What a request leaves out stays as it was", .fields = limit},
	{"Move", "Where a running job is to go", .fields = move},
	{"Change", "What is done to many jobs", .fields = change},
	{"Changed", "What became of it", .fields = changed},
	{"ChangedJob", "One of the jobs", .fields = changed_job},
	{"JobGpu", "A job's last figures on its GPUs", .fields = job_gpu},
	{"Speed", "How a job gets on", .fields = speed},
	{"Sharing", "A job that shares its GPUs, and how much slower that makes it", .fields = sharing},
	{"Neighbour", "A job on the same GPUs", .fields = neighbour},
	{"Failure", "Why a run failed", .fields = failure},
	{"Stop", "Where, when and why the stop of a run came from", .fields = stop},
	{"JobList", "A page of jobs", .fields = job_list},
	{"Why", "Why a job waits", .fields = why},
	{"Forecast", "When jobs will probably start", .fields = forecast},
	{"Estimate", "When one job will probably start", .fields = estimate},
	{"Basis", "What an estimate rests on", .fields = basis},
	{"Gpu", "A GPU and its last figures", .fields = gpu},
	{"Stranger", "A process outside the queue that uses a GPU", .fields = stranger},
	{"Node", "A node", .fields = node, .tables = {&sw_node_table}},
	{"NodeList", "All nodes", .fields = node_list},
	{"NodeChange", "A node that is closed to new jobs, or opened", .fields = node_change},
	{"Cluster", "The whole", .fields = cluster},
	{"Policy", "The policy in charge", .fields = policy},
	{"PolicyChange", "Another policy, or other parameters", .fields = policy_change},
	{"World", "The terms of the cluster's world", .fields = world},
	{"WorldChange", "Other terms", .fields = world_change},
	{"Quota", "GPUs that a tenant's guaranteed jobs may hold", .fields = quota},
	{"Tenant", "What a tenant may hold and holds", .fields = tenant},
	{"TenantList", "Tenants", .fields = tenant_list},
	{"Event", "Something that happened", .fields = event},
	{"KeptEvent", "Something that happened, and that the journal still has", .fields = kept_event},
	{"EventList", "Events of the journal", .fields = event_list},
	{"Sync", "What an agent tells: src/api/sync.h", .fields = sync_lists, .tables = {&sw_sync_table}},
	{"Inventory", "What a node has", .fields = inventory_lists, .tables = {&sw_inventory_table}},
	{"InventoryGpu", "One of its GPUs", .tables = {&sw_gpu_table}},
	{"Run", "A run, as its agent knows it", .tables = {&sw_run_table}},
	{"Sample", "A look at a GPU, at a run, or at a run on a GPU", .tables = {&sw_sample_table, &sw_sample_run_table}},
	{"Shut", "A GPU that takes no jobs", .tables = {&sw_shut_table}},
	{"Outsider", "A process outside the queue on a GPU", .tables = {&sw_stranger_table}},
	{"Answer", "What it hears: src/api/sync.h", .fields = answer_lists, .tables = {&sw_answer_table}},
	{"Want", "What shall become of a run", .fields = want_parts, .tables = {&sw_want_head_table, &sw_want_words_table, &sw_want_table}},
	{"RunSpec", "How to run a job, with everything decided", .tables = {&sw_spec_table}},
	{"Health", "Whether the controller can do its work", .fields = health},
	{"Error", "What went wrong", .fields = error},
	{"Problem", "The same, in three parts", .fields = error_inner},
	{.name = NULL},
};

const struct sw_schema *sw_schema_find(const char *name)
{
	for (const struct sw_schema *schema = sw_schemas; schema->name != NULL; schema++)
		if (strcmp(schema->name, name) == 0)
			return schema;
	return NULL;
}

bool sw_schema_field(const struct sw_schema *schema, size_t index, struct sw_api_field *ret_field, const struct sw_field **ret_bounds)
{
	*ret_bounds = NULL;
	for (size_t t = 0; t < sizeof schema->tables / sizeof schema->tables[0] && schema->tables[t] != NULL; t++) {
		const struct sw_table *table = schema->tables[t];
		if (index < table->count) {
			const struct sw_field *field = &table->fields[index];
			*ret_field = (struct sw_api_field){field->name, sw_field_type(field), field->about != NULL ? field->about : ""};
			*ret_bounds = field;
			return true;
		}
		index -= table->count;
	}
	for (size_t i = 0; schema->fields != NULL && schema->fields[i].name != NULL; i++)
		if (i == index) {
			*ret_field = schema->fields[i];
			return true;
		}
	return false;
}
