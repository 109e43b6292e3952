/* What the other end of a stream can show. */
#ifndef SW_CLI_TERMINAL_H
#define SW_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

struct sw_cli_terminal {
	bool is_terminal;
	bool colour;	/* a terminal that is not dumb, and NO_COLOR is not set */
	bool utf8;	/* the environment says so */
	unsigned width; /* columns; 0 when it is no terminal */
};

struct sw_cli_terminal sw_cli_terminal(FILE *stream);

#endif
