/* The operations. They really change memory, always in the same order, so that equal inputs give
 * equal bits. Numbers of a kernel are 32 bits wide. */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

#include "config.h"

enum { FILL, SCALE, AXPY, ADD, SUB, MUL, COPY, RELU, RELU_GRAD, ADD_ROW, SUM_ROWS, SUM, MATMUL, RANDOM, STIR, HASH, SPIN };

static const struct emu_operation operations[] = {
	[FILL] = {"fill", "pvn"},	     /* x[i] = v */
	[SCALE] = {"scale", "pvn"},	     /* x[i] *= v */
	[AXPY] = {"axpy", "ppvn"},	     /* y[i] += v * x[i] */
	[ADD] = {"add", "pppn"},	     /* z[i] = x[i] + y[i] */
	[SUB] = {"sub", "pppn"},	     /* z[i] = x[i] - y[i] */
	[MUL] = {"mul", "pppn"},	     /* z[i] = x[i] * y[i] */
	[COPY] = {"copy", "ppn"},	     /* y[i] = x[i] */
	[RELU] = {"relu", "ppn"},	     /* y[i] = max(x[i], 0) */
	[RELU_GRAD] = {"relu_grad", "pppn"}, /* z[i] = x[i] > 0 ? y[i] : 0 */
	[ADD_ROW] = {"add_row", "ppii"},     /* x[r][c] += y[c]: rows, columns */
	[SUM_ROWS] = {"sum_rows", "ppii"},   /* y[c] = sum over r of x[r][c] */
	[SUM] = {"reduce", "ppn"},	     /* y[0] = sum of x[i] */
	[MATMUL] = {"matmul", "pppiii"},     /* c = a b: m, n, k */
	[RANDOM] = {"random", "pnn"},	     /* x[i] in [-1, 1) or any 32 bits, from a seed */
	[STIR] = {"stir", "pn"},	     /* x[i] = x[i] * 1664525 + 1013904223 + i: shows whether and in which order things ran */
	[HASH] = {"hash", "ppn"},	     /* y[0..1] = 64-bit hash of x */
	[SPIN] = {"spin", "t"},		     /* takes so many nanoseconds */
};

const struct emu_operation *emu_operation_named(const char *name)
{
	for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
		if (strcmp(operations[i].name, name) == 0)
			return &operations[i];
	return NULL;
}

void emu_kernel_lay_out(struct emu_kernel *kernel)
{
	unsigned offset = 0, count = 0;
	for (const char *letter = kernel->operation->parameters; *letter != '\0'; letter++) {
		unsigned bytes = *letter == 'v' || *letter == 'i' ? 4 : 8;
		offset = (offset + bytes - 1) / bytes * bytes;
		kernel->parameters[count++] = (struct emu_parameter){offset, bytes};
		offset += bytes;
	}
	kernel->parameter_count = count;
	kernel->argument_bytes = offset;
}

/* The arguments, taken apart by kind. */
struct arguments {
	uint64_t pointers[4], numbers[4];
	uint32_t value;
};

static struct arguments take_apart(const struct emu_kernel *kernel, const unsigned char *bytes)
{
	struct arguments arguments = {0};
	unsigned pointers = 0, numbers = 0;
	for (unsigned i = 0; i < kernel->parameter_count; i++) {
		char letter = kernel->operation->parameters[i];
		uint64_t number = 0;
		memcpy(&number, bytes + kernel->parameters[i].offset, kernel->parameters[i].bytes);
		if (letter == 'p')
			arguments.pointers[pointers++] = number;
		else if (letter == 'v')
			arguments.value = (uint32_t)number;
		else
			arguments.numbers[numbers++] = number;
	}
	return arguments;
}

/* How many elements each pointer's memory has, and how many steps of work there are. */
static void measure(const struct emu_kernel *kernel, const struct arguments *arguments, uint64_t elements[4], uint64_t *ret_steps)
{
	const uint64_t *n = arguments->numbers;
	*ret_steps = n[0];
	for (int i = 0; i < 4; i++)
		elements[i] = n[0];
	switch ((int)(kernel->operation - operations)) {
	case ADD_ROW:
	case SUM_ROWS:
		*ret_steps = n[0] * n[1];
		elements[kernel->operation == &operations[ADD_ROW] ? 0 : 1] = *ret_steps;
		elements[kernel->operation == &operations[ADD_ROW] ? 1 : 0] = n[1];
		break;
	case SUM:
		elements[0] = 1;
		break;
	case HASH:
		elements[0] = 2;
		break;
	case MATMUL:
		*ret_steps = n[0] * n[1] * n[2];
		elements[0] = n[0] * n[1];
		elements[1] = n[0] * n[2];
		elements[2] = n[1] * n[2];
		break;
	case RANDOM:
		*ret_steps = elements[0] = n[1];
		break;
	case SPIN:
		*ret_steps = 0;
		break;
	default:
		break;
	}
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static void do_float(int operation, float *const *p, const struct arguments *arguments)
{
	const uint64_t *n = arguments->numbers;
	float v = 0;
	memcpy(&v, &arguments->value, sizeof v);
	for (uint64_t i = 0; i < n[0]; i++) {
		switch (operation) {
		case FILL:
			p[0][i] = v;
			break;
		case SCALE:
			p[0][i] *= v;
			break;
		case AXPY:
			p[0][i] += v * p[1][i];
			break;
		case ADD:
			p[0][i] = p[1][i] + p[2][i];
			break;
		case SUB:
			p[0][i] = p[1][i] - p[2][i];
			break;
		case MUL:
			p[0][i] = p[1][i] * p[2][i];
			break;
		case RELU:
			p[0][i] = p[1][i] > 0 ? p[1][i] : 0;
			break;
		case RELU_GRAD:
			p[0][i] = p[1][i] > 0 ? p[2][i] : 0;
			break;
		default:
			return;
		}
	}
}

static void do_whole(int operation, uint32_t *const *p, const struct arguments *arguments)
{
	const uint64_t *n = arguments->numbers;
	uint32_t v = arguments->value;
	for (uint64_t i = 0; i < n[0]; i++) {
		switch (operation) {
		case FILL:
			p[0][i] = v;
			break;
		case SCALE:
			p[0][i] *= v;
			break;
		case AXPY:
			p[0][i] += v * p[1][i];
			break;
		case ADD:
			p[0][i] = p[1][i] + p[2][i];
			break;
		case SUB:
			p[0][i] = p[1][i] - p[2][i];
			break;
		case MUL:
			p[0][i] = p[1][i] * p[2][i];
			break;
		case RELU:
			p[0][i] = (int32_t)p[1][i] > 0 ? p[1][i] : 0;
			break;
		case RELU_GRAD:
			p[0][i] = (int32_t)p[1][i] > 0 ? p[2][i] : 0;
			break;
		case STIR:
			p[0][i] = p[0][i] * 1664525U + 1013904223U + (uint32_t)i;
			break;
		default:
			return;
		}
	}
}

static void do_rows(int operation, bool is_float, char *const *data, uint64_t rows, uint64_t columns)
{
	float *const f[2] = {(float *)data[0], (float *)data[1]};
	uint32_t *const w[2] = {(uint32_t *)data[0], (uint32_t *)data[1]};
	if (operation == SUM_ROWS && columns > 0)
		memset(data[0], 0, columns * 4);
	for (uint64_t r = 0; r < rows; r++) {
		for (uint64_t c = 0; c < columns; c++) {
			uint64_t at = r * columns + c;
			if (operation == ADD_ROW && is_float)
				f[0][at] += f[1][c];
			else if (operation == ADD_ROW)
				w[0][at] += w[1][c];
			else if (is_float)
				f[0][c] += f[1][at];
			else
				w[0][c] += w[1][at];
		}
	}
}

static void do_matmul(const struct emu_kernel *kernel, char *const *data, const uint64_t *n)
{
	uint64_t rows = n[0], columns = n[1], inner = n[2];
	for (uint64_t r = 0; r < rows; r++) {
		for (uint64_t c = 0; c < columns; c++) {
			float sum = 0;
			uint32_t whole = 0;
			for (uint64_t i = 0; i < inner; i++) {
				uint64_t a = kernel->transpose_a ? i * rows + r : r * inner + i;
				uint64_t b = kernel->transpose_b ? c * inner + i : i * columns + c;
				if (kernel->is_float)
					sum += ((const float *)data[1])[a] * ((const float *)data[2])[b];
				else
					whole += ((const uint32_t *)data[1])[a] * ((const uint32_t *)data[2])[b];
			}
			if (kernel->is_float)
				((float *)data[0])[r * columns + c] = sum;
			else
				((uint32_t *)data[0])[r * columns + c] = whole;
		}
	}
}

static void do_sum(bool is_float, char *const *data, uint64_t count)
{
	float sum = 0;
	uint32_t whole = 0;
	for (uint64_t i = 0; i < count; i++) {
		sum += is_float ? ((const float *)data[1])[i] : 0;
		whole += ((const uint32_t *)data[1])[i];
	}
	memcpy(data[0], is_float ? (const void *)&sum : (const void *)&whole, 4);
}

static void do_random(bool is_float, char *data, uint64_t seed, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint32_t bits = (uint32_t)(mix(seed * 0x2545f4914f6cdd1dULL + i) >> 32);
		float value = (float)(bits >> 8) / 8388608.0F - 1.0F;
		memcpy(data + i * 4, is_float ? (const void *)&value : (const void *)&bits, 4);
	}
}

static void do_hash(char *const *data, uint64_t count)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	for (uint64_t i = 0; i < count; i++)
		hash = (hash ^ ((const uint32_t *)data[1])[i]) * 0x100000001b3ULL;
	hash = mix(hash);
	memcpy(data[0], &hash, sizeof hash);
}

static void perform(const struct emu_kernel *kernel, char *const *data, const struct arguments *arguments)
{
	int operation = (int)(kernel->operation - operations);
	const uint64_t *n = arguments->numbers;
	switch (operation) {
	case COPY:
		if (n[0] > 0)
			memmove(data[0], data[1], n[0] * 4);
		return;
	case ADD_ROW:
	case SUM_ROWS:
		do_rows(operation, kernel->is_float, data, n[0], n[1]);
		return;
	case MATMUL:
		do_matmul(kernel, data, n);
		return;
	case SUM:
		do_sum(kernel->is_float, data, n[0]);
		return;
	case RANDOM:
		do_random(kernel->is_float, data[0], n[0], n[1]);
		return;
	case HASH:
		do_hash(data, n[0]);
		return;
	case SPIN:
		return;
	case STIR:
		break;
	default:
		if (kernel->is_float) {
			do_float(operation, (float *const[]){(float *)data[0], (float *)data[1], (float *)data[2]}, arguments);
			return;
		}
	}
	do_whole(operation, (uint32_t *const[]){(uint32_t *)data[0], (uint32_t *)data[1], (uint32_t *)data[2]}, arguments);
}

static uint64_t time_of(const struct emu_kernel *kernel, const struct arguments *arguments, uint64_t steps, int gpu)
{
	const struct emu_gpu_config *config = &emu_config()->gpus[gpu];
	double ns = (double)kernel->fixed_ns + (double)steps * (double)kernel->each_ps / 1000.0;
	if (kernel->operation == &operations[SPIN])
		ns += (double)arguments->numbers[0];
	ns = ns * 1e6 / (double)config->speed_ppm;
	if (ns > 1e15)
		ns = 1e15;
	return (uint64_t)ns > config->launch_ns ? (uint64_t)ns : config->launch_ns;
}

CUresult emu_kernel_end(struct emu_run *run)
{
	CUresult result = CUDA_SUCCESS;
	for (unsigned i = 0; i < run->pin_count; i++) {
		CUresult r = emu_unpin(&run->pins[i]);
		if (r != CUDA_SUCCESS)
			result = r;
	}
	run->pin_count = 0;
	return result;
}

CUresult emu_kernel_begin(const struct emu_kernel *kernel, const unsigned char *bytes, int gpu, struct emu_run *ret_run)
{
	struct arguments arguments = take_apart(kernel, bytes);
	uint64_t elements[4], steps = 0;
	char *data[4] = {NULL};
	measure(kernel, &arguments, elements, &steps);
	*ret_run = (struct emu_run){.time_ns = time_of(kernel, &arguments, steps, gpu)};
	unsigned count = 0;
	while (kernel->operation->parameters[count] == 'p')
		count++;
	for (unsigned i = 0; i < count; i++) {
		CUresult result =
			elements[i] <= UINT64_MAX / 4 && arguments.pointers[i] % 4 == 0
				? emu_pin(arguments.pointers[i], elements[i] * 4, gpu, i == 0 ? EMU_WRITE : EMU_READ, &ret_run->pins[i])
				: CUDA_ERROR_ILLEGAL_ADDRESS;
		if (result != CUDA_SUCCESS) {
			emu_kernel_end(ret_run);
			return result;
		}
		ret_run->pin_count++;
		data[i] = ret_run->pins[i].data;
	}
	perform(kernel, data, &arguments);
	return CUDA_SUCCESS;
}
