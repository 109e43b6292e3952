/* Where a controller is, what goes there, and what is made of its refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/access.h"

static struct sw_err err;

static int open_access(const char *controller, const char *token, struct sw_access *access)
{
	err = (struct sw_err){0};
	return sw_access_init(access, controller, token, NULL, &err);
}

/* Aim: a place is a socket or a URL, and its slashes at the end do not count. */
static void test_places(void **state)
{
	(void)state;
	struct sw_address address;
	assert_int_equal(sw_address_read("unix:/run/x.sock", &address, &err), 0);
	assert_string_equal(sw_address_place(&address), "/run/x.sock");
	assert_string_equal(address.url, "http://localhost");
	assert_int_equal(sw_address_read("https://h:1//", &address, &err), 0);
	assert_string_equal(sw_address_place(&address), "https://h:1");
	assert_string_equal(address.socket, "");
	char longest[6 + SW_ADDRESS_SOCKET_MAX + 1] = "unix:/";
	memset(longest + 6, 'x', SW_ADDRESS_SOCKET_MAX - 1);
	assert_int_equal(sw_address_read(longest, &address, &err), 0);
	assert_int_equal(strlen(address.socket), SW_ADDRESS_SOCKET_MAX);
}

/* Aim: anything else is refused with what would do. */
static void test_no_places(void **state)
{
	(void)state;
	static const char *const wrong[] = {"", "ftp://x", "host:80", "unix:", "unix:here.sock", "HTTP://x"};
	struct sw_address address = {.url = "as it was"};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		err = (struct sw_err){0};
		assert_int_equal(sw_address_read(wrong[i], &address, &err), SW_EINPUT);
		assert_true(err.detail[0] != '\0' || err.hint[0] != '\0');
	}
	char path[6 + SW_ADDRESS_SOCKET_MAX + 2] = "unix:/", url[600] = "http://";
	memset(path + 6, 'x', SW_ADDRESS_SOCKET_MAX);
	memset(url + 7, 'x', sizeof url - 8);
	assert_int_equal(sw_address_read(path, &address, &err), SW_EINPUT);
	assert_int_equal(sw_address_read(url, &address, &err), SW_EINPUT);
	assert_string_equal(address.url, "as it was");
}

/* Aim: a token goes to https and to this machine, and neither over a network in the clear nor to a
 * socket. */
static void test_tokens(void **state)
{
	(void)state;
	struct sw_access access;
	assert_int_equal(open_access("http://elsewhere:80", "secret", &access), SW_EINPUT);
	assert_non_null(strstr(err.fact, "in the clear"));
	assert_int_equal(open_access("http://elsewhere:80", "", &access), 0);
	sw_access_release(&access);
	assert_int_equal(open_access("https://elsewhere", "secret", &access), 0);
	assert_string_equal(access.token, "secret");
	sw_access_release(&access);
	assert_int_equal(open_access("http://127.0.0.1:80", "secret", &access), 0);
	assert_string_equal(access.token, "secret");
	sw_access_release(&access);
	assert_int_equal(open_access("unix:/x", "secret", &access), 0);
	assert_null(access.token);
	sw_access_release(&access);
}

/* Aim: a refusal is told in the controller's words; what is no word of a controller, by its
 * status. */
static void test_refusals(void **state)
{
	(void)state;
	struct sw_access access;
	const char *said = "{\"error\": {\"fact\": \"no such job\", \"detail\": \"17\", \"hint\": \"ps\"}}", *other = "<html>";
	assert_int_equal(open_access("https://h", NULL, &access), 0);
	assert_int_equal(sw_access_explain(&access, 404, said, strlen(said), &err), SW_ENOTFOUND);
	assert_string_equal(err.fact, "no such job");
	assert_string_equal(err.detail, "17");
	assert_string_equal(err.hint, "ps");
	err = (struct sw_err){0};
	assert_int_equal(sw_access_explain(&access, 502, other, strlen(other), &err), SW_EIO);
	assert_string_equal(err.fact, "the controller at https://h refused");
	assert_string_equal(err.detail, "HTTP status 502");
	assert_int_equal(sw_access_explain(&access, 403, NULL, 0, &err), SW_EDENIED);
	sw_access_release(&access);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_no_places),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
