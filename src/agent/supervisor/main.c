/* The supervisor as a program of its own: what `sharewell supervise` is, without the rest. One is
 * forked for every job. A process that has the libraries of all commands in its memory takes
 * several times as long to be made and to go. */
#include <stdio.h>
#include <string.h>

#include "agent/supervisor/supervisor.h"

int main(int count, char **args)
{
	struct sw_err err = {0};
	char words[1000];
	if (count != 3 || strcmp(args[1], "supervise") != 0) {
		fprintf(stderr, "usage: sharewell-supervisor supervise FOLDER\n");
		return 2;
	}
	if (sw_supervise(args[2], &err) == 0)
		return 0;
	sw_err_format(&err, words, sizeof words);
	fprintf(stderr, "sharewell: %s\n", words);
	return 1;
}
