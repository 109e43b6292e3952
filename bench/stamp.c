/* The job whose start is measured: notes the time before anything else, and writes it into the pipe
 * or file that it is given, as eight bytes. */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **args)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	int64_t stamp_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	int fd = count == 2 ? open(args[1], O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
	return fd >= 0 && write(fd, &stamp_ns, sizeof stamp_ns) == (ssize_t)sizeof stamp_ns ? 0 : 1;
}
