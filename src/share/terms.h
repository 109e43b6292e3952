/* What a user asked for a job, and what a coordinator orders it to do, as they stand in its
 * page. */
#ifndef SW_SHARE_TERMS_H
#define SW_SHARE_TERMS_H

#include "share/coordinate.h"
#include "share/page.h"

struct sw_share_terms {
	enum sw_job_class class;
	const struct sw_throttle *throttle;
	uint64_t asked_bytes; /* on each GPU; SW_PAGE_NO_LIMIT */
	uint32_t asked_milli; /* of the GPU's time; 0: all */
	bool held;	      /* a person suspended it */
	uint8_t slice_s;      /* length of its turns, in seconds; 0: the default */
	int64_t arrived_ns;
};

/* From and to the job's page. Setting them changes nothing by itself: orders follow. */
void sw_share_terms_get(struct sw_share_page *page, struct sw_share_terms *ret_terms);
void sw_share_terms_set(struct sw_share_page *page, const struct sw_share_terms *terms);
/* Sets them while the job runs, and orders at once what follows in any case; the coordinator does
 * the rest. Returns the number of the wish. Under the folder's lock, where there is one. */
uint32_t sw_share_terms_change(struct sw_share_page *page, const struct sw_share_terms *terms);

struct sw_share_orders {
	uint64_t limit_bytes[SW_PAGE_GPUS];
	uint32_t share_milli; /* 0: none, 1000: all */
	bool watched, suspend;
	size_t neighbour_count; /* the runs to which it yields; 0: no run */
	const char *neighbours[SW_PAGE_NEIGHBOURS];
};

/* Those of a job that is alone: what its user asked for. */
void sw_share_orders_alone(const struct sw_share_terms *terms, struct sw_share_orders *ret_orders);
/* As they stand in the page; the runs to which it yields are only counted. */
void sw_share_orders_get(struct sw_share_page *page, struct sw_share_orders *ret_orders);
/* Writes what has changed, and tells the job if anything did. A job that a
 * person suspended stays so. */
bool sw_share_orders_give(struct sw_share_page *page, const struct sw_share_orders *orders);

#endif
