/* The table of commands as completion scripts. */
#ifndef SW_CLI_COMPLETION_H
#define SW_CLI_COMPLETION_H

#include <stdio.h>

void sw_cli_complete_bash(FILE *out);
void sw_cli_complete_zsh(FILE *out);
void sw_cli_complete_fish(FILE *out);

#endif
