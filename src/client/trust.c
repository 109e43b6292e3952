#include "client/trust.h"

#include <string.h>

static bool is_loopback(const char *host)
{
	size_t size = strcspn(host, ":/");
	return strncmp(host, "[::1]", 5) == 0 || (size == 9 && strncmp(host, "localhost", 9) == 0) ||
	       (strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == size);
}

int sw_trust_check(const char *url, struct sw_err *err)
{
	if (strncmp(url, "http://", 7) != 0 || is_loopback(url + 7))
		return 0;
	sw_err_set(err, SW_EINPUT, "a token must not go to '%.200s' in the clear", url);
	sw_err_detail(err, "a listener on the way could use it");
	sw_err_hint(err, "Controllers beyond this machine speak TLS: the address begins with https://.");
	return SW_EINPUT;
}

void sw_trust_set(CURL *easy, const char *ca)
{
	curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (ca == NULL || ca[0] == '\0')
		return;
	if (strncmp(ca, "sha256//", 8) != 0) {
		curl_easy_setopt(easy, CURLOPT_CAINFO, ca);
		/* That file and nothing else. */
		curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
		return;
	}
	/* The key itself is known: its signature, and the name in it, add nothing. */
	curl_easy_setopt(easy, CURLOPT_PINNEDPUBLICKEY, ca);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
	curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
}

bool sw_trust_explain(CURLcode code, const char *place, const char *detail, struct sw_err *err)
{
	switch (code) {
	case CURLE_PEER_FAILED_VERIFICATION:
		sw_err_set(err, SW_EDENIED, "the certificate of the controller at %s is not trusted", place);
		sw_err_hint(err, "Set SHAREWELL_CA to the fingerprint that the controller prints at its start, or to a file with the "
				 "certificate that signed it.");
		break;
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		sw_err_set(err, SW_EDENIED, "what answers at %s is not the controller that SHAREWELL_CA names", place);
		sw_err_hint(err, "It may have a new key, which its operator can confirm; or another program answers in its place.");
		break;
	case CURLE_SSL_CACERT_BADFILE:
		sw_err_set(err, SW_EINPUT,
			   "cannot read the certificates of authorities: the certificate of the controller at %s is not trusted", place);
		sw_err_hint(err,
			    "Set SHAREWELL_CA to a file that can be read, or to the fingerprint that the controller prints at its start.");
		break;
	case CURLE_SSL_CONNECT_ERROR:
		sw_err_set(err, SW_EIO, "no TLS with what answers at %s", place);
		sw_err_hint(err, "A controller on this machine may speak plain http:// there.");
		break;
	default:
		return false;
	}
	sw_err_detail(err, "%s", detail != NULL && detail[0] != '\0' ? detail : curl_easy_strerror(code));
	return true;
}
