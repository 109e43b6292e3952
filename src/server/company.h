/* Jobs that share GPUs, for people. */
#ifndef SW_SERVER_COMPANY_H
#define SW_SERVER_COMPANY_H

#include <stddef.h>
#include <stdint.h>

struct sw_server;
struct sw_json;

/* Adds to the sentence about where the job runs what was predicted and measured of it and of
 * those beside it, if there are any. */
void sw_company_say(struct sw_server *server, uint64_t id, char *text, size_t size);
/* The members "sharing" and "speed" of a job. */
void sw_company_write(struct sw_server *server, struct sw_json *json, uint64_t id);
void sw_company_write_speed(struct sw_server *server, struct sw_json *json, uint64_t id);

#endif
