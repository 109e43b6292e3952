/* A log file that cannot grow beyond its limit. The beginning and the end of what was written are
 * kept, the middle is left out and a line says so.
 *
 *	[ head, kept for ever ][ marker ][ the last of what came, a quarter to a half of the limit ]
 *
 * It is one plain file all the time. When it is full its tail moves forward over the middle.
 */
#ifndef SW_AGENT_BOUNDED_LOG_H
#define SW_AGENT_BOUNDED_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sw_bounded_log {
	int fd;		  /* readable and writable, not O_APPEND; the caller's */
	bool plain;	  /* not a file that could grow: a device */
	uint64_t start;	  /* what was in the file before */
	uint64_t limit;	  /* of what is added */
	uint64_t size;	  /* end of the file */
	uint64_t dropped; /* bytes left out of the middle */
	uint64_t lost;	  /* bytes that could not be written: the disk was full */
};

/* Begins at the end of the file; 0 or an errno. Limits below 4 KiB count as that. */
int sw_bounded_log_init(struct sw_bounded_log *log, int fd, uint64_t limit);
/* Never fails: what cannot be written is counted as lost. */
void sw_bounded_log_write(struct sw_bounded_log *log, const char *bytes, size_t size);

#endif
