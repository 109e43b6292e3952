/* From the words of a command line to a command's values. Reads nothing but its arguments. */
#ifndef SW_CLI_PARSE_H
#define SW_CLI_PARSE_H

#include "cli/command.h"

/* Fills `values` (command->values_size bytes, the caller's) from presets and then from
 * argv[1] on; argv[0] is not looked at. The words may be reordered, and the values point
 * into them. With --help (or -h) *ret_help is true and nothing was required. Release the
 * values in any case but failure. */
int sw_cli_parse(const struct sw_cli_command *command, int argc, char **argv, void *values, bool *ret_help, struct sw_err *err);
void sw_cli_release(const struct sw_cli_command *command, void *values);

/* An unknown word among `words`: sets "unknown NOUN 'WORD'", and the nearest word or all of them as
 * the hint. Returns SW_EINPUT. */
int sw_cli_unknown_word(const char *noun, const char *word, const struct sw_cli_words *words, struct sw_err *err);

#endif
