#include "server/certificate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LIFE_S (10L * 365 * 86400)
#define RENEW_S (30L * 86400)
#define NAMES_MAX 4096

SW_DEFINE_FREEP(EVP_PKEY, EVP_PKEY_free)
SW_DEFINE_FREEP(X509, X509_free)

static int refuse(struct sw_err *err, const char *path, const char *detail)
{
	sw_err_set(err, SW_EIO, "cannot make the certificate '%s'", path);
	sw_err_detail(err, "%s", detail);
	ERR_clear_error();
	return SW_EIO;
}

/* ---- files */

/* Whole or not at all: what is written becomes the file when it is complete. */
static int write_file(const char *path, int (*write_pem)(FILE *file, void *what), void *what, struct sw_err *err)
{
	SW_CLEANUP(sw_freep) char *temporary = NULL;
	if (asprintf(&temporary, "%s.new", path) < 0)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	unlink(temporary);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
	bool good = file != NULL && write_pem(file, what) == 1 && fflush(file) == 0 && fsync(fd) == 0;
	int error = errno;
	if (file != NULL)
		fclose(file);
	if (good && rename(temporary, path) == 0)
		return 0;
	error = good ? errno : error;
	unlink(temporary);
	return refuse(err, path, strerror(error));
}

static int write_key(FILE *file, void *key)
{
	return PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
}

static int write_certificate(FILE *file, void *certificate)
{
	return PEM_write_X509(file, certificate);
}

/* ---- the key */

static int find_key(const char *path, EVP_PKEY **ret_key, struct sw_err *err)
{
	SW_CLEANUP(EVP_PKEY_freep) EVP_PKEY *key = NULL;
	FILE *file = fopen(path, "re");
	if (file != NULL) {
		key = PEM_read_PrivateKey(file, NULL, NULL, NULL);
		fclose(file);
		if (key == NULL)
			return refuse(err, path, "the file of its key holds none; remove it to have one made");
		*ret_key = SW_TAKE(key);
		return 0;
	}
	if (errno != ENOENT)
		return refuse(err, path, strerror(errno));
	key = EVP_EC_gen("P-256");
	if (key == NULL)
		return refuse(err, path, "the key cannot be made");
	int r = write_file(path, write_key, key, err);
	if (r == 0)
		*ret_key = SW_TAKE(key);
	return r;
}

/* ---- the certificate */

static bool is_host_name(const char *name)
{
	return name[0] != '\0' && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(name);
}

static void add_name(char names[NAMES_MAX], const char *kind, const char *name)
{
	size_t used = strlen(names);
	if (used + strlen(kind) + strlen(name) + 3 < NAMES_MAX)
		snprintf(names + used, NAMES_MAX - used, "%s%s:%s", used > 0 ? "," : "", kind, name);
}

/* What clients may call this machine: its name, and every address that it has. */
static void list_names(char names[NAMES_MAX])
{
	char text[INET6_ADDRSTRLEN], host[256] = "";
	struct ifaddrs *all = NULL;
	names[0] = '\0';
	add_name(names, "DNS", "localhost");
	if (gethostname(host, sizeof host - 1) == 0 && is_host_name(host))
		add_name(names, "DNS", host);
	if (getifaddrs(&all) != 0)
		all = NULL;
	for (const struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
		int family = each->ifa_addr != NULL ? each->ifa_addr->sa_family : AF_UNSPEC;
		const void *number = family == AF_INET ? (const void *)&((const struct sockaddr_in *)(const void *)each->ifa_addr)->sin_addr
				     : family == AF_INET6
					     ? (const void *)&((const struct sockaddr_in6 *)(const void *)each->ifa_addr)->sin6_addr
					     : NULL;
		if (number != NULL && inet_ntop(family, number, text, sizeof text) != NULL)
			add_name(names, "IP", text);
	}
	if (all != NULL)
		freeifaddrs(all);
}

static bool extend(X509 *certificate, int number, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, number, value);
	bool good = extension != NULL && X509_add_ext(certificate, extension, -1) == 1;
	X509_EXTENSION_free(extension);
	return good;
}

static bool number_it(X509 *certificate)
{
	BIGNUM *number = BN_new();
	bool good = number != NULL && BN_rand(number, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
		    BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
	BN_free(number);
	return good;
}

static bool fill(X509 *certificate, EVP_PKEY *key)
{
	char names[NAMES_MAX];
	list_names(names);
	X509_NAME *name = X509_get_subject_name(certificate);
	static const unsigned char common[] = "Sharewell controller";
	return X509_set_version(certificate, X509_VERSION_3) == 1 && number_it(certificate) &&
	       /* Clocks differ a little. */
	       X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != NULL &&
	       X509_gmtime_adj(X509_getm_notAfter(certificate), LIFE_S) != NULL && X509_set_pubkey(certificate, key) == 1 &&
	       X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0) == 1 &&
	       X509_set_issuer_name(certificate, name) == 1 && extend(certificate, NID_basic_constraints, "critical,CA:FALSE") &&
	       extend(certificate, NID_key_usage, "critical,digitalSignature") && extend(certificate, NID_ext_key_usage, "serverAuth") &&
	       extend(certificate, NID_subject_alt_name, names) && X509_sign(certificate, key, EVP_sha256()) > 0;
}

/* Whether there is one of this key that lasts. */
static bool is_good(const char *path, EVP_PKEY *key)
{
	time_t soon = time(NULL) + RENEW_S;
	FILE *file = fopen(path, "re");
	SW_CLEANUP(X509_freep) X509 *certificate = file != NULL ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
	if (file != NULL)
		fclose(file);
	bool good = certificate != NULL && X509_check_private_key(certificate, key) == 1 &&
		    X509_cmp_time(X509_get0_notAfter(certificate), &soon) > 0;
	ERR_clear_error();
	return good;
}

int sw_certificate_make(const char *certificate, const char *key, struct sw_err *err)
{
	SW_CLEANUP(EVP_PKEY_freep) EVP_PKEY *own = NULL;
	int r = find_key(key, &own, err);
	if (r < 0 || is_good(certificate, own))
		return r;
	SW_CLEANUP(X509_freep) X509 *made = X509_new();
	if (made == NULL || !fill(made, own))
		return refuse(err, certificate, "it cannot be signed");
	return write_file(certificate, write_certificate, made, err);
}
