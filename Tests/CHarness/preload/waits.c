/*
 * LD_PRELOAD: one epoll_wait of the library's comes late.
 *
 * A program finds waits_arm(KIND, MS) by dlsym: the first wait after the next send() sleeps so long. "signal": it then fails with EINTR, as
 * when a signal ends a wait of a thread that was stopped. "late": it has looked before that, and says so afterwards. waits_done() tells
 * whether it has happened.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

void waits_arm(const char *kind, int ms);
bool waits_done(void);

enum { NOTHING, ARMED, SENT, DONE };

static atomic_int step;
static bool is_signal;
static int late_ms;

void waits_arm(const char *kind, int ms) {
    is_signal = strcmp(kind, "signal") == 0;
    late_ms = ms;
    atomic_store(&step, ARMED);
}

bool waits_done(void) {
    return atomic_load(&step) == DONE;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags) {
    static ssize_t (*original)(int, const void *, size_t, int);
    if (original == NULL) {
        *(void **)&original = dlsym(RTLD_NEXT, "send");
    }
    int armed = ARMED;
    atomic_compare_exchange_strong(&step, &armed, SENT);
    return original(fd, bytes, count, flags);
}

int epoll_wait(int epoll, struct epoll_event *events, int events_max, int timeout_ms) {
    static int (*original)(int, struct epoll_event *, int, int);
    if (original == NULL) {
        *(void **)&original = dlsym(RTLD_NEXT, "epoll_wait");
    }
    int sent = SENT;
    if (!atomic_compare_exchange_strong(&step, &sent, DONE)) {
        return original(epoll, events, events_max, timeout_ms);
    }
    const int count = is_signal ? -1 : original(epoll, events, events_max, 0);
    struct timespec left = {late_ms / 1000, late_ms % 1000 * 1000000L};
    while (nanosleep(&left, &left) < 0) {
    }
    errno = EINTR;
    return count;
}
