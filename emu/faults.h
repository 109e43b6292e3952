/* Faults on demand: from the settings, SHAREWELL_EMU_FAULTS and the control file. */
#ifndef EMU_FAULTS_H
#define EMU_FAULTS_H

#include "cuda/driver.h"

/* At a call of `entry`: waits, returns an error, or loses the GPUs, as asked for. */
CUresult emu_fault_at(const char *entry);

#endif
