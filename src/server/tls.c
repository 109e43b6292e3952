#include "server/tls.h"

#include <errno.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct sw_tls {
	SSL_CTX *context;
	char pin[SW_TLS_PIN_SIZE];
	int64_t ends_at_s;
};

void sw_tls_free(struct sw_tls *tls)
{
	if (tls == NULL)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}

const char *sw_tls_pin(const struct sw_tls *tls)
{
	return tls->pin;
}

int64_t sw_tls_ends_at_s(const struct sw_tls *tls)
{
	return tls->ends_at_s;
}

/* ---- certificate and key */

/* What the library says of its last failure; it keeps a list, of which the first is the cause. */
static int refuse(struct sw_err *err, const char *what, const char *path)
{
	unsigned long number = ERR_get_error();
	const char *reason = number != 0 ? ERR_reason_error_string(number) : NULL;
	ERR_clear_error();
	sw_err_set(err, SW_EINPUT, "cannot use the %s '%s'", what, path);
	sw_err_detail(err, "%s", reason != NULL ? reason : "it is not in the PEM form");
	return SW_EINPUT;
}

static int check_file(const char *what, const char *path, bool is_secret, struct sw_err *err)
{
	struct stat info;
	if (stat(path, &info) < 0) {
		sw_err_set(err, SW_EINPUT, "cannot read the %s '%s'", what, path);
		sw_err_detail(err, "%s", strerror(errno));
		return SW_EINPUT;
	}
	if (!is_secret || (info.st_mode & S_IRWXO) == 0)
		return 0;
	sw_err_set(err, SW_EDENIED, "cannot use the %s '%s'", what, path);
	sw_err_detail(err, "all users can read it");
	sw_err_hint(err, "chmod 600 it, and make a new one if it may have been read.");
	return SW_EDENIED;
}

/* A daemon cannot ask for a password. */
static int no_password(char *buffer, int size, int for_writing, void *user)
{
	(void)for_writing, (void)user;
	if (size > 0)
		buffer[0] = '\0';
	return 0;
}

static int load(struct sw_tls *tls, const char *certificate, const char *key, struct sw_err *err)
{
	int r = check_file("certificate", certificate, false, err);
	r = r < 0 ? r : check_file("certificate's key", key, true, err);
	if (r < 0)
		return r;
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb(tls->context, no_password);
	if (SSL_CTX_use_certificate_chain_file(tls->context, certificate) != 1)
		return refuse(err, "certificate", certificate);
	/* Checks that they belong together, too. */
	if (SSL_CTX_use_PrivateKey_file(tls->context, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(tls->context) != 1)
		return refuse(err, "certificate's key", key);
	return 0;
}

/* The fingerprint of the public key, and the last day. */
static int describe(struct sw_tls *tls, struct sw_err *err)
{
	const X509 *certificate = SSL_CTX_get0_certificate(tls->context);
	unsigned char hash[EVP_MAX_MD_SIZE], text[EVP_MAX_MD_SIZE * 2], *key = NULL;
	unsigned size = 0;
	struct tm end;
	int key_size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key);
	bool good = key_size > 0 && EVP_Digest(key, (size_t)key_size, hash, &size, EVP_sha256(), NULL) == 1 &&
		    ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1;
	OPENSSL_free(key);
	if (!good)
		return sw_err_set(err, SW_EINPUT, "cannot read the certificate");
	EVP_EncodeBlock(text, hash, (int)size);
	snprintf(tls->pin, sizeof tls->pin, "sha256//%.44s", (const char *)text);
	tls->ends_at_s = timegm(&end);
	return 0;
}

int sw_tls_open(const char *certificate, const char *key, struct sw_tls **ret_tls, struct sw_err *err)
{
	SW_CLEANUP(sw_tls_freep) struct sw_tls *tls = calloc(1, sizeof *tls);
	if (tls == NULL || (tls->context = SSL_CTX_new(TLS_server_method())) == NULL)
		return sw_err_set(err, SW_ENOMEM, "out of memory");
	SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION);
	SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* Most connections wait most of the time, and need no buffers then. */
	SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
	int r = load(tls, certificate, key, err);
	r = r < 0 ? r : describe(tls, err);
	if (r < 0)
		return r;
	*ret_tls = SW_TAKE(tls);
	return 0;
}

/* ---- connections */

struct bufferevent *sw_tls_accept(const struct sw_tls *tls, struct event_base *base, int fd)
{
	SSL *ssl = SSL_new(tls->context);
	/* On failure libevent frees `ssl`, and leaves `fd` alone. */
	struct bufferevent *bev =
		ssl != NULL ? bufferevent_openssl_socket_new(base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE) : NULL;
	/* A client that goes without a word has gone all the same; lengths tell
	 * whether it had said all. */
	if (bev != NULL)
		bufferevent_openssl_set_allow_dirty_shutdown(bev, 1);
	return bev;
}

void sw_tls_end(struct bufferevent *bev)
{
	SSL_shutdown(bufferevent_openssl_get_ssl(bev));
	ERR_clear_error();
}

bool sw_tls_was_plain(struct bufferevent *bev)
{
	for (unsigned long number; (number = bufferevent_get_openssl_error(bev)) != 0;)
		if (ERR_GET_REASON(number) == SSL_R_HTTP_REQUEST)
			return true;
	return false;
}
