/* Reading the text of a module, and the calls for modules, libraries, functions and kernels. A
 * library is a module, its kernels are functions. */
#include "modules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocations.h"
#include "config.h"
#include "context.h"

enum { FUNCTIONS_MAX = 256, GLOBALS_MAX = 16, TEXT_MAX = 1 << 20 };

struct global {
	char name[EMU_SYMBOL_BYTES];
	uint64_t bytes, address; /* 0 until it is asked for */
};

struct emu_module {
	struct emu_object object;
	unsigned function_count, global_count;
	struct emu_function *functions[FUNCTIONS_MAX];
	struct global globals[GLOBALS_MAX];
};

static const char magic[] = "sharewell-emu 1";

static void destroy_function(struct emu_object *object)
{
	free(object);
}

static void destroy_module(struct emu_object *object)
{
	struct emu_module *module = (struct emu_module *)object;
	for (unsigned i = 0; i < module->function_count; i++)
		emu_retire(module->functions[i], EMU_FUNCTION);
	for (unsigned i = 0; i < module->global_count; i++)
		if (module->globals[i].address != 0)
			emu_deallocate(module->globals[i].address);
	free(module);
}

/* A time such as 50us, 1.5ms, 200ns into picoseconds. */
static bool parse_time(const char *text, uint64_t *ret_ps)
{
	static const struct {
		const char *unit;
		double ps;
	} units[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
	char *end = NULL;
	double number = strtod(text, &end);
	if (end == text || !(number >= 0) || number > 1e9)
		return false;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		if (strcmp(end, units[i].unit) == 0) {
			double ps = number * units[i].ps;
			*ret_ps = ps < 1e18 ? (uint64_t)(ps + 0.5) : 0;
			return ps < 1e18;
		}
	}
	return false;
}

static bool set(struct emu_kernel *kernel, const char *key, const char *value)
{
	uint64_t ps = 0;
	if (strcmp(key, "op") == 0) {
		kernel->operation = emu_operation_named(value);
		return kernel->operation != NULL;
	}
	if (strcmp(key, "type") == 0) {
		kernel->is_float = strcmp(value, "f32") == 0;
		return kernel->is_float || strcmp(value, "u32") == 0;
	}
	if (strcmp(key, "transpose") == 0) {
		kernel->transpose_a = strchr(value, 'a') != NULL;
		kernel->transpose_b = strchr(value, 'b') != NULL;
		return value[strspn(value, "ab")] == '\0';
	}
	if (strcmp(key, "time") == 0 && parse_time(value, &ps)) {
		kernel->fixed_ns = ps / 1000;
		return true;
	}
	if (strcmp(key, "each") == 0)
		return parse_time(value, &kernel->each_ps);
	return false;
}

/* "NAME op=... type=... time=... each=..." */
static bool add_kernel(struct emu_module *module, char *words)
{
	char *rest = NULL, *name = strtok_r(words, " \t\r", &rest);
	struct emu_function *function = calloc(1, sizeof *function);
	bool good = function != NULL && name != NULL && strlen(name) < sizeof function->name && module->function_count < FUNCTIONS_MAX;
	if (good) {
		snprintf(function->name, sizeof function->name, "%s", name);
		function->module = module;
		function->kernel.is_float = true;
	}
	for (char *word = NULL; good && (word = strtok_r(NULL, " \t\r", &rest)) != NULL;) {
		char *equals = strchr(word, '=');
		good = equals != NULL;
		if (good) {
			*equals = '\0';
			good = set(&function->kernel, word, equals + 1);
		}
	}
	if (!good || function->kernel.operation == NULL) {
		free(function);
		return false;
	}
	emu_kernel_lay_out(&function->kernel);
	emu_publish(&function->object, EMU_FUNCTION, destroy_function);
	module->functions[module->function_count++] = function;
	return true;
}

static bool add_global(struct emu_module *module, char *words)
{
	char *rest = NULL, *name = strtok_r(words, " \t\r", &rest), *bytes = strtok_r(NULL, " \t\r", &rest);
	struct global *global = &module->globals[module->global_count];
	if (name == NULL || bytes == NULL || module->global_count == GLOBALS_MAX || strlen(name) >= sizeof global->name)
		return false;
	snprintf(global->name, sizeof global->name, "%s", name);
	if (!emu_config_parse_bytes(bytes, &global->bytes) || global->bytes == 0)
		return false;
	module->global_count++;
	return true;
}

static bool read_line(struct emu_module *module, char *line)
{
	line[strcspn(line, "#\r")] = '\0';
	line += strspn(line, " \t");
	if (*line == '\0')
		return true;
	if (strncmp(line, "kernel ", 7) == 0)
		return add_kernel(module, line + 7);
	if (strncmp(line, "global ", 7) == 0)
		return add_global(module, line + 7);
	return false;
}

static CUresult load(const void *image, struct emu_module **ret_module)
{
	if (image == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	/* What a compiler made for real GPUs is not for this one. Its end is not where a text would
	 * end, so nothing beyond its beginning is read. */
	if (strncmp(image, magic, sizeof magic - 1) != 0)
		return strncmp(image, "\177ELF", 4) == 0 || strncmp(image, "//", 2) == 0 || strncmp(image, ".version", 8) == 0
			       ? CUDA_ERROR_NO_BINARY_FOR_GPU
			       : CUDA_ERROR_INVALID_IMAGE;
	size_t length = strnlen(image, TEXT_MAX);
	struct emu_module *module = calloc(1, sizeof *module);
	char *text = malloc(length + 1);
	if (module == NULL || text == NULL || length == TEXT_MAX) {
		free(module);
		free(text);
		return length == TEXT_MAX ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_OUT_OF_MEMORY;
	}
	memcpy(text, image, length);
	text[length] = '\0';
	emu_publish(&module->object, EMU_MODULE, destroy_module);
	bool good = true;
	char *rest = text + sizeof magic - 1;
	for (char *line = strsep(&rest, "\n"); line != NULL && good; line = strsep(&rest, "\n"))
		good = read_line(module, line);
	free(text);
	if (!good) {
		emu_retire(module, EMU_MODULE);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	*ret_module = module;
	return CUDA_SUCCESS;
}

static CUresult load_file(const char *path, struct emu_module **ret_module)
{
	FILE *file = path != NULL ? fopen(path, "re") : NULL;
	if (file == NULL)
		return path != NULL ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
	char *text = calloc(1, TEXT_MAX);
	CUresult result = text != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (text != NULL && fread(text, 1, TEXT_MAX - 1, file) > 0)
		result = load(text, ret_module);
	else if (text != NULL)
		result = CUDA_ERROR_INVALID_IMAGE;
	fclose(file);
	free(text);
	return result;
}

static CUresult load_module(const char *entry, CUmodule *ret_module, const void *image, const char *path)
{
	CUresult result = emu_enter(entry, EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_module == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_module *module = NULL;
	result = path != NULL ? load_file(path, &module) : load(image, &module);
	if (result == CUDA_SUCCESS)
		*ret_module = (CUmodule)module;
	return result;
}

ENTRY(cuModuleLoadData, CUmodule *ret_module, const void *image)
{
	return load_module(__func__, ret_module, image, NULL);
}

ENTRY(cuModuleLoadDataEx, CUmodule *ret_module, const void *image, unsigned count, int *options, void **values)
{
	(void)count;
	(void)options;
	(void)values;
	return load_module(__func__, ret_module, image, NULL);
}

ENTRY(cuModuleLoad, CUmodule *ret_module, const char *path)
{
	return path != NULL ? load_module(__func__, ret_module, NULL, path) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult unload(const char *entry, const void *handle)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT | EMU_ANYWAY | EMU_UNSAFE, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	/* Work that was put in before may still use its memory. */
	emu_contexts_wait();
	return emu_retire(handle, EMU_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

ENTRY(cuModuleUnload, CUmodule module)
{
	return unload(__func__, module);
}

static CUresult get_function(const char *entry, unsigned flags, void **ret_function, const void *handle, const char *name)
{
	CUresult result = emu_enter(entry, flags, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_function == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_module *module = emu_get(handle, EMU_MODULE);
	if (module == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	result = CUDA_ERROR_NOT_FOUND;
	for (unsigned i = 0; i < module->function_count; i++) {
		if (strcmp(module->functions[i]->name, name) == 0) {
			*ret_function = module->functions[i];
			result = CUDA_SUCCESS;
			break;
		}
	}
	emu_put(&module->object);
	return result;
}

ENTRY(cuModuleGetFunction, CUfunction *ret_function, CUmodule module, const char *name)
{
	return get_function(__func__, 0, (void **)ret_function, module, name);
}

static CUresult get_count(const char *entry, unsigned *ret_count, const void *handle)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_module *module = emu_get(handle, EMU_MODULE);
	if (module == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ret_count != NULL)
		*ret_count = module->function_count;
	emu_put(&module->object);
	return ret_count != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuModuleGetFunctionCount, unsigned *ret_count, CUmodule module)
{
	return get_count(__func__, ret_count, module);
}

static CUresult get_global(const char *entry, CUdeviceptr *ret_address, size_t *ret_bytes, const void *handle, const char *name)
{
	struct emu_context *context = NULL;
	CUresult result = emu_enter(entry, 0, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_module *module = emu_get(handle, EMU_MODULE);
	if (module == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	result = CUDA_ERROR_NOT_FOUND;
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < module->global_count; i++) {
		struct global *global = &module->globals[i];
		if (strcmp(global->name, name) != 0)
			continue;
		result = global->address == 0 ? emu_allocate(context, global->bytes, &global->address) : CUDA_SUCCESS;
		if (result == CUDA_SUCCESS && ret_address != NULL)
			*ret_address = global->address;
		if (result == CUDA_SUCCESS && ret_bytes != NULL)
			*ret_bytes = global->bytes;
		break;
	}
	pthread_mutex_unlock(&lock);
	emu_put(&module->object);
	return result;
}

ENTRY(cuModuleGetGlobal_v2, CUdeviceptr *ret_address, size_t *ret_bytes, CUmodule module, const char *name)
{
	return get_global(__func__, ret_address, ret_bytes, module, name);
}

ENTRY(cuModuleGetLoadingMode, int *ret_mode)
{
	if (ret_mode == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_mode = 1;
	return CUDA_SUCCESS;
}

/* Libraries. */

static CUresult load_library(const char *entry, CUlibrary *ret_library, const void *image, const char *path)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	if (ret_library == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	struct emu_module *module = NULL;
	result = path != NULL ? load_file(path, &module) : load(image, &module);
	if (result == CUDA_SUCCESS)
		*ret_library = (CUlibrary)module;
	return result;
}

ENTRY(cuLibraryLoadData, CUlibrary *ret_library, const void *image, int *jit, void **jit_values, unsigned jit_count, int *options,
      void **values, unsigned count)
{
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	return load_library(__func__, ret_library, image, NULL);
}

ENTRY(cuLibraryLoadFromFile, CUlibrary *ret_library, const char *path, int *jit, void **jit_values, unsigned jit_count, int *options,
      void **values, unsigned count)
{
	(void)jit;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	return path != NULL ? load_library(__func__, ret_library, NULL, path) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuLibraryUnload, CUlibrary library)
{
	return unload(__func__, library);
}

ENTRY(cuLibraryGetKernel, CUkernel *ret_kernel, CUlibrary library, const char *name)
{
	return get_function(__func__, EMU_NO_CONTEXT, (void **)ret_kernel, library, name);
}

ENTRY(cuLibraryGetKernelCount, unsigned *ret_count, CUlibrary library)
{
	return get_count(__func__, ret_count, library);
}

ENTRY(cuLibraryGetModule, CUmodule *ret_module, CUlibrary library)
{
	unsigned count = 0;
	CUresult result = get_count(__func__, &count, library);
	if (result == CUDA_SUCCESS && ret_module != NULL)
		*ret_module = (CUmodule)library;
	return ret_module != NULL ? result : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuLibraryGetGlobal, CUdeviceptr *ret_address, size_t *ret_bytes, CUlibrary library, const char *name)
{
	return get_global(__func__, ret_address, ret_bytes, library, name);
}

/* Functions. */

struct emu_function *emu_function_of(const void *handle)
{
	return emu_get(handle, EMU_FUNCTION);
}

ENTRY(cuKernelGetFunction, CUfunction *ret_function, CUkernel kernel)
{
	CUresult result = emu_enter(__func__, 0, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_function *function = emu_function_of(kernel);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	emu_put(&function->object);
	if (ret_function == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_function = (CUfunction)kernel;
	return CUDA_SUCCESS;
}

static CUresult get_parameter(const char *entry, const void *handle, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_function *function = emu_function_of(handle);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (index >= function->kernel.parameter_count || ret_offset == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		*ret_offset = function->kernel.parameters[index].offset;
		if (ret_bytes != NULL)
			*ret_bytes = function->kernel.parameters[index].bytes;
	}
	emu_put(&function->object);
	return result;
}

ENTRY(cuFuncGetParamInfo, CUfunction function, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	return get_parameter(__func__, function, index, ret_offset, ret_bytes);
}

ENTRY(cuKernelGetParamInfo, CUkernel kernel, size_t index, size_t *ret_offset, size_t *ret_bytes)
{
	return get_parameter(__func__, kernel, index, ret_offset, ret_bytes);
}

static CUresult get_name(const char *entry, const char **ret_name, const void *handle)
{
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_function *function = emu_function_of(handle);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ret_name != NULL)
		*ret_name = function->name;
	emu_put(&function->object);
	return ret_name != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

ENTRY(cuFuncGetName, const char **ret_name, CUfunction function)
{
	return get_name(__func__, ret_name, function);
}

ENTRY(cuKernelGetName, const char **ret_name, CUkernel kernel)
{
	return get_name(__func__, ret_name, kernel);
}

ENTRY(cuFuncGetModule, CUmodule *ret_module, CUfunction handle)
{
	CUresult result = emu_enter(__func__, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_function *function = emu_function_of(handle);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (ret_module != NULL)
		*ret_module = (CUmodule)function->module;
	emu_put(&function->object);
	return ret_module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_attribute(const char *entry, int *ret_value, int attribute, const void *handle)
{
	static const int values[] = {1024, 0, 0, 0, 32, 90, 90, 0, 49152, -1};
	CUresult result = emu_enter(entry, EMU_NO_CONTEXT, NULL);
	if (result != CUDA_SUCCESS)
		return result;
	struct emu_function *function = emu_function_of(handle);
	if (function == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	emu_put(&function->object);
	if (ret_value == NULL || attribute < 0 || attribute > 15)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = attribute < (int)(sizeof values / sizeof values[0]) ? values[attribute] : 0;
	return CUDA_SUCCESS;
}

ENTRY(cuFuncGetAttribute, int *ret_value, int attribute, CUfunction function)
{
	return get_attribute(__func__, ret_value, attribute, function);
}

ENTRY(cuFuncSetAttribute, CUfunction function, int attribute, int value)
{
	int ignored = 0;
	(void)value;
	return get_attribute(__func__, &ignored, attribute, function);
}
