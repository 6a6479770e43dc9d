/* Words that printer and parser of the plan text share. */
#ifndef IR_PLAN_TEXT_H
#define IR_PLAN_TEXT_H
enum { PLAN_BUFFER_KINDS = 5 };
extern const char *const plan_buffer_words[PLAN_BUFFER_KINDS]; /* by plan_buffer_kind */
extern const char *const plan_access_words[4];                 /* by KIR_READ | KIR_WRITE */
#endif
