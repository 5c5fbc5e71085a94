#define _GNU_SOURCE
#include "ccurl.h"

#include "clinux.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

CURLcode birdcurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}

CURLcode birdcurl_set_body(CURL *easy, const void *bytes, long length) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, length);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, bytes);
}

CURLcode birdcurl_set_write(CURL *easy, birdcurl_data_function function, void *user_data) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, function);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_WRITEDATA, user_data);
}

CURLcode birdcurl_set_header(CURL *easy, birdcurl_data_function function, void *user_data) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, function);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_HEADERDATA, user_data);
}

CURLcode birdcurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLcode birdcurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLcode birdcurl_get_socket(CURL *easy, curl_socket_t *value) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, value);
}

CURLcode birdcurl_get_pointer(CURL *easy, CURLINFO info, void **value) {
    return curl_easy_getinfo(easy, info, value);
}

CURLMcode birdcurl_multi_act_on_all(CURLM *multi, int *running) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return curl_multi_socket_all(multi, running);
#pragma GCC diagnostic pop
}

const char *birdcurl_tls_library(void) {
    const char *name = curl_version_info(CURLVERSION_NOW)->ssl_version;
    return name != NULL ? name : "";
}

const char *birdcurl_built_in_ca_file(void) {
    return curl_version_info(CURLVERSION_NOW)->cainfo;
}

const char *birdcurl_built_in_ca_path(void) {
    return curl_version_info(CURLVERSION_NOW)->capath;
}

/* OpenSSL is asked through libcurl, whose TLS library need not be the one that the process finds first. */
int birdcurl_policy_tls_min(void) {
    enum { GET_MIN_PROTO_VERSION = 130 };
    Dl_info curl;
    void *library = dladdr((void *)curl_easy_init, &curl) != 0 ? dlopen(curl.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    if (library == NULL) {
        return 0;
    }
    const void *(*method)(void);
    void *(*new_context)(const void *);
    long (*control)(void *, int, long, void *);
    void (*free_context)(void *);
    *(void **)&method = dlsym(library, "TLS_client_method");
    *(void **)&new_context = dlsym(library, "SSL_CTX_new");
    *(void **)&control = dlsym(library, "SSL_CTX_ctrl");
    *(void **)&free_context = dlsym(library, "SSL_CTX_free");
    long version = 0;
    if (method != NULL && new_context != NULL && control != NULL && free_context != NULL) {
        void *context = new_context(method());
        if (context != NULL) {
            version = control(context, GET_MIN_PROTO_VERSION, 0, NULL);
            free_context(context);
        }
    }
    dlclose(library);
    return (int)version;
}

int birdcurl_may_keep_tls_sessions(void) {
    return curl_version_info(CURLVERSION_NOW)->version_num >= 0x080800;
}

CURLSH *birdcurl_share_of_tls_sessions(void) {
    CURLSH *share = curl_share_init();
    if (share != NULL && curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION) != CURLSHE_OK) {
        curl_share_cleanup(share);
        share = NULL;
    }
    return share;
}

CURLcode birdcurl_set_share(CURL *easy, CURLSH *share) {
    return curl_easy_setopt(easy, CURLOPT_SHARE, share);
}

CURLMcode birdcurl_multi_set_callbacks(CURLM *multi, birdcurl_socket_function on_socket,
                                       birdcurl_timer_function on_timer, void *user_data) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, user_data);
    }
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    }
    if (code == CURLM_OK) {
        code = curl_multi_setopt(multi, CURLMOPT_TIMERDATA, user_data);
    }
    return code;
}

/* One bit an fd. Sockets beyond are not noted: a forked child keeps its copies of those. */
enum { NOTED_FDS_MAX = 65536, WORD_BITS = 64 };
typedef _Atomic uint64_t fd_set_words[NOTED_FDS_MAX / WORD_BITS];
static fd_set_words open_sockets, inherited_sockets;

static uint64_t bit(int fd) {
    return UINT64_C(1) << (fd % WORD_BITS);
}

/* The user data of open_socket for handles that speak plaintext. */
static char only_loopback;

static int is_loopback(const struct curl_sockaddr *address) {
    if (address->family == AF_INET) {
        struct sockaddr_in v4;
        memcpy(&v4, &address->addr, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (address->family == AF_INET6) {
        struct sockaddr_in6 v6;
        memcpy(&v6, &address->addr, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
    return 0;
}

static curl_socket_t open_socket(void *user_data, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    if (user_data == &only_loopback && !is_loopback(address)) {
        return CURL_SOCKET_BAD;
    }
    const int fd = birdlinux_above_stdio(socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol));
    if (fd >= 0 && fd < NOTED_FDS_MAX) {
        atomic_fetch_or(&open_sockets[fd / WORD_BITS], bit(fd));
    }
    return fd;
}

static int close_socket(void *user_data, curl_socket_t fd) {
    (void)user_data;
    if (fd >= 0 && fd < NOTED_FDS_MAX) {
        atomic_fetch_and(&open_sockets[fd / WORD_BITS], ~bit(fd));
    }
    return close(fd);
}

CURLcode birdcurl_set_sockets(CURL *easy) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    if (code != CURLE_OK) {
        return code;
    }
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
}

CURLcode birdcurl_allow_only_loopback(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &only_loopback);
}

void birdcurl_inherit_sockets(void) {
    for (size_t i = 0; i < NOTED_FDS_MAX / WORD_BITS; i++) {
        atomic_fetch_or(&inherited_sockets[i], atomic_exchange(&open_sockets[i], 0));
    }
}

void birdcurl_close_inherited(int fd) {
    if (fd >= 0 && fd < NOTED_FDS_MAX &&
        (atomic_fetch_and(&inherited_sockets[fd / WORD_BITS], ~bit(fd)) & bit(fd)) != 0) {
        close(fd);
    }
}

void birdcurl_close_all_inherited(void) {
    for (int fd = 0; fd < NOTED_FDS_MAX; fd++) {
        birdcurl_close_inherited(fd);
    }
}

static int is_unnamed_pair_without_cloexec(int fd) {
    int flags = fcntl(fd, F_GETFD);
    struct sockaddr_un address;
    socklen_t size = sizeof address;
    return flags >= 0 && (flags & FD_CLOEXEC) == 0 && getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           address.sun_family == AF_UNIX && size == sizeof address.sun_family;
}

static int bytes(int fd, unsigned long request) {
    int count = 0;
    return ioctl(fd, request, &count) < 0 ? -1 : count;
}

enum { CANDIDATES_MAX = 1024 };

/* The fds that may be libcurl's pair; the host may own others like them. */
static size_t find_candidates(int *fds) {
    size_t count = 0;
    DIR *directory = opendir("/proc/self/fd");
    if (directory == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        int fd = atoi(entry->d_name);
        if (fd > 2 && count < CANDIDATES_MAX && is_unnamed_pair_without_cloexec(fd)) {
            fds[count++] = fd;
        }
    }
    closedir(directory);
    return count;
}

/* UINT64_MAX: not an eventfd. */
static uint64_t eventfd_count(int fd) {
    char text[256];
    snprintf(text, sizeof text, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(text, "re");
    uint64_t count = UINT64_MAX;
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        sscanf(text, "eventfd-count: %" SCNx64, &count);
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* Two wake-ups add two to the eventfd of this multi, and to no other. */
static int is_wakeup_of(CURLM *multi, int fd) {
    uint64_t before = eventfd_count(fd);
    return before != UINT64_MAX && curl_multi_wakeup(multi) == CURLM_OK && curl_multi_wakeup(multi) == CURLM_OK &&
           eventfd_count(fd) == before + 2;
}

/* The number that the next fd gets, unless another thread is faster. */
static int next_fd(void) {
    int fd = eventfd(0, EFD_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    return fd;
}

static CURLM *multi_init(int *reader, int *writer) {
    *reader = *writer = -1;
    int first = next_fd();
    CURLM *multi = curl_multi_init();
    if (multi == NULL) {
        return NULL;
    }
    /* Newer versions wake themselves with an eventfd, which is the first that they open. */
    if (first >= 0 && is_wakeup_of(multi, first)) {
        *reader = first;
        return multi;
    }
    /* Older versions make the pair without close-on-exec and tell nobody its fds. A wake-up puts one byte into it, which shows which
       sockets it is; nobody reads that byte, since only curl_multi_poll would, and that is not used here. */
    int fds[CANDIDATES_MAX], unread[CANDIDATES_MAX], unsent[CANDIDATES_MAX];
    size_t count = find_candidates(fds);
    for (size_t i = 0; i < count; i++) {
        unread[i] = bytes(fds[i], FIONREAD);
        unsent[i] = bytes(fds[i], SIOCOUTQ);
    }
    if (count > 0 && curl_multi_wakeup(multi) == CURLM_OK) {
        for (size_t i = 0; i < count; i++) {
            int is_reader = unread[i] == 0 && bytes(fds[i], FIONREAD) == 1;
            int is_writer = unsent[i] == 0 && bytes(fds[i], SIOCOUTQ) > 0;
            if (is_reader || is_writer) {
                fcntl(fds[i], F_SETFD, FD_CLOEXEC);
                *(is_reader ? reader : writer) = fds[i];
            }
        }
    }
    return multi;
}

CURLM *birdcurl_multi_init(int *reader, int *writer) {
    birdlinux_hold_stdio();
    CURLM *multi = multi_init(reader, writer);
    birdlinux_release_stdio();
    return multi;
}
