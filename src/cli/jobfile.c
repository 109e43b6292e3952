/* Job files: YAML whose keys are the fields of api/job.h. Scalars stay text; the decoder of
 * jobs knows what they mean. */
#include <string.h>

#include "base/yaml.h"
#include "cli/job_options.h"

static json_t *convert(const struct sw_yaml_node *node, unsigned depth)
{
	json_t *value = node->kind == SW_YAML_IS_MAP ? json_object() : node->kind == SW_YAML_IS_LIST ? json_array() : NULL;
	if (node->kind == SW_YAML_IS_SCALAR) {
		/* Truth values of the job itself; what stands in a list or in `env` is text. */
		bool truth = depth == 1 && !node->quoted && (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0);
		return truth ? json_boolean(node->text[0] == 't') : json_stringn(node->text, node->size);
	}
	for (const struct sw_yaml_node *member = node->first; member != NULL && value != NULL; member = member->next) {
		json_t *converted = convert(member, depth + 1);
		int r = node->kind == SW_YAML_IS_MAP ? json_object_set_new(value, member->key, converted)
						     : json_array_append_new(value, converted);
		if (r != 0) {
			json_decref(value);
			return NULL;
		}
	}
	return value;
}

int sw_cli_jobfile(const char *path, json_t **ret_jobs, struct sw_err *err)
{
	SW_CLEANUP(sw_yaml_freep) struct sw_yaml *doc = NULL;
	int r = sw_yaml_load("job file", path, &doc, err);
	if (r < 0)
		return r;
	const struct sw_yaml_node *root = sw_yaml_root(doc);
	if (root->kind == SW_YAML_IS_SCALAR) {
		sw_yaml_fail(root, err, "expected a job: fields such as 'command: python train.py'");
		return SW_EINPUT;
	}
	for (const struct sw_yaml_node *member = root->first; root->kind == SW_YAML_IS_LIST && member != NULL; member = member->next)
		if (member->kind != SW_YAML_IS_MAP)
			return sw_yaml_fail(member, err, "expected a job: fields such as 'command: python train.py'");
	/* In a list of jobs the fields stand one level deeper. */
	*ret_jobs = convert(root, root->kind == SW_YAML_IS_LIST ? UINT32_MAX : 0);
	return *ret_jobs != NULL ? 0 : sw_yaml_fail(root, err, "out of memory, or text that is not UTF-8");
}
