/* Questions of the policy are solved in child processes. */
#ifndef SW_SERVER_SOLVERS_H
#define SW_SERVER_SOLVERS_H

#include "base/error.h"

struct sw_server;

int sw_solvers_start(struct sw_server *server, struct sw_err *err);
void sw_solvers_stop(struct sw_server *server);
/* Records were applied: what is open now gets a process, and what is not open any more loses it. */
void sw_solvers_consider(struct sw_server *server);

#endif
