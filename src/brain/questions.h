/* Answers to the policy's questions, as records. See questions.c. */
#ifndef SW_BRAIN_QUESTIONS_H
#define SW_BRAIN_QUESTIONS_H

#include "brain/state.h"

int sw_brain_check_answer(const struct sw_brain *brain, json_t *body, struct sw_err *err);
int sw_brain_apply_answer(struct sw_brain *brain, json_t *body, struct sw_err *err);

#endif
