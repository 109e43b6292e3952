/* A world in words: what was charged and what was left out, for the head of every report. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "world/world.h"

static const char *time_text(int64_t ns, char buffer[32])
{
	return ns == 0 ? "nothing" : sw_format_duration(ns, buffer);
}

static void say_transfer(FILE *out, const char *verb, const struct sw_transfer_cost *cost)
{
	char fixed[32];
	fprintf(out, "%s costs %s", verb, time_text(cost->fixed_ns, fixed));
	if (cost->bytes_per_s > 0)
		fprintf(out, " and the copy of its GPU memory at %" PRIu64 ".%" PRIu64 " GB/s", cost->bytes_per_s / 1000000000,
			cost->bytes_per_s / 100000000 % 10);
}

static void say_preemption(FILE *out, const struct sw_world *world)
{
	char text[32];
	fputs("  preemption: ", out);
	if (world->quantum_ns > 0)
		fprintf(out, "not before a job ran %s; ", sw_format_duration(world->quantum_ns, text));
	switch (world->preempt) {
	case SW_PREEMPT_FREE:
		fputs("free, no progress is lost\n", out);
		break;
	case SW_PREEMPT_SUSPEND:
		say_transfer(out, "suspending a job", &world->suspend);
		say_transfer(out, ", resuming it", &world->resume);
		fputs("; a job that was preempted often is protected for up to 16 times what that costs\n", out);
		break;
	case SW_PREEMPT_RESTART:
		fprintf(out,
			"the job starts again from its checkpoint, which costs %s; a job that was preempted often is protected for up to "
			"16 times that\n",
			time_text(world->restart_ns, text));
		break;
	case SW_PREEMPT_IN_PLACE:
		say_transfer(out, "suspending a job where it runs", &world->suspend);
		say_transfer(out, ", resuming it there", &world->resume);
		fprintf(out,
			"; unless its owner says otherwise, a guaranteed job is stopped by the rule '%s', an opportunistic one by '%s'\n",
			sw_stop_rule_words[world->guaranteed_stop], sw_stop_rule_words[world->opportunistic_stop]);
		break;
	}
}

static void say_learned(FILE *out, const struct sw_world *world)
{
	if (world->learned != NULL && world->learned[0] != '\0')
		fprintf(out, "  sharing: what was measured counts before the profiles, from %s\n", world->learned);
}

static void say_sharing(FILE *out, const struct sw_world *world)
{
	char text[32];
	if (world->recorded)
		fputs("  sharing: slowdown by neighbours is inside the recorded times; policies expect it by the models' profiles\n", out);
	else if (!world->sharing_slowdown)
		fputs("  sharing: no slowdown by neighbours on a GPU\n", out);
	else if (world->sharing_by == SW_SHARING_BY_STAGES)
		fputs("  sharing: opportunistic jobs slow down by the stages of their iterations, guaranteed ones do not\n", out);
	else if (world->sharing_by == SW_SHARING_BY_SLICES)
		fprintf(out, "  sharing: jobs on one GPU take turns, by how busy their models' profiles keep it%s\n",
			world->gate_milli > 0 ? "; opportunistic ones get time in which guaranteed ones are idle" : "");
	else if (world->gate_milli == 0)
		fputs("  sharing: jobs on one GPU slow each other down, by their models' profiles\n", out);
	else
		fprintf(out,
			"  sharing: jobs on one GPU slow each other down, by their models' profiles; opportunistic ones get the idle time "
			"of guaranteed ones, and cost them %" PRId64 ".%" PRId64 " %%\n",
			(world->gate_milli - 1000) / 10, (world->gate_milli - 1000) % 10);
	if (world->split_milli != 0)
		fprintf(out, "  splitting: a step of a job in two parts takes %" PRId64 ".%03" PRId64 " times as long as whole\n",
			world->split_milli / 1000, world->split_milli % 1000);
	if (world->switch_ns > 0)
		fprintf(out, "  turns in place: a job that goes on where it stood still loses %s, whatever its size\n",
			sw_format_duration(world->switch_ns, text));
}

static void say_placement(FILE *out, const struct sw_world *world)
{
	fprintf(out, "  moving: %s", world->replace_is_free ? "every decision may lay out all running jobs anew, free of cost" : "");
	if (!world->replace_is_free)
		say_transfer(out, "migrating a job", &world->migrate);
	if (world->moves != SW_MOVES_FREELY)
		fputs(world->moves == SW_MOVES_NEVER ? "; running jobs stay where they are"
						     : "; only where the policy asks for it, within a node",
		      out);
	fputs("\n", out);
	fprintf(out, "  placement: %s\n",
		world->recorded		    ? "slowdown by distance is inside the recorded times"
		: world->placement_slowdown ? "jobs slow down with the distance between their GPUs, by their models' profiles"
					    : "no slowdown by distance");
	sw_gpu_rules_say(out, &world->gpu_types);
	say_sharing(out, world);
	say_learned(out, world);
}

static void say_drivers(FILE *out, const struct sw_world *world)
{
	char text[32];
	if (world->nodes_join)
		fputs("  nodes: may join, so that a job that is too large for the cluster waits\n", out);
	if (world->nodes_switch)
		fprintf(out, "  power: a policy may switch nodes off; one that is switched on again is up after %s\n",
			time_text(world->boot_ns, text));
	if (!world->tells_speed)
		fputs("  speed: as measured, not known before\n", out);
}

static void say_solve(FILE *out, const struct sw_world *world)
{
	char start[32], iteration[32];
	if (world->solve_start_ns > 0 || world->solve_iteration_ns > 0)
		fprintf(out, "  questions: an answer to the policy takes %s, and %s for each iteration of its solver\n",
			time_text(world->solve_start_ns, start), time_text(world->solve_iteration_ns, iteration));
}

static void say_work(FILE *out, const struct sw_world *world)
{
	char text[32];
	char start[32], restart[32];
	fprintf(out, "  starting: costs %s, after a failure %s\n", time_text(world->start_ns, start),
		time_text(world->restart_ns, restart));
	if (world->work_from_iterations)
		fprintf(out, "  work: iterations x iteration time x %" PRId64 ".%06" PRId64 ", not the trace's duration\n",
			world->iteration_scale_ppm / 1000000, world->iteration_scale_ppm % 1000000);
	else
		fputs("  work: the trace's duration\n", out);
	if (world->event_overhead)
		fprintf(out,
			"  overhead: each event costs every running job %s unless a table of %zu entries by GPUs and model says "
			"otherwise\n",
			time_text(world->overhead_default_ns, text), world->overheads.count);
}

static void say_host(FILE *out, const struct sw_world *world)
{
	char memory[32];
	if (world->host_cpus_per_gpu == 0 && world->host_mem_per_gpu_bytes == 0) {
		fputs("  host: cores and memory as the placement rule asks for them\n", out);
		return;
	}
	fputs("  host: each GPU of a job takes", out);
	if (world->host_cpus_per_gpu > 0)
		fprintf(out, " %" PRId64 " cores", world->host_cpus_per_gpu);
	if (world->host_mem_per_gpu_bytes > 0)
		fprintf(out, "%s %s of memory", world->host_cpus_per_gpu > 0 ? " and" : "",
			sw_format_bytes(world->host_mem_per_gpu_bytes, memory));
	fputs("\n", out);
}

static void say_faults(FILE *out, const struct sw_world *world)
{
	char mtbf[32], repair[32], checkpoint[32];
	if (world->node_mtbf_ns == 0 && world->job_failure_ppm == 0) {
		fputs("  faults: none\n", out);
		return;
	}
	fputs("  faults:", out);
	if (world->node_mtbf_ns > 0)
		fprintf(out, " a node fails every %s on average and is back after %s;", sw_format_duration(world->node_mtbf_ns, mtbf),
			sw_format_duration(world->node_repair_ns, repair));
	if (world->job_failure_ppm > 0)
		fprintf(out, " a run fails with a chance of %" PRId64 " in a million;", world->job_failure_ppm);
	if (world->checkpoint_ns > 0)
		fprintf(out, " what is lost goes on from the last multiple of %s of its run;",
			sw_format_duration(world->checkpoint_ns, checkpoint));
	else
		fputs(" what is lost goes on from where its run began;", out);
	fprintf(out, " a failed job is tried again %" PRId64 " times\n", world->retries);
}

char *sw_world_describe(const struct sw_world *world)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (out == NULL)
		return NULL;
	fprintf(out, "World '%s': %s\n", world->name, world->about);
	say_preemption(out, world);
	say_placement(out, world);
	say_work(out, world);
	say_drivers(out, world);
	say_solve(out, world);
	say_host(out, world);
	say_faults(out, world);
	const char *line = world->not_modelled;
	for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
		fprintf(out, "  not modelled: %.*s\n", (int)(end - line), line);
	bool failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}
