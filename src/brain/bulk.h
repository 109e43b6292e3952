/* Large parts of requests. 0 or SW_ENOMEM where nothing else is said. See bulk.c. */
#ifndef SW_BRAIN_BULK_H
#define SW_BRAIN_BULK_H

#include "brain/state.h"

int sw_bulk_use(struct sw_bulk_uses *uses, const unsigned char *digest);
void sw_bulk_drop(struct sw_bulk_uses *uses, const unsigned char *digest);
/* Takes them out of a request that is about to become a record. */
int sw_bulk_take(const struct sw_brain *brain, struct sw_job_request *request, struct sw_record_text texts[SW_BULKS]);
/* Puts them back; or why they are not there. */
int sw_bulk_fill(const struct sw_brain *brain, const struct sw_asked *asked, struct sw_job_request *request, struct sw_err *err);
void sw_bulk_write(struct sw_json *json, const struct sw_record_text texts[SW_BULKS]);
int sw_bulk_read(struct sw_brain *brain, json_t *body, struct sw_asked *asked, struct sw_err *err);

#endif
