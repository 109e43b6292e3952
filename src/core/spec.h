/* The fields of a job as the engine is asked for it, as a table. What is told of a job that was
 * submitted once, and taken back, comes from it.
 *
 * Not in the table: the tenant and the model, whose numbers hold in one program only, and the
 * deadline, which is a moment.
 */
#ifndef SW_CORE_SPEC_H
#define SW_CORE_SPEC_H

#include "core/event.h"

struct sw_spec_row {
	const char *name;
	size_t offset;
	uint8_t size; /* bytes of the field; it takes all numbers from 0 to the largest that they hold */
	bool is_flag;
};
extern const struct sw_spec_row sw_spec_rows[];
extern const size_t sw_spec_row_count;

uint64_t sw_spec_get(const struct sw_job_spec *spec, const struct sw_spec_row *row);
/* SW_EINPUT, and nothing is changed: the field cannot hold the number. */
int sw_spec_set(struct sw_job_spec *spec, const struct sw_spec_row *row, uint64_t value);

#endif
