/*
 * LD_PRELOAD: one call of a function of the C library fails, when it is the library or libcurl that calls. Memory fails for libcurl only, the
 * run time of Swift not going on without, and not while libcurl drives its transfers, where 7.88 divides by zero then (docs/embedding.md).
 *
 * A program finds faults_arm(FUNCTION, NTH, ERROR) by dlsym: the NTH call from now on, counted from 1, fails with this errno value. An
 * ERROR of 0 disarms. faults_left() are the calls that it takes until then, 0 when it has happened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <netdb.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/types.h>

void faults_arm(const char *function, int nth, int error);
int faults_left(void);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

enum { RANGES_MAX = 16 };

typedef struct range {
    uintptr_t from, to;
    bool is_libcurl;
} range;

static range ranges[RANGES_MAX];
static int range_count;
static const char *armed; /* set and cleared while nobody calls */
static int armed_error;
static atomic_int left;

static int note_object(struct dl_phdr_info *object, size_t size, void *unused) {
    (void)size;
    (void)unused;
    const bool is_libcurl = strstr(object->dlpi_name, "libcurl") != NULL;
    for (int i = 0; (is_libcurl || strstr(object->dlpi_name, "libbirdrealtime") != NULL) && i < object->dlpi_phnum;
         i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0 && range_count < RANGES_MAX) {
            const uintptr_t from = object->dlpi_addr + part->p_vaddr;
            ranges[range_count++] = (range){from, from + part->p_memsz, is_libcurl};
        }
    }
    return 0;
}

void faults_arm(const char *function, int nth, int error) {
    if (range_count == 0) {
        dl_iterate_phdr(note_object, NULL);
    }
    atomic_store(&left, 0);
    armed = error != 0 ? function : NULL;
    armed_error = error;
    atomic_store(&left, error != 0 ? nth : 0);
}

int faults_left(void) {
    return atomic_load(&left);
}

/* True, errno being set: this call fails. */
static bool fails(const char *function, const void *caller, bool is_memory) {
    if (atomic_load(&left) <= 0 || armed == NULL || strcmp(armed, function) != 0) {
        return false;
    }
    for (int i = 0; i < range_count; i++) {
        if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to &&
            (ranges[i].is_libcurl || !is_memory)) {
            errno = armed_error;
            return atomic_fetch_sub(&left, 1) == 1;
        }
    }
    return false;
}

static _Thread_local int drives;

/* What libcurl does here is its own. */
int curl_multi_socket_action(void *multi, int fd, int events, int *running);
int curl_multi_socket_action(void *multi, int fd, int events, int *running) {
    static int (*original)(void *, int, int, int *);
    if (original == NULL) {
        *(void **)&original = dlsym(RTLD_NEXT, "curl_multi_socket_action");
    }
    drives++;
    const int code = original(multi, fd, events, running);
    drives--;
    return code;
}

int curl_multi_socket_all(void *multi, int *running);
int curl_multi_socket_all(void *multi, int *running) {
    static int (*original)(void *, int *);
    if (original == NULL) {
        *(void **)&original = dlsym(RTLD_NEXT, "curl_multi_socket_all");
    }
    drives++;
    const int code = original(multi, running);
    drives--;
    return code;
}

#define FAILS(function) fails(function, __builtin_return_address(0), false)
#define LACKS_MEMORY (drives == 0 && fails("memory", __builtin_return_address(0), true))

/* The C library's own function of this name. */
#define ORIGINAL(result, name, ...)                                                                                    \
    static result (*original)(__VA_ARGS__);                                                                            \
    if (original == NULL) {                                                                                            \
        *(void **)&original = dlsym(RTLD_NEXT, name);                                                                  \
    }

int socket(int domain, int type, int protocol) {
    ORIGINAL(int, "socket", int, int, int)
    return FAILS("socket") ? -1 : original(domain, type, protocol);
}

int socketpair(int domain, int type, int protocol, int fds[2]) {
    ORIGINAL(int, "socketpair", int, int, int, int[2])
    return FAILS("socketpair") ? -1 : original(domain, type, protocol, fds);
}

int epoll_create1(int flags) {
    ORIGINAL(int, "epoll_create1", int)
    return FAILS("epoll_create1") ? -1 : original(flags);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event) {
    ORIGINAL(int, "epoll_ctl", int, int, int, struct epoll_event *)
    return operation != EPOLL_CTL_DEL && FAILS("epoll_ctl") ? -1 : original(epoll, operation, fd, event);
}

int eventfd(unsigned count, int flags) {
    ORIGINAL(int, "eventfd", unsigned, int)
    return FAILS("eventfd") ? -1 : original(count, flags);
}

int timerfd_create(clockid_t clock, int flags) {
    ORIGINAL(int, "timerfd_create", clockid_t, int)
    return FAILS("timerfd_create") ? -1 : original(clock, flags);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    ORIGINAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *)
    return FAILS("pthread_create") ? armed_error : original(thread, attributes, body, argument);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    ORIGINAL(int, "getaddrinfo", const char *, const char *, const struct addrinfo *, struct addrinfo **)
    return FAILS("getaddrinfo") ? EAI_SYSTEM : original(name, service, hints, list);
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    ORIGINAL(ssize_t, "send", int, const void *, size_t, int)
    return FAILS("send") ? -1 : original(fd, bytes, count, flags);
}

ssize_t recv(int fd, void *bytes, size_t count, int flags) {
    ORIGINAL(ssize_t, "recv", int, void *, size_t, int)
    return FAILS("recv") ? -1 : original(fd, bytes, count, flags);
}

int open(const char *path, int flags, ...) {
    ORIGINAL(int, "open", const char *, int, ...)
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return FAILS("open") ? -1 : original(path, flags, mode);
}

void *malloc(size_t size) {
    return LACKS_MEMORY ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    return LACKS_MEMORY ? NULL : __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    return LACKS_MEMORY ? NULL : __libc_realloc(memory, size);
}

char *strdup(const char *text) {
    const size_t size = strlen(text) + 1;
    char *copy = LACKS_MEMORY ? NULL : __libc_malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}
