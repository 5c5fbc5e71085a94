/*
 * LD_PRELOAD: a machine that a test suspends, or whose wall clock it sets.
 *
 * The file BIRD_TEST_CLOCK holds two numbers of 8 bytes. The first is the milliseconds for which the machine has been suspended:
 * CLOCK_BOOTTIME is so far ahead. The second is the milliseconds by which CLOCK_REALTIME is ahead. Other clocks stand where they would.
 * What a timerfd waits for on CLOCK_BOOTTIME comes when it says; what the suspend has overtaken, when that clock is looked at next.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int (*original_gettime)(clockid_t, struct timespec *);
static int (*original_settime)(int, int, const struct itimerspec *, struct itimerspec *);
static const struct {
    _Atomic int64_t suspended_ms, set_ms;
} *machine;

#define TIMERS_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t seen_ms;
static struct {
    int fd;
    struct itimerspec setting; /* by the clock of the program */
} timers[TIMERS_MAX];
static int timer_count;

__attribute__((constructor)) static void begin(void) {
    static const __typeof__(*machine) never;
    const char *path = getenv("BIRD_TEST_CLOCK");
    const int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *memory = fd >= 0 ? mmap(NULL, sizeof *machine, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    machine = memory != MAP_FAILED ? memory : &never;
    close(fd);
    *(void **)&original_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    *(void **)&original_settime = dlsym(RTLD_NEXT, "timerfd_settime");
}

static void move(struct timespec *time, int64_t ms) {
    const int64_t ns = time->tv_nsec + ms % 1000 * 1000000;
    time->tv_sec += ms / 1000 + ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
    if (time->tv_nsec < 0) {
        time->tv_sec--;
        time->tv_nsec += 1000000000;
    }
}

static int arm(int fd, const struct itimerspec *setting, struct itimerspec *old) {
    struct itimerspec moved = *setting;
    move(&moved.it_value, -seen_ms);
    /* Long over is due now; a time before the epoch would be refused, and none would be no timer. */
    if (moved.it_value.tv_sec < 0 || (moved.it_value.tv_sec == 0 && moved.it_value.tv_nsec == 0)) {
        moved.it_value = (struct timespec){.tv_nsec = 1};
    }
    return original_settime(fd, TFD_TIMER_ABSTIME, &moved, old);
}

/* With the lock held. */
static void look(void) {
    const int64_t now_ms = atomic_load(&machine->suspended_ms);
    if (now_ms == seen_ms) {
        return;
    }
    seen_ms = now_ms;
    for (int i = 0; i < timer_count; i++) {
        arm(timers[i].fd, &timers[i].setting, NULL);
    }
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (original_gettime == NULL) {
        begin(); /* something that starts earlier asks for the time */
    }
    const int result = original_gettime(clock, time);
    if (result == 0 && clock == CLOCK_BOOTTIME) {
        pthread_mutex_lock(&lock);
        look();
        move(time, seen_ms);
        pthread_mutex_unlock(&lock);
    } else if (result == 0 && clock == CLOCK_REALTIME) {
        move(time, atomic_load(&machine->set_ms));
    }
    return result;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *setting, struct itimerspec *old) {
    if ((flags & TFD_TIMER_ABSTIME) == 0) {
        return original_settime(fd, flags, setting, old);
    }
    pthread_mutex_lock(&lock);
    look();
    int i = 0;
    while (i < timer_count && timers[i].fd != fd) {
        i++;
    }
    if (i == timer_count && timer_count < TIMERS_MAX) {
        timer_count++;
    }
    if (i < TIMERS_MAX) {
        timers[i].fd = fd;
        timers[i].setting = *setting;
    }
    const int result = arm(fd, setting, old);
    pthread_mutex_unlock(&lock);
    return result;
}
