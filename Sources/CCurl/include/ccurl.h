/* libcurl for Swift: typed forms of the variadic calls that this library makes. */
#ifndef BIRD_CCURL_H
#define BIRD_CCURL_H

#include <curl/curl.h>

/* A macro with a cast, which Swift does not see. */
static const long birdcurl_auth_basic = (long)CURLAUTH_BASIC;

CURLcode birdcurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode birdcurl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode birdcurl_set_pointer(CURL *easy, CURLoption option, void *value);
CURLcode birdcurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value);
/* The body of a POST, copied by libcurl. */
CURLcode birdcurl_set_body(CURL *easy, const void *bytes, long length);

typedef size_t (*birdcurl_data_function)(char *bytes, size_t size, size_t count, void *user_data);
CURLcode birdcurl_set_write(CURL *easy, birdcurl_data_function function, void *user_data);
CURLcode birdcurl_set_header(CURL *easy, birdcurl_data_function function, void *user_data);

CURLcode birdcurl_get_long(CURL *easy, CURLINFO info, long *value);
CURLcode birdcurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value);
CURLcode birdcurl_get_socket(CURL *easy, curl_socket_t *value);
CURLcode birdcurl_get_pointer(CURL *easy, CURLINFO info, void **value);

/* Of the libcurl in this process: "OpenSSL/3.0.19" or the like, and where it was built to find CA certificates; "" and NULL if nowhere. */
const char *birdcurl_tls_library(void);
const char *birdcurl_built_in_ca_file(void);
const char *birdcurl_built_in_ca_path(void);

/* The lowest TLS version that the configuration of the TLS library of libcurl's allows, 0x0303 for TLS 1.2 and so on; 0: it has no say, or
   the TLS library is not OpenSSL. After curl_global_init. */
int birdcurl_policy_tls_min(void);

/* Sessions may be kept. Versions before 8.8 free memory twice when there was none for one that they keep (Curl_ssl_addsessionid). */
int birdcurl_may_keep_tls_sessions(void);
/* A share handle for TLS sessions, to be used by one thread; NULL without memory. Free it with curl_share_cleanup. */
CURLSH *birdcurl_share_of_tls_sessions(void);
CURLcode birdcurl_set_share(CURL *easy, CURLSH *share);

/* Connections of this handle to anything but a loopback address fail: for plaintext. */
CURLcode birdcurl_allow_only_loopback(CURL *easy);

/* Makes libcurl open its sockets with close-on-exec, and keeps note of those that are open. */
CURLcode birdcurl_set_sockets(CURL *easy);
/* In a forked child: the sockets noted so far are copies of the parent's. */
void birdcurl_inherit_sockets(void);
/* Closes the copy of one of them, of all that are left. */
void birdcurl_close_inherited(int fd);
void birdcurl_close_all_inherited(void);

/* curl_multi_init, with close-on-exec on what libcurl wakes itself with: a pair of sockets, whose fds *reader and *writer receive, or an
   eventfd, which *reader receives. -1 if they could not be told from others. */
CURLM *birdcurl_multi_init(int *reader, int *writer);

/* curl_multi_socket_all, which is marked as deprecated and has no replacement. */
CURLMcode birdcurl_multi_act_on_all(CURLM *multi, int *running);

typedef int (*birdcurl_socket_function)(CURL *easy, curl_socket_t fd, int what, void *user_data, void *socket_data);
typedef int (*birdcurl_timer_function)(CURLM *multi, long timeout_ms, void *user_data);
/* Both callbacks of the socket interface, with one user_data. */
CURLMcode birdcurl_multi_set_callbacks(CURLM *multi, birdcurl_socket_function on_socket,
                                       birdcurl_timer_function on_timer, void *user_data);

#endif
