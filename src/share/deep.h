/* Suspension of a job down to nothing: its memory leaves by the runtime, fast, and what then is left on its GPUs, contexts and all, by the driver's checkpoint. Brought back in
 * the other order, maybe onto other GPUs.
 *
 *	held, and suspended as usual; sw_deep_out(page, ...)
 *	sw_deep_back(page, ...); resumed as usual
 */
#ifndef SW_SHARE_DEEP_H
#define SW_SHARE_DEEP_H

#include "share/page.h"

/* All its processes are suspended, and stay so where this fails. */
int sw_deep_out(struct sw_share_page *page, struct sw_err *err);

#define SW_DEEP_SAME UINT32_MAX
/* `from` and `to` are GPUs of the page, which change places, limits and figures included; SW_DEEP_SAME: every process comes back where it was. Only a single
 * process can move. Fails where others hold the memory, and
 * then leaves all off. The caller sees to it that nobody else looks at the page's GPUs meanwhile. */
int sw_deep_back(struct sw_share_page *page, uint32_t from, uint32_t to, struct sw_err *err);

#endif
