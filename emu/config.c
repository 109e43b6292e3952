/* Settings: lines (or parts between ';') of the form `key = value` or `key: value`; '#' begins a
 * comment; `gpu.N.key` speaks of one GPU. A mistake is kept in `problem` and makes cuInit fail: an
 * emulator with other settings than asked for would be worse than none. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct emu_config config;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t hash_text(const char *text, uint64_t hash)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash;
}

static bool parse_scaled(const char *text, const char *suffixes, const uint64_t *factors, uint64_t *ret_value)
{
	char *end = NULL;
	errno = 0;
	double number = strtod(text, &end);
	if (end == text || errno != 0 || !(number >= 0) || number > 1e18)
		return false;
	while (*end == ' ')
		end++;
	uint64_t factor = factors[0];
	if (*end != '\0') {
		const char *found = strchr(suffixes, tolower((unsigned char)*end));
		if (found == NULL)
			return false;
		factor = factors[1 + (found - suffixes)];
	}
	double value = number * (double)factor;
	if (value > 9e18)
		return false;
	*ret_value = (uint64_t)(value + 0.5);
	return true;
}

bool emu_config_parse_bytes(const char *text, uint64_t *ret_bytes)
{
	static const uint64_t factors[] = {1, 1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40};
	return parse_scaled(text, "kmgt", factors, ret_bytes);
}

/* Gigabytes (10^9) a second. */
static bool parse_rate(const char *text, uint64_t *ret_value)
{
	static const uint64_t factors[] = {1000000000ULL};
	return parse_scaled(text, "", factors, ret_value) && *ret_value > 0;
}

static bool parse_microseconds(const char *text, uint64_t *ret_value)
{
	static const uint64_t factors[] = {1000};
	return parse_scaled(text, "", factors, ret_value);
}

static bool parse_speed(const char *text, uint64_t *ret_value)
{
	static const uint64_t factors[] = {1000000};
	return parse_scaled(text, "", factors, ret_value) && *ret_value > 0;
}

static bool parse_count(const char *text, uint64_t *ret_value)
{
	static const uint64_t factors[] = {1};
	return parse_scaled(text, "", factors, ret_value);
}

bool emu_config_parse_fault(const char *text, size_t length, struct emu_fault *ret_fault)
{
	char copy[256];
	if (length == 0 || length >= sizeof copy)
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	struct emu_fault fault = {.first = 1, .count = 1};
	char *rest = NULL, *word = strtok_r(copy, ": ", &rest);
	if (word == NULL || strlen(word) >= sizeof fault.entry)
		return false;
	snprintf(fault.entry, sizeof fault.entry, "%s", word);
	while ((word = strtok_r(NULL, ": ", &rest)) != NULL) {
		uint64_t value = 0;
		char *equals = strchr(word, '=');
		if (strcmp(word, "lose") == 0) {
			fault.lose_device = true;
			continue;
		}
		if (strncmp(word, "hold=", 5) == 0) {
			if (word[5] == '\0' || (size_t)snprintf(fault.hold, sizeof fault.hold, "%s", word + 5) >= sizeof fault.hold)
				return false;
			continue;
		}
		if (equals == NULL || !parse_count(equals + 1, &value))
			return false;
		*equals = '\0';
		if (strcmp(word, "first") == 0)
			fault.first = value;
		else if (strcmp(word, "count") == 0)
			fault.count = value;
		else if (strcmp(word, "error") == 0)
			fault.error = (int)value;
		else if (strcmp(word, "delay_us") == 0)
			fault.delay_ns = value * 1000;
		else
			return false;
	}
	*ret_fault = fault;
	return true;
}

static bool set_gpu(struct emu_gpu_config *gpu, const char *key, const char *value)
{
	if (strcmp(key, "name") == 0)
		return (size_t)snprintf(gpu->name, sizeof gpu->name, "%s", value) < sizeof gpu->name;
	if (strcmp(key, "uuid") == 0)
		return (size_t)snprintf(gpu->uuid, sizeof gpu->uuid, "%s", value) < sizeof gpu->uuid;
	if (strcmp(key, "memory") == 0)
		return emu_config_parse_bytes(value, &gpu->memory_bytes);
	if (strcmp(key, "context") == 0)
		return emu_config_parse_bytes(value, &gpu->context_bytes);
	if (strcmp(key, "h2d") == 0)
		return parse_rate(value, &gpu->h2d_bps);
	if (strcmp(key, "d2h") == 0)
		return parse_rate(value, &gpu->d2h_bps);
	if (strcmp(key, "d2d") == 0)
		return parse_rate(value, &gpu->d2d_bps);
	if (strcmp(key, "checkpoint") == 0)
		return parse_rate(value, &gpu->checkpoint_bps);
	if (strcmp(key, "speed") == 0)
		return parse_speed(value, &gpu->speed_ppm);
	if (strcmp(key, "copy_latency_us") == 0)
		return parse_microseconds(value, &gpu->copy_latency_ns);
	if (strcmp(key, "launch_us") == 0)
		return parse_microseconds(value, &gpu->launch_ns);
	if (strcmp(key, "slice_us") == 0)
		return parse_microseconds(value, &gpu->slice_ns) && gpu->slice_ns >= 10000;
	if (strcmp(key, "multiprocessors") == 0) {
		uint64_t count = 0;
		bool good = parse_count(value, &count) && count > 0 && count < 10000;
		gpu->multiprocessors = (unsigned)count;
		return good;
	}
	return false;
}

static bool set(const char *key, const char *value)
{
	uint64_t number = 0;
	if (strcmp(key, "gpus") == 0) {
		bool good = parse_count(value, &number) && number <= EMU_GPUS_MAX;
		config.gpu_count = (unsigned)number;
		return good;
	}
	if (strcmp(key, "pids") == 0) {
		static const char *const words[] = {"real", "foreign", "none"};
		for (unsigned i = 0; i < 3; i++)
			if (strcmp(words[i], value) == 0) {
				config.pids = (enum emu_pids)i;
				return true;
			}
		return false;
	}
	if (strcmp(key, "state") == 0)
		return (size_t)snprintf(config.state_path, sizeof config.state_path, "%s", value) < sizeof config.state_path;
	if (strcmp(key, "control") == 0)
		return (size_t)snprintf(config.control_path, sizeof config.control_path, "%s", value) < sizeof config.control_path;
	if (strcmp(key, "fault") == 0)
		return config.fault_count < EMU_FAULTS_MAX &&
		       emu_config_parse_fault(value, strlen(value), &config.faults[config.fault_count++]);
	if (strncmp(key, "gpu.", 4) == 0) {
		char *end = NULL;
		unsigned long index = strtoul(key + 4, &end, 10);
		return *end == '.' && index < EMU_GPUS_MAX && set_gpu(&config.gpus[index], end + 1, value);
	}
	for (unsigned i = 0; i < EMU_GPUS_MAX; i++)
		if (!set_gpu(&config.gpus[i], key, value))
			return false;
	return strcmp(key, "uuid") != 0;
}

static char *trim(char *text)
{
	while (isspace((unsigned char)*text))
		text++;
	char *end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	if (end - text >= 2 && *text == '"' && end[-1] == '"') {
		end[-1] = '\0';
		text++;
	}
	return text;
}

static void parse(char *text)
{
	unsigned number = 0;
	for (char *rest = text; rest != NULL && config.problem[0] == '\0';) {
		char *line = strsep(&rest, "\n;");
		number++;
		line[strcspn(line, "#")] = '\0';
		char *separator = line + strcspn(line, "=:");
		if (*trim(line) == '\0')
			continue;
		char end = *separator;
		*separator = '\0';
		char *key = trim(line), *value = end != '\0' ? trim(separator + 1) : NULL;
		if (value == NULL)
			snprintf(config.problem, sizeof config.problem, "line %u: '%.60s' has no value", number, key);
		else if (!set(key, value))
			snprintf(config.problem, sizeof config.problem, "line %u: cannot use '%.60s' = '%.60s'", number, key, value);
	}
}

static void parse_file(const char *path)
{
	static char text[65536];
	FILE *file = fopen(path, "re");
	if (file == NULL) {
		snprintf(config.problem, sizeof config.problem, "cannot read '%.120s': %s", path, strerror(errno));
		return;
	}
	size_t length = fread(text, 1, sizeof text - 1, file);
	bool whole = feof(file) != 0;
	fclose(file);
	text[length] = '\0';
	if (whole)
		parse(text);
	else
		snprintf(config.problem, sizeof config.problem, "'%.120s' is too long", path);
}

static void set_defaults(void)
{
	config.gpu_count = 1;
	for (unsigned i = 0; i < EMU_GPUS_MAX; i++) {
		config.gpus[i] = (struct emu_gpu_config){
			.memory_bytes = 16ULL << 30,
			.context_bytes = 300ULL << 20,
			.h2d_bps = 50000000000ULL,
			.d2h_bps = 50000000000ULL,
			.d2d_bps = 1500000000000ULL,
			.checkpoint_bps = 1500000000ULL,
			.copy_latency_ns = 5000,
			.launch_ns = 2000,
			.speed_ppm = 1000000,
			.slice_ns = 2000000,
			.multiprocessors = 132,
		};
		snprintf(config.gpus[i].name, sizeof config.gpus[i].name, "Sharewell emulated GPU");
	}
}

/* What is not given follows from the settings, so that a machine keeps its UUIDs and its
 * processes find each other. */
static void derive(const char *identity)
{
	uint64_t hash = hash_text(identity, 0xcbf29ce484222325ULL);
	for (unsigned i = 0; i < EMU_GPUS_MAX; i++) {
		uint64_t low = (hash + i + 1) * 0x9e3779b97f4a7c15ULL;
		low ^= low >> 29;
		if (config.gpus[i].uuid[0] == '\0')
			snprintf(config.gpus[i].uuid, sizeof config.gpus[i].uuid, "GPU-%08x-%04x-%04x-%04x-%012llx", (unsigned)(hash >> 32),
				 (unsigned)(hash >> 16) & 0xffff, (unsigned)hash & 0xffff, i, (unsigned long long)low & 0xffffffffffffULL);
	}
	if (config.state_path[0] != '\0')
		return;
	const char *folder = getenv("XDG_RUNTIME_DIR");
	if (folder == NULL || folder[0] != '/' || strlen(folder) > 300)
		folder = "/dev/shm";
	snprintf(config.state_path, sizeof config.state_path, "%s/sharewell-emu-%u-%016llx", folder, (unsigned)geteuid(),
		 (unsigned long long)hash);
}

static void load(void)
{
	char identity[4096] = "";
	const char *given = getenv("SHAREWELL_EMU");
	set_defaults();
	if (given != NULL && strchr(given, '=') != NULL) {
		static char text[65536];
		snprintf(identity, sizeof identity, "%s", given);
		if ((size_t)snprintf(text, sizeof text, "%s", given) < sizeof text)
			parse(text);
		else
			snprintf(config.problem, sizeof config.problem, "SHAREWELL_EMU is too long");
	} else if (given != NULL && given[0] != '\0') {
		char *real = realpath(given, NULL);
		snprintf(identity, sizeof identity, "%s", real != NULL ? real : given);
		free(real);
		parse_file(given);
	}
	derive(identity);
	const char *state = getenv("SHAREWELL_EMU_STATE");
	if (state != NULL && state[0] != '\0')
		snprintf(config.state_path, sizeof config.state_path, "%s", state);
	if (config.problem[0] != '\0')
		fprintf(stderr, "emulated GPU driver: SHAREWELL_EMU: %s\n", config.problem);
}

const struct emu_config *emu_config(void)
{
	pthread_once(&once, load);
	return &config;
}
