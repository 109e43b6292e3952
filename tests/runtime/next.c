/* A library of another project that looks for the next definition of a name: what it finds depends
 * on where it stands, not on the code that passes the call on. */
#include <dlfcn.h>
#include <stddef.h>

void *find_next(const char *name);
void *find_next(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}
