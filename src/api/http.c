#include "api/http.h"

#include <string.h>
#include <strings.h>

#include "base/number.h"

/* One line of the head, without its CR LF. */
struct line {
	const char *text;
	size_t size;
};

static int refuse(int status, const char *detail, int *ret_status, struct sw_err *err)
{
	sw_err_set(err, SW_EINPUT, "this is not an HTTP request that can be answered");
	sw_err_detail(err, "%s", detail);
	*ret_status = status;
	return SW_EINPUT;
}

static bool is_token_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* The next line at *at; false when there is no CR LF. */
static bool next_line(const char *bytes, size_t size, size_t *at, struct line *ret_line)
{
	const char *start = bytes + *at;
	const char *end = memchr(start, '\n', size - *at);
	if (end == NULL || end == start || end[-1] != '\r')
		return false;
	*ret_line = (struct line){start, (size_t)(end - start) - 1};
	*at += (size_t)(end - start) + 1;
	return true;
}

static int parse_request_line(struct line line, struct sw_http_head *head, int *ret_status, struct sw_err *err)
{
	const char *space = memchr(line.text, ' ', line.size);
	size_t method = space != NULL ? (size_t)(space - line.text) : 0;
	if (method == 0 || method > 16)
		return refuse(400, "its first line has no method", ret_status, err);
	for (size_t i = 0; i < method; i++)
		if (!is_token_byte(line.text[i]))
			return refuse(400, "its first line has no method", ret_status, err);
	head->method = method == 3 && memcmp(line.text, "GET", 3) == 0	  ? SW_GET
		       : method == 4 && memcmp(line.text, "POST", 4) == 0 ? SW_POST
									  : SW_OTHER_METHOD;
	const char *target = space + 1;
	size_t left = line.size - method - 1;
	space = memchr(target, ' ', left);
	size_t size = space != NULL ? (size_t)(space - target) : 0;
	if (size == 0 || target[0] != '/')
		return refuse(400, "its first line has no path", ret_status, err);
	if (size > SW_HTTP_TARGET_MAX)
		return refuse(414, "its path is too long", ret_status, err);
	for (size_t i = 0; i < size; i++)
		if (target[i] <= ' ' || target[i] >= 0x7F)
			return refuse(400, "its path has bytes that must be written as percent escapes", ret_status, err);
	memcpy(head->target, target, size);
	head->target[size] = '\0';
	const char *version = target + size + 1;
	left -= size + 1;
	if (left != 8 || memcmp(version, "HTTP/", 5) != 0)
		return refuse(400, "its first line has no version", ret_status, err);
	if (memcmp(version, "HTTP/1.1", 8) != 0 && memcmp(version, "HTTP/1.0", 8) != 0)
		return refuse(505, "its version is neither 1.1 nor 1.0", ret_status, err);
	head->keep_alive = version[7] == '1';
	head->is_old = version[7] == '0';
	return 0;
}

static bool is_name(struct line name, const char *wanted)
{
	return name.size == strlen(wanted) && strncasecmp(name.text, wanted, name.size) == 0;
}

static bool is_value(struct line value, const char *wanted)
{
	return is_name(value, wanted);
}

/* Which headers have been there: those may stand once. */
struct seen {
	bool length, authorization, host, key;
};

static int take_length(struct line value, struct sw_http_head *head, struct seen *seen, int *ret_status, struct sw_err *err)
{
	if (seen->length)
		return refuse(400, "it has two lengths", ret_status, err);
	seen->length = true;
	for (size_t i = 0; i < value.size; i++)
		if (value.text[i] < '0' || value.text[i] > '9')
			return refuse(400, "its length is not a number", ret_status, err);
	if (value.size > 18 || sw_parse_u64(value.text, value.size, &head->body_size) < 0)
		return refuse(value.size > 18 ? 413 : 400, "its length is not a number that is possible", ret_status, err);
	return 0;
}

static int take_authorization(struct line value, struct sw_http_head *head, struct seen *seen, int *ret_status, struct sw_err *err)
{
	static const char scheme[] = "Bearer ";
	size_t skip = sizeof scheme - 1;
	if (seen->authorization)
		return refuse(400, "it has two authorizations", ret_status, err);
	seen->authorization = true;
	if (value.size <= skip || strncasecmp(value.text, scheme, skip) != 0 || value.size - skip > SW_HTTP_TOKEN_MAX)
		return 0; /* no token: refused later, as a request without one */
	memcpy(head->token, value.text + skip, value.size - skip);
	head->token[value.size - skip] = '\0';
	return 0;
}

static int take_key(struct line value, struct sw_http_head *head, struct seen *seen, int *ret_status, struct sw_err *err)
{
	if (seen->key)
		return refuse(400, "it has two keys", ret_status, err);
	seen->key = true;
	/* A key that was cut, or left out, would be no promise at all. */
	if (value.size == 0 || value.size > SW_HTTP_KEY_MAX)
		return refuse(400, "its Idempotency-Key does not have 1 to 128 characters", ret_status, err);
	for (size_t i = 0; i < value.size; i++)
		if (value.text[i] <= ' ' || value.text[i] >= 0x7F)
			return refuse(400, "its Idempotency-Key has characters that are not visible ASCII", ret_status, err);
	memcpy(head->key, value.text, value.size);
	head->key[value.size] = '\0';
	return 0;
}

static int take_header(struct line name, struct line value, struct sw_http_head *head, struct seen *seen, int *ret_status,
		       struct sw_err *err)
{
	if (is_name(name, "content-length"))
		return take_length(value, head, seen, ret_status, err);
	if (is_name(name, "transfer-encoding"))
		return refuse(501, "its body comes in a transfer coding; only bodies with a length are read", ret_status, err);
	if (is_name(name, "authorization"))
		return take_authorization(value, head, seen, ret_status, err);
	if (is_name(name, "idempotency-key"))
		return take_key(value, head, seen, ret_status, err);
	if (is_name(name, "connection")) {
		if (is_value(value, "close"))
			head->keep_alive = false;
		else if (is_value(value, "keep-alive"))
			head->keep_alive = true;
	} else if (is_name(name, "expect")) {
		if (!is_value(value, "100-continue"))
			return refuse(417, "it expects what is not done here", ret_status, err);
		head->expects_continue = true;
	} else if (is_name(name, "last-event-id")) {
		head->has_last_event_id = sw_parse_u64(value.text, value.size, &head->last_event_id) == 0;
	} else if (is_name(name, "host")) {
		if (seen->host)
			return refuse(400, "it names two hosts", ret_status, err);
		seen->host = true;
	}
	return 0;
}

static int parse_header(struct line line, struct sw_http_head *head, struct seen *seen, int *ret_status, struct sw_err *err)
{
	size_t name = 0;
	while (name < line.size && is_token_byte(line.text[name]))
		name++;
	if (name == 0 || name == line.size || line.text[name] != ':')
		return refuse(400, "a header line is not of the form 'name: value'", ret_status, err);
	struct line value = {line.text + name + 1, line.size - name - 1};
	while (value.size > 0 && (value.text[0] == ' ' || value.text[0] == '\t')) {
		value.text++;
		value.size--;
	}
	while (value.size > 0 && (value.text[value.size - 1] == ' ' || value.text[value.size - 1] == '\t'))
		value.size--;
	for (size_t i = 0; i < value.size; i++)
		if (((unsigned char)value.text[i] < ' ' && value.text[i] != '\t') || value.text[i] == 0x7F)
			return refuse(400, "a header's value has a control character", ret_status, err);
	return take_header((struct line){line.text, name}, value, head, seen, ret_status, err);
}

/* Where the empty line ends that closes the head; 0 when it is not there yet. */
static size_t find_end(const char *bytes, size_t size)
{
	const char *end = memmem(bytes, size, "\r\n\r\n", 4);
	return end != NULL ? (size_t)(end - bytes) + 4 : 0;
}

int sw_http_parse_head(const char *bytes, size_t size, struct sw_http_head *ret_head, int *ret_status, struct sw_err *err)
{
	size_t end = find_end(bytes, size < SW_HTTP_HEAD_MAX ? size : SW_HTTP_HEAD_MAX);
	if (end == 0) {
		if (size >= SW_HTTP_HEAD_MAX)
			return refuse(431, "its head is too long", ret_status, err);
		/* What cannot become a request need not be waited for. */
		if (size > 0 && !is_token_byte(bytes[0]))
			return refuse(400, "its first line has no method", ret_status, err);
		return 0;
	}
	struct sw_http_head head = {.size = end};
	struct seen seen = {0};
	struct line line;
	size_t at = 0;
	if (!next_line(bytes, end, &at, &line))
		return refuse(400, "a line does not end with CR LF", ret_status, err);
	int r = parse_request_line(line, &head, ret_status, err);
	for (unsigned count = 0; r == 0; count++) {
		if (!next_line(bytes, end, &at, &line))
			return refuse(400, "a line does not end with CR LF", ret_status, err);
		if (line.size == 0)
			break;
		if (count == SW_HTTP_HEADERS_MAX)
			return refuse(431, "it has too many headers", ret_status, err);
		r = parse_header(line, &head, &seen, ret_status, err);
	}
	if (r < 0)
		return r;
	*ret_head = head;
	return 1;
}

const char *sw_http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{100, "Continue"},
		{200, "OK"},
		{201, "Created"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{417, "Expectation Failed"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}
