#include "cli/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *setting(const char *name)
{
	const char *value = getenv(name);
	return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The first of these that is set decides, as for setlocale(). */
static bool says_utf8(void)
{
	const char *locale = setting("LC_ALL");
	locale = locale != NULL ? locale : setting("LC_CTYPE");
	locale = locale != NULL ? locale : setting("LANG");
	const char *dot = locale != NULL ? strchr(locale, '.') : NULL;
	return dot != NULL && (strncasecmp(dot + 1, "utf-8", 5) == 0 || strncasecmp(dot + 1, "utf8", 4) == 0);
}

struct sw_cli_terminal sw_cli_terminal(FILE *stream)
{
	struct sw_cli_terminal terminal = {.utf8 = says_utf8(), .is_terminal = isatty(fileno(stream)) != 0};
	if (!terminal.is_terminal)
		return terminal;
	const char *kind = setting("TERM");
	terminal.colour = kind != NULL && strcmp(kind, "dumb") != 0 && setting("NO_COLOR") == NULL;
	struct winsize size;
	terminal.width = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
	return terminal;
}
