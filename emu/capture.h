/* Stream capture: work that is put into a capturing stream becomes nodes of a graph.
 *
 * 1. Without any capture in the process, all of this costs one load.
 * 2. A call that is not allowed while a stream captures fails and spoils the captures it belongs
 *    to, as with a real driver.
 */
#ifndef EMU_CAPTURE_H
#define EMU_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda/driver.h"
#include "work.h"

struct emu_context;
struct emu_stream;
struct emu_event;
struct emu_event_capture;

/* Puts work into the stream, or into the graph it captures. The work is the callee's in any case.
 * `ret_number` (may be NULL) is not written for a capturing stream. */
CUresult emu_submit(struct emu_stream *stream, struct emu_work *work, uint64_t *ret_number);

bool emu_capturing(struct emu_stream *stream);

/* For calls that no thread may make while there are captures; the thread's capture mode decides. */
CUresult emu_capture_check_unsafe(void);

/* For calls that no thread may make, in whatever mode, while a stream of the context captures:
 * they would wait for it. */
CUresult emu_capture_check_context(const struct emu_context *context);

/* For calls that may not be made on a capturing stream: success when it is not. */
CUresult emu_capture_refuse(struct emu_stream *stream);

/* A recorded event of a capturing stream, and a wait for it. `*ret_done`: the stream
 * captures, and that was all. */
CUresult emu_capture_record(struct emu_stream *stream, struct emu_event *event, bool *ret_done);
CUresult emu_capture_wait(struct emu_stream *stream, struct emu_event *event, bool *ret_done);
/* Was its last record a captured one? */
bool emu_capture_has_event(struct emu_event *event);
void emu_capture_forget_event(struct emu_event *event);

/* The stream goes away. */
void emu_capture_abandon(struct emu_stream *stream);

#endif
