/* Every way to a function of the driver leads through here: binding by the linker finds our exported names (hooks.h), dlsym() and cuGetProcAddress() are hooked
 * below, and what cudaGetDriverEntryPoint() gives comes from the latter.
 *
 * The real answer is asked for first; only an address that is the real one of a hooked function is replaced. So versions, per-thread streams and names that we never
 * heard of need no thought here.
 */
#include <string.h>

#include "runtime/driver.h"
#include "runtime/hooks.h"

static void replace(CUresult result, void **found)
{
	if (result != CUDA_SUCCESS || found == NULL || *found == NULL)
		return;
	sw_function hook = sw_hook_of(*found);
	if (hook != NULL)
		memcpy(found, &hook, sizeof hook);
}

CUresult hook_cuGetProcAddress(P name, P ret, U version, Z flags)
{
	if (!sw_driver_ready() || sw_driver.get_proc_address == NULL)
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = sw_driver.get_proc_address(name, ret, (int)version, flags);
	replace(result, ret);
	return result;
}

CUresult hook_cuGetProcAddress_v2(P name, P ret, U version, Z flags, P found)
{
	if (!sw_driver_ready() || sw_driver.get_proc_address_v2 == NULL)
		return CUDA_ERROR_NOT_FOUND;
	CUresult result = sw_driver.get_proc_address_v2(name, ret, (int)version, flags, found);
	replace(result, ret);
	return result;
}

/* What dlsym() gives instead of the real thing; NULL: the real thing. */
void *sw_door_pick(void *handle, const char *name);
void *sw_door_pick(void *handle, const char *name)
{
	if (sw_real_dlsym == NULL)
		sw_find_dlsym();
	if (name == NULL || name[0] != 'c' || name[1] != 'u' || !sw_driver_ready())
		return NULL;
	void *real = sw_real_dlsym(handle, name), *picked = NULL;
	sw_function hook = real == NULL ? NULL : sw_hook_of(real);
	memcpy(&picked, &hook, sizeof hook);
	return picked;
}

/* Where the name is nobody's business of ours, dlsym() must be *jumped* to: it looks at who called it. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	pushq %rsi\n"
	"	subq $8, %rsp\n"
	"	call sw_door_pick\n"
	"	addq $8, %rsp\n"
	"	popq %rsi\n"
	"	popq %rdi\n"
	"	testq %rax, %rax\n"
	"	jne 1f\n"
	"	movq sw_real_dlsym(%rip), %rax\n"
	"	jmp *%rax\n"
	"1:	ret\n"
	".size dlsym, .-dlsym\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	mov x29, sp\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl sw_door_pick\n"
	"	mov x9, x0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	cbnz x9, 1f\n"
	"	adrp x9, sw_real_dlsym\n"
	"	ldr x9, [x9, #:lo12:sw_real_dlsym]\n"
	"	br x9\n"
	"1:	mov x0, x9\n"
	"	ret\n"
	".size dlsym, .-dlsym\n");
#else
#error "dlsym() has to be written for this processor"
#endif
