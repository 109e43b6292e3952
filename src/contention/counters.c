#include "contention/counters.h"

#include <string.h>

#include "base/number.h"

/* "Memory" is what Nsight Compute calls by that name, the busiest of the ways to memory. So it is
 * in the study that the built-in profiles are from, where it is reads and writes together. */
#define DURATION "gpu__time_duration.sum"
#define OF_PEAK ".pct_of_peak_sustained_elapsed"
#define SM "sm__throughput.avg" OF_PEAK
#define MEMORY "gpu__compute_memory_throughput.avg" OF_PEAK
#define L2 "lts__throughput.avg" OF_PEAK
#define READ "dram__bytes_read.sum" OF_PEAK
#define WRITE "dram__bytes_write.sum" OF_PEAK

const char sw_counters_metrics[] = DURATION "," SM "," MEMORY "," L2 "," READ "," WRITE;

enum { PARTS = SW_USE_DRAM_WRITE + 1, CELLS_MAX = 64 };

static const char *const metrics[PARTS] = {SM, MEMORY, L2, READ, WRITE};
static const char *const part_names[PARTS] = {"SMs", "memory pipeline", "L2", "reads", "writes"};

struct cell {
	const char *text;
	size_t size;
};

/* Where what we look for stands in a line. */
enum column { ID, PROCESS, NAME, UNIT, VALUE, COLUMNS };
static const char *const column_names[COLUMNS] = {"ID", "Process ID", "Metric Name", "Metric Unit", "Metric Value"};

struct reading {
	int at[COLUMNS]; /* -1: there is none */
	uint32_t line;
	struct cell id, process;
	int64_t duration_ns;  /* of the kernel that is being read; 0: not known yet */
	int64_t micro[PARTS]; /* millionths of a percent */
	bool known[PARTS];
	double sum[PARTS], weight[PARTS];
	struct sw_counters found;
};

/* ---- lines */

static bool is(struct cell cell, const char *text)
{
	return cell.size == strlen(text) && memcmp(cell.text, text, cell.size) == 0;
}

static bool is_same(struct cell a, struct cell b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.text, b.text, a.size) == 0);
}

/* Where the cell that begins at `at` ends: at its comma or quote, of which two in a quoted
 * one are one of its text. */
static size_t end_of_cell(const char *line, size_t size, size_t at, bool quoted)
{
	while (at < size && (quoted || line[at] != ',')) {
		if (quoted && line[at] == '"') {
			if (at + 1 == size || line[at + 1] != '"')
				break;
			at++;
		}
		at++;
	}
	return at;
}

/* Returns how many cells there are; those for which there is no room are left out. */
static size_t split(const char *line, size_t size, struct cell cells[CELLS_MAX])
{
	size_t count = 0, at = 0;
	while (at <= size && count < CELLS_MAX) {
		bool quoted = at < size && line[at] == '"';
		size_t begin = at + quoted;
		at = end_of_cell(line, size, begin, quoted);
		cells[count++] = (struct cell){line + begin, at - begin};
		while (at < size && line[at] != ',')
			at++;
		at++;
	}
	return count;
}

static bool take_header(struct reading *reading, const struct cell *cells, size_t count)
{
	int at[COLUMNS];
	for (int column = 0; column < COLUMNS; column++) {
		at[column] = -1;
		for (size_t i = 0; i < count; i++)
			if (is(cells[i], column_names[column]))
				at[column] = (int)i;
	}
	if (at[ID] < 0 || at[NAME] < 0 || at[UNIT] < 0 || at[VALUE] < 0)
		return false;
	memcpy(reading->at, at, sizeof at);
	return true;
}

/* ---- figures */

/* Millionths; thousands may have commas between. */
static int parse_value(struct cell cell, int64_t *ret_micro)
{
	char plain[48];
	size_t size = 0;
	for (size_t i = 0; i < cell.size; i++) {
		if (cell.text[i] == ',')
			continue;
		if (size == sizeof plain)
			return SW_EINPUT;
		plain[size++] = cell.text[i];
	}
	return sw_parse_decimal(plain, size, 1000000, ret_micro);
}

/* "usecond" and "us" alike; 0: this is no time. */
static int64_t unit_ns(struct cell unit)
{
	static const struct {
		const char *name, *brief;
		int64_t ns;
	} units[] = {{"nsecond", "ns", 1}, {"usecond", "us", SW_NS_PER_US}, {"msecond", "ms", SW_NS_PER_MS}, {"second", "s", SW_NS_PER_S}};
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (is(unit, units[i].name) || is(unit, units[i].brief))
			return units[i].ns;
	return 0;
}

static int take_duration(struct reading *reading, struct cell unit, int64_t micro)
{
	int64_t scale = unit_ns(unit);
	if (scale == 0 || micro < 0 || micro > INT64_MAX / scale)
		return SW_EINPUT;
	int64_t ns = micro * scale / 1000000;
	reading->duration_ns = ns > 0 ? ns : 1;
	return 0;
}

static int take_part(struct reading *reading, int part, struct cell unit, int64_t micro)
{
	/* A little above all there is was seen: what is counted and the time are
	 * not from the same pass. */
	if (!is(unit, "%") || micro < 0 || micro > INT64_C(1000) * 1000000)
		return SW_EINPUT;
	reading->micro[part] = micro < INT64_C(100) * 1000000 ? micro : INT64_C(100) * 1000000;
	reading->known[part] = true;
	return 0;
}

/* ---- kernels */

static void end_kernel(struct reading *reading)
{
	double time = (double)reading->duration_ns;
	if (reading->duration_ns > 0) {
		reading->found.kernels++;
		reading->found.time_ns += reading->duration_ns;
	}
	for (int part = 0; part < PARTS && reading->duration_ns > 0; part++)
		if (reading->known[part]) {
			reading->sum[part] += time * (double)reading->micro[part];
			reading->weight[part] += time;
		}
	reading->duration_ns = 0;
	memset(reading->known, 0, sizeof reading->known);
}

static int refuse(struct sw_err *err, uint32_t line, struct cell name, struct cell unit, struct cell value)
{
	sw_err_set(err, SW_EINPUT, "cannot read what Nsight Compute measured");
	sw_err_detail(err, "line %u: '%.*s' is '%.*s' in '%.*s'", line, (int)(name.size < 80 ? name.size : 80), name.text,
		      (int)(value.size < 40 ? value.size : 40), value.text, (int)(unit.size < 20 ? unit.size : 20), unit.text);
	return SW_EINPUT;
}

static int take_line(struct reading *reading, const struct cell *cells, size_t count, struct sw_err *err)
{
	for (int column = 0; column < COLUMNS; column++)
		if (reading->at[column] >= (int)count)
			return 0; /* cut off, or no line of the table */
	struct cell name = cells[reading->at[NAME]], unit = cells[reading->at[UNIT]], value = cells[reading->at[VALUE]];
	struct cell id = cells[reading->at[ID]], process = reading->at[PROCESS] >= 0 ? cells[reading->at[PROCESS]] : (struct cell){"", 0};
	if (!is_same(id, reading->id) || !is_same(process, reading->process)) {
		end_kernel(reading);
		reading->id = id;
		reading->process = process;
	}
	int64_t micro = 0;
	int part = is(name, DURATION) ? PARTS : 0;
	while (part < PARTS && !is(name, metrics[part]))
		part++;
	if ((part == PARTS && !is(name, DURATION)) || is(value, "n/a") || is(value, ""))
		return 0;
	int r = parse_value(value, &micro);
	r = r < 0 ? r : part == PARTS ? take_duration(reading, unit, micro) : take_part(reading, part, unit, micro);
	return r < 0 ? refuse(err, reading->line, name, unit, value) : 0;
}

/* ---- all of it */

/* Nothing was measured: what it said about that. */
static int no_kernels(const char *text, size_t size, struct sw_err *err)
{
	static const char mark[] = "==ERROR== ", denied[] = "ERR_NVGPUCTRPERM";
	if (memmem(text, size, denied, sizeof denied - 1) != NULL) {
		sw_err_set(err, SW_EDENIED, "this user may not read the GPU's counters");
		sw_err_detail(err, "the driver says %s", denied);
		sw_err_hint(err, "An administrator may, or allow it to all: NVreg_RestrictProfilingToAdminUsers=0 for the module nvidia.");
		return SW_EDENIED;
	}
	const char *said = memmem(text, size, mark, sizeof mark - 1);
	if (said != NULL) {
		said += sizeof mark - 1;
		size_t left = size - (size_t)(said - text);
		const char *end = memchr(said, '\n', left);
		size_t length = end != NULL ? (size_t)(end - said) : left;
		sw_err_set(err, SW_EIO, "Nsight Compute could not measure the program");
		sw_err_detail(err, "it says: %.*s", (int)(length < 400 ? length : 400), said);
		return SW_EIO;
	}
	sw_err_set(err, SW_ENOTFOUND, "Nsight Compute has measured no kernel");
	sw_err_detail(err, "the program launched none, or ended before those that were to be measured");
	return SW_ENOTFOUND;
}

static int conclude(struct reading *reading, struct sw_err *err)
{
	struct sw_counters *found = &reading->found;
	for (int part = 0; part < PARTS; part++) {
		if (reading->weight[part] <= 0) {
			sw_err_set(err, SW_EINPUT, "cannot read what Nsight Compute measured");
			sw_err_detail(err, "of the %s there is no figure (%s)", part_names[part], metrics[part]);
			return SW_EINPUT;
		}
		/* Of percent, in millionths: 100000 of them are a thousandth. */
		found->use_milli[part] = (uint16_t)(reading->sum[part] / reading->weight[part] / 100000 + 0.5);
		found->use_milli[part] += found->use_milli[part] == 0;
	}
	return 0;
}

int sw_counters_read(const char *text, size_t size, struct sw_counters *ret_counters, struct sw_err *err)
{
	struct reading reading = {.at = {-1, -1, -1, -1, -1}};
	struct cell cells[CELLS_MAX];
	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t length = end != NULL ? (size_t)(end - text) - at : size - at;
		const char *line = text + at;
		at += length + 1;
		reading.line++;
		length -= length > 0 && line[length - 1] == '\r';
		size_t count = length > 0 && line[0] == '"' ? split(line, length, cells) : 0;
		if (count == 0 || take_header(&reading, cells, count) || reading.at[ID] < 0)
			continue;
		int r = take_line(&reading, cells, count, err);
		if (r < 0)
			return r;
		if (reading.found.kernels > SW_COUNTERS_KERNELS_MAX)
			return sw_err_set(err, SW_ELIMIT, "Nsight Compute has measured more than %u kernels", SW_COUNTERS_KERNELS_MAX);
	}
	end_kernel(&reading);
	if (reading.found.kernels == 0)
		return no_kernels(text, size, err);
	int r = conclude(&reading, err);
	if (r == 0)
		*ret_counters = reading.found;
	return r;
}
