/* Ctrl-C and friends. Until sw_cli_catch_interrupts() they end the program as usual; from then on
 * they are noted, and code that works asks. A second one ends the program at once. */
#ifndef SW_CLI_INTERRUPT_H
#define SW_CLI_INTERRUPT_H

/* To be called before the first file is begun that would be left behind. */
void sw_cli_catch_interrupts(void);
/* The number of the signal that asked to stop; 0: none did. */
int sw_cli_interrupted(void);

#endif
