#include "cli/share_places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "cli/places.h"
#include "share/throttle.h"

static const char *throttle_word(size_t index)
{
	return index < sw_throttle_count() ? sw_throttle_at(index)->name : NULL;
}

const struct sw_cli_words sw_cli_throttle_words = {.at = throttle_word};

static const char *strangers_word(size_t index)
{
	static const char *const words[] = {"avoid", "share", "ignore"};
	return index < SW_CLI_COUNT_OF(words) ? words[index] : NULL;
}

static const char *trespass_word(size_t index)
{
	static const char *const words[] = {"say", "stop"};
	return index < SW_CLI_COUNT_OF(words) ? words[index] : NULL;
}

static const char *device_rules_word(size_t index)
{
	static const char *const words[] = {"auto", "off"};
	return index < SW_CLI_COUNT_OF(words) ? words[index] : NULL;
}

const struct sw_cli_words sw_cli_device_rules_words = {.at = device_rules_word};
const struct sw_cli_words sw_cli_strangers_words = {.at = strangers_word}, sw_cli_trespass_words = {.at = trespass_word};

int sw_cli_share_size(const char *option, const char *text, uint64_t *ret_bytes, struct sw_err *err)
{
	if (sw_parse_bytes(text, strlen(text), ret_bytes) == 0 && *ret_bytes > 0)
		return 0;
	sw_err_set(err, SW_EINPUT, "'%.60s' is not a size for --%s", text, option);
	sw_err_hint(err, "Write it as 20G or 1500M.");
	return SW_EINPUT;
}

int sw_cli_share_folder(char folder[PATH_MAX], struct sw_err *err)
{
	struct sw_cli_places places;
	int r = sw_cli_places(NULL, false, &places, err);
	r = r < 0 ? r : sw_cli_places_make(&places, false, err);
	if (r < 0)
		return r;
	if (snprintf(folder, PATH_MAX, "%s/shares", places.state) >= PATH_MAX)
		return sw_err_set(err, SW_ELIMIT, "the path of the state folder is too long");
	if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
		sw_err_set(err, SW_EIO, "cannot make folder '%s'", folder);
		sw_err_detail(err, "%s", strerror(errno));
		return SW_EIO;
	}
	return 0;
}

int sw_cli_share_path(const char *name, char path[PATH_MAX], struct sw_err *err)
{
	char folder[PATH_MAX];
	size_t length = strlen(name);
	if (length == 0 || length > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != length ||
	    name[0] == '.') {
		sw_err_set(err, SW_EINPUT, "'%.70s' cannot be the name of a share", name);
		sw_err_hint(err, "Up to 64 letters, digits, dots, dashes and underscores; a dot not first.");
		return SW_EINPUT;
	}
	int r = sw_cli_share_folder(folder, err);
	if (r < 0)
		return r;
	return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX ? 0
									  : sw_err_set(err, SW_ELIMIT, "the name of the share is too long");
}

int sw_cli_share_open(const char *name, bool mapped, struct sw_share_page **ret_page, struct sw_err *err)
{
	char path[PATH_MAX];
	int r = sw_cli_share_path(name, path, err);
	if (r < 0)
		return r;
	if (access(path, F_OK) != 0) {
		sw_err_set(err, SW_ENOTFOUND, "there is no share '%s'", name);
		sw_err_hint(err, "'sharewell share --list' shows those that there are.");
		return SW_ENOTFOUND;
	}
	return mapped ? sw_share_page_open_mapped(path, ret_page, err) : sw_share_page_open(path, ret_page, err);
}

static bool has_off(const char *path)
{
	SW_CLEANUP(sw_share_page_closep) struct sw_share_page *page = NULL;
	struct sw_share_figures figures = {0};
	if (sw_share_page_open(path, &page, NULL) == 0)
		sw_share_page_look(page, &figures);
	return figures.off > 0;
}

bool sw_cli_share_is_alive(const char *path)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	int fd = open(path, O_RDWR | O_CLOEXEC);
	bool alive = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
	if (fd >= 0)
		close(fd);
	return alive || has_off(path);
}
