/* The assembler puts the two files into the program as they are, each with a terminating zero; paths are relative to src/. */
#include "sim/report/embed.h"

#define EMBED(name, path)                                \
	__asm__(".pushsection .rodata, \"a\"\n"          \
		".globl " #name "\n"                     \
		".hidden " #name "\n"                    \
		".type " #name ", %object\n" #name ":\n" \
		".incbin \"" path "\"\n"                 \
		".byte 0\n"                              \
		".size " #name ", . - " #name "\n"       \
		".popsection\n")

EMBED(sw_report_style, "sim/report/style.css");
EMBED(sw_report_script, "sim/report/script.js");
