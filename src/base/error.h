/* Errors as people read them: a fact, the detail behind it, and a hint what to do next.
 *
 * Functions return 0 or one of the negative codes below. Where a person will read the outcome they
 * also take a `struct sw_err *` (NULL: the text is not wanted) and fill it. The first error wins:
 * filling a filled error is ignored. So a caller may add its own words without hiding the cause.
 * Use sw_err_clear() to start over.
 */
#ifndef SW_BASE_ERROR_H
#define SW_BASE_ERROR_H

enum sw_code {
	SW_OK = 0,
	SW_EINPUT = -1,	   /* what the user gave is wrong: a file, an option, a number */
	SW_ENOTFOUND = -2, /* a named thing does not exist */
	SW_EIO = -3,	   /* the operating system refused to read or write */
	SW_ENOMEM = -4,	   /* out of memory */
	SW_ELIMIT = -5,	   /* a stated bound was reached */
	SW_EBUG = -6,	   /* a promise of this program was broken */
	SW_ESTOPPED = -7,  /* interrupted on request */
	SW_EDENIED = -8,   /* not allowed for this user */
};

struct sw_err {
	int code;
	char fact[320];	  /* what went wrong, naming the object: "cannot read trace 'x.csv'" */
	char detail[640]; /* where and why: "line 17 has 4 columns, expected 7"; may be empty */
	char hint[320];	  /* what to do; may be empty */
};

/* Sets code and fact; returns `code`, so that `return sw_err_set(...)` reads well. */
int sw_err_set(struct sw_err *err, int code, const char *fact_fmt, ...) __attribute__((format(printf, 3, 4)));
/* Adds to an error that was set. Only the first detail and the first hint are kept. */
void sw_err_detail(struct sw_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sw_err_hint(struct sw_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sw_err_clear(struct sw_err *err);

/* One line for logs and tests: "fact: detail. hint". Writes at most `size`
 * bytes, always terminated. */
void sw_err_format(const struct sw_err *err, char *buffer, unsigned long size);

#endif
