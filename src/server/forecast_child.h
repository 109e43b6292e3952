/* The process that runs a forecast: a fork of the controller. It has the state as it is in that
 * moment, and ends with its table in a file in memory. */
#ifndef SW_SERVER_FORECAST_CHILD_H
#define SW_SERVER_FORECAST_CHILD_H

#include "brain/forecast.h"
#include "server/child.h"

/* What it is to find out. Without items: when all jobs start that wait. With items: when those
 * start that would be made of these records, which it applies to its own copy. */
struct sw_forecast_task {
	struct sw_brain *brain;
	sw_ns now;
	const sw_records *records;
	const size_t *item_records; /* how many of them each item has */
	size_t item_count;
};

/* SW_EIO: there is no process or no file to be had. */
int sw_forecast_child_start(const struct sw_forecast_task *task, struct sw_child *ret_child, struct sw_err *err);

/* What it found: mapped, so that taking it costs nothing. */
struct sw_forecast_table {
	const struct sw_forecast_row *rows; /* by job; of items in their order, and those that could not be made have no job */
	size_t count;
	uint32_t gpus_shut;
	void *map;
	size_t size;
};
/* Ends the process if it has not ended. 0, or SW_EIO: it failed, and how. NULL: its table is not
 * wanted. */
int sw_forecast_child_end(struct sw_child *child, struct sw_forecast_table *ret_table, struct sw_err *err);
void sw_forecast_table_release(struct sw_forecast_table *table);

#endif
