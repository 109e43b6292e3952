#include "checkpoint.h"

void emu_checkpoint_start(void)
{
}

void emu_checkpoint_gate(void)
{
}
