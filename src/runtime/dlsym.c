/* dlsym() as a door to the driver. A file of its own: a program that is linked with the rest of
 * this folder (tests under the thread sanitizer) keeps its own dlsym(). */
#include <stddef.h>
#include <string.h>

#include "runtime/driver.h"
#include "runtime/nvml.h"

/* What dlsym() gives instead of the real thing; NULL: the real thing. */
void *sw_door_pick(void *handle, const char *name);
void *sw_door_pick(void *handle, const char *name)
{
	if (sw_real_dlsym == NULL)
		sw_find_dlsym();
	if (name != NULL && strncmp(name, "nvml", 4) == 0)
		return sw_nvml_pick(handle, name);
	/* Not every name that begins like this is the driver's. A program that asks for curl's or
	 * the CUDA runtime's functions does not need the driver loaded. */
	if (name == NULL || name[0] != 'c' || name[1] != 'u' || name[2] < 'A' || name[2] > 'Z' || !sw_driver_ready())
		return NULL;
	void *real = sw_real_dlsym(handle, name), *picked = NULL;
	sw_function hook = real == NULL ? NULL : sw_hook_of(real);
	memcpy(&picked, &hook, sizeof hook);
	return picked;
}

/* Where the name is none of ours, dlsym() must be *jumped* to: it looks at its caller. */
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
