/* A library of somebody else that looks for the next definition of a name: what it finds depends on
 * where it stands, not on who passes the call on. */
#include <dlfcn.h>
#include <stddef.h>

void *find_next(const char *name);
void *find_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}
