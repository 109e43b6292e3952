/* sharewell share --suspend NAME --deep, and --resume NAME --gpu GPU: see share/deep.h. */
#ifndef SW_CLI_SHARE_DEEP_H
#define SW_CLI_SHARE_DEEP_H

#include "share/page.h"

/* Of a program that is suspended. */
int sw_cli_share_take_off(const char *name, struct sw_share_page *page, struct sw_err *err);
/* Before it is resumed; nothing where it was not taken off. `gpu`: where to; NULL: where it was. */
int sw_cli_share_bring_back(const char *name, struct sw_share_page *page, const char *gpu, struct sw_err *err);

#endif
