/* The table of commands as text for people. */
#ifndef SW_CLI_HELP_H
#define SW_CLI_HELP_H

#include <stdio.h>

#include "cli/command.h"

/* What the program is, and its commands. `width` is that of the terminal; 0: a default. */
void sw_cli_print_overview(FILE *out, unsigned width);
void sw_cli_print_group(FILE *out, const struct sw_cli_group *group, unsigned width);
void sw_cli_print_command(FILE *out, const struct sw_cli_command *command, unsigned width);
/* The manual page of everything, in the man macros: sharewell.1. */
void sw_cli_print_man(FILE *out);

/* For those two: what there is to say about an option, with its words and its preset. The caller
 * frees it; NULL when out of memory. */
char *sw_cli_option_text(const struct sw_cli_option *option);
/* "--trace FILE --cluster SHAPE [options] FILE": what follows the command's name. The caller frees
 * it; NULL when out of memory. */
char *sw_cli_usage(const struct sw_cli_command *command);
/* Its text, with what the tables add to it; NULL: it has none. The caller frees. */
char *sw_cli_paragraphs(const struct sw_cli_command *command);

extern const char sw_cli_summary[]; /* one sentence: what the program is */

struct sw_cli_status {
	const char *number, *about;
};
extern const struct sw_cli_status sw_cli_statuses[]; /* exit statuses; a NULL number ends */

#endif
