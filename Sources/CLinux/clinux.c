#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *birdlinux_secure_getenv(const char *name) {
    return secure_getenv(name);
}

enum { FIRST_OWN_FD = 3 };

int birdlinux_above_stdio(int fd) {
    if (fd < 0 || fd >= FIRST_OWN_FD) {
        return fd;
    }
    const int raised = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
    const int error = errno;
    close(fd);
    errno = error;
    return raised;
}

static pthread_mutex_t stdio_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned stdio_holders, stdio_places;

void birdlinux_hold_stdio(void) {
    pthread_mutex_lock(&stdio_lock);
    stdio_holders++;
    for (int fd = 0; fd < FIRST_OWN_FD; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) {
            continue;
        }
        const int place = open("/", O_PATH | O_CLOEXEC);
        if (place >= 0 && place < FIRST_OWN_FD) {
            stdio_places |= 1U << place;
        } else if (place >= 0) {
            close(place);
        }
    }
    pthread_mutex_unlock(&stdio_lock);
}

static void free_places(void) {
    for (int fd = 0; fd < FIRST_OWN_FD; fd++) {
        /* The host may have put a file of its own there meanwhile. */
        if ((stdio_places & 1U << fd) != 0 && (fcntl(fd, F_GETFL) & O_PATH) != 0) {
            close(fd);
        }
    }
    stdio_places = 0;
}

void birdlinux_release_stdio(void) {
    const int error = errno;
    pthread_mutex_lock(&stdio_lock);
    /* None in a child that was forked meanwhile. */
    if (stdio_holders > 0 && --stdio_holders == 0) {
        free_places();
    }
    pthread_mutex_unlock(&stdio_lock);
    errno = error;
}

void birdlinux_lock_stdio_for_fork(void) {
    pthread_mutex_lock(&stdio_lock);
}

void birdlinux_unlock_stdio_after_fork(int is_child) {
    if (is_child) {
        stdio_holders = 0;
        free_places();
    }
    pthread_mutex_unlock(&stdio_lock);
}

uint64_t birdlinux_socket_cookie(int fd) {
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

int birdlinux_is_connected(int fd) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

int birdlinux_bytes_waiting(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) < 0 ? -1 : count;
}

int birdlinux_netlink_open(uint32_t *port) {
    struct sockaddr_nl own = {.nl_family = AF_NETLINK,
                              .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR |
                                           RTMGRP_IPV6_ROUTE};
    socklen_t size = sizeof own;
    birdlinux_hold_stdio();
    const int fd = birdlinux_above_stdio(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    birdlinux_release_stdio();
    if (fd < 0) {
        return -1;
    }
    if (bind(fd, (struct sockaddr *)&own, sizeof own) < 0 || getsockname(fd, (struct sockaddr *)&own, &size) < 0) {
        const int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    *port = own.nl_pid;
    return fd;
}

int birdlinux_netlink_ask(int fd, uint16_t type, uint32_t sequence) {
    const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    struct {
        struct nlmsghdr header;
        struct rtgenmsg body;
    } request = {.header = {.nlmsg_len = NLMSG_LENGTH(sizeof request.body),
                            .nlmsg_type = type,
                            .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                            .nlmsg_seq = sequence},
                 .body = {.rtgen_family = AF_UNSPEC}};
    const size_t length = request.header.nlmsg_len;
    const ssize_t sent = sendto(fd, &request, length, MSG_NOSIGNAL, (const struct sockaddr *)&kernel, sizeof kernel);
    return sent < 0 ? -1 : 0;
}

ssize_t birdlinux_netlink_receive(int fd, void *buffer, size_t size) {
    struct sockaddr_nl sender = {.nl_family = AF_UNSPEC};
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_name = &sender, .msg_namelen = sizeof sender, .msg_iov = &part, .msg_iovlen = 1};
    const ssize_t count = recvmsg(fd, &message, 0);
    if (count < 0) {
        return -1;
    }
    if (sender.nl_family != AF_NETLINK || sender.nl_pid != 0) {
        return 0;
    }
    if (message.msg_flags & MSG_TRUNC) {
        errno = ENOBUFS;
        return -1;
    }
    return count;
}

int birdlinux_source_address(int fd, uint8_t bytes[16]) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } own = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t size = sizeof own;
    if (getsockname(fd, &own.any, &size) < 0) {
        return -1;
    }
    switch (own.any.sa_family) {
    case AF_INET:
        memcpy(bytes, &own.v4.sin_addr, 4);
        return AF_INET;
    case AF_INET6:
        memcpy(bytes, &own.v6.sin6_addr, 16);
        return AF_INET6;
    default:
        return -1;
    }
}

enum { THREAD_NAME_BYTES_MAX = 16 };

struct thread_start {
    char name[THREAD_NAME_BYTES_MAX];
    void *(*body)(void *);
    void *argument;
    sigset_t of_handlers;
};

/* Of a thread of the library's: its own mask, the one for code of the program, and how many handlers are on its stack. */
static _Thread_local struct {
    bool is_own, differs;
    int depth;
    sigset_t at_rest, of_handlers;
} masks;

/* A fault of the processor that is blocked kills the process, although somebody may handle it. */
static void unblock_faults(sigset_t *mask) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigdelset(mask, faults[i]);
    }
}

/* A thread names itself with one system call; another one would have to open a file of /proc. */
static void *run_thread(void *argument) {
    const struct thread_start start = *(struct thread_start *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), start.name);
    pthread_sigmask(SIG_SETMASK, NULL, &masks.at_rest);
    masks.of_handlers = start.of_handlers;
    for (int number = 1; number <= SIGRTMAX && !masks.differs; number++) {
        masks.differs = sigismember(&masks.at_rest, number) != sigismember(&masks.of_handlers, number);
    }
    masks.is_own = true;
    /* A handler that cancels its thread would take the library's work with it; see birdlinux_wait. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return start.body(start.argument);
}

void birdlinux_thread_join(pthread_t thread, int64_t timeout_ms) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += timeout_ms % 1000 * 1000000;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end) != 0) {
        pthread_detach(thread);
    }
}

int birdlinux_thread_start(pthread_t *thread, const char *name, void *(*body)(void *), void *argument) {
    struct thread_start *start = malloc(sizeof *start);
    if (start == NULL) {
        return ENOMEM;
    }
    *start = (struct thread_start){.body = body, .argument = argument};
    snprintf(start->name, sizeof start->name, "%s", name);
    sigset_t blocked, before;
    sigfillset(&blocked);
    unblock_faults(&blocked);
    /* The thread inherits the mask: the host's signal handlers do not run in the middle of the library. */
    int error = pthread_sigmask(SIG_SETMASK, &blocked, &before);
    if (error == 0) {
        start->of_handlers = before;
        unblock_faults(&start->of_handlers);
        error = pthread_create(thread, NULL, run_thread, start);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error != 0) {
        free(start);
    }
    return error;
}

void birdlinux_handlers_begin(void) {
    if (masks.is_own && masks.depth++ == 0 && masks.differs) {
        pthread_sigmask(SIG_SETMASK, &masks.of_handlers, NULL);
    }
}

void birdlinux_handlers_end(void) {
    if (masks.is_own && --masks.depth == 0 && masks.differs) {
        pthread_sigmask(SIG_SETMASK, &masks.at_rest, NULL);
    }
}

int birdlinux_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms, void (*go_on)(void *),
                   void *argument) {
    int count;
    if (!masks.is_own) {
        return epoll_wait(epoll, events, events_max, timeout_ms);
    }
    pthread_cleanup_push(go_on, argument);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    count = epoll_wait(epoll, events, events_max, timeout_ms);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_pop(0);
    return count;
}

void birdlinux_interrupt(pthread_t thread) {
    pthread_cancel(thread);
}

int birdlinux_is_inherited_by_exec(int fd) {
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

long birdlinux_write_quietly(int fd, const void *bytes, size_t count) {
    sigset_t quiet, before, pending;
    sigemptyset(&quiet);
    sigaddset(&quiet, SIGPIPE);
    sigaddset(&quiet, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &quiet, &before);
    long result;
    do {
        result = write(fd, bytes, count);
    } while (result < 0 && errno == EINTR);
    if (result < 0) {
        result = -errno;
        /* What the write has raised goes; what somebody else had sent before stays. */
        if (!sigismember(&pending, SIGPIPE) && !sigismember(&pending, SIGXFSZ)) {
            while (sigtimedwait(&quiet, NULL, &(struct timespec){0}) > 0) {
            }
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

int birdlinux_cond_init(pthread_cond_t *condition) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    if (error == 0) {
        error = pthread_cond_init(condition, &attributes);
    }
    pthread_condattr_destroy(&attributes);
    return error;
}

int birdlinux_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    return pthread_atfork(prepare, parent, child);
}

static _Thread_local int callback_depth;

void birdlinux_callback_depth_add(int change) {
    callback_depth += change;
}

int birdlinux_callback_depth(void) {
    return callback_depth;
}

static _Thread_local int log_depth;

void birdlinux_log_depth_add(int change) {
    log_depth += change;
}

int birdlinux_log_depth(void) {
    return log_depth;
}

int birdlinux_peer_name(int fd, char *text, size_t size) {
    struct sockaddr_storage peer;
    socklen_t length = sizeof peer;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    if (getpeername(fd, (struct sockaddr *)&peer, &length) != 0 ||
        getnameinfo((struct sockaddr *)&peer, length, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return -1;
    }
    return snprintf(text, size, peer.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* The Swift runtime refers to hypotf, which got a new symbol version in glibc 2.35; with it the library would not load on 2.34. */
float hypotf(float x, float y) {
    return (float)__builtin_sqrt((double)x * (double)x + (double)y * (double)y);
}
