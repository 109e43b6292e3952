/* Suspension of a job down to nothing. Its memory leaves by the runtime, fast. What then is left on
 * its GPUs, contexts and all, leaves by the driver's checkpoint. Brought back in the other order,
 * maybe onto other GPUs.
 *
 *	held, and suspended as usual; sw_deep_out(page, ...)
 *	sw_deep_back(page, ...); resumed as usual
 */
#ifndef SW_SHARE_DEEP_H
#define SW_SHARE_DEEP_H

#include "share/checkpoint.h"
#include "share/page.h"

/* All its processes are suspended, and stay so where this fails. */
int sw_deep_out(struct sw_share_page *page, struct sw_err *err);

/* Every GPU that its processes know must be in one of the pairs, which say what takes its place, in
 * the page too. Limits and figures go along. None: every process comes back where it was. Only a
 * single process can move. Fails where others hold the memory, and then leaves all off. The caller
 * sees to it that no other process looks at the page's GPUs meanwhile, and has it shut
 * (sw_share_page_shut()). A process that came up meanwhile would stay behind. */
int sw_deep_back(struct sw_share_page *page, const struct sw_checkpoint_pair *pairs, size_t count, struct sw_err *err);
/* Whether that would be refused, before anything is taken off. */
int sw_deep_may_move(struct sw_share_page *page, struct sw_err *err);

#endif
