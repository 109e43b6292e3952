/* The side of a process that is checkpointed by another one: see checkpoint.c. */
#ifndef EMU_CHECKPOINT_H
#define EMU_CHECKPOINT_H

/* Begins to listen; at initialisation. */
void emu_checkpoint_start(void);

/* Waits while the process is locked; at every entry point. */
void emu_checkpoint_gate(void);

#endif
