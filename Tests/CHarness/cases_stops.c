/*
 * Handlers run under the signal mask of the thread that connected first, whichever thread they run on. A runtime that stops its threads by a
 * real-time signal (a garbage collector's, say) thus reaches one that is in a handler.
 */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum { STOPS = 20 };

static int stop_signal;
static atomic_int stopped, may_go_on;
static pthread_t runner; /* set before `is_inside` */
static atomic_int is_inside, rounds, destructors;
static sigset_t connecting_mask;

static void stay_stopped(int number) {
    (void)number;
    atomic_store(&stopped, 1);
    while (!atomic_load(&may_go_on)) {
    }
}

/* The program's code, on whatever thread: it is not left before the collector has stopped the thread once. */
static void be_stopped(void) {
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (sigismember(&mask, number) != sigismember(&connecting_mask, number)) {
            harness_fail(__FILE__, __LINE__, "signal %d is blocked: %d", number, sigismember(&mask, number));
        }
    }
    const int round = atomic_load(&rounds);
    runner = pthread_self();
    atomic_store(&is_inside, 1);
    const int64_t end = now_ms() + DEADLINE_MS;
    while (atomic_load(&rounds) == round) {
        if (now_ms() > end) {
            harness_fail(__FILE__, __LINE__, "the thread of a handler was not stopped");
        }
    }
}

static void *collect(void *argument) {
    for (;;) {
        while (!atomic_load(&is_inside)) {
            if (atomic_load(&rounds) < 0) {
                return argument;
            }
            usleep(100);
        }
        atomic_store(&is_inside, 0);
        atomic_store(&stopped, 0);
        atomic_store(&may_go_on, 0);
        CHECK(pthread_kill(runner, stop_signal) == 0);
        const int64_t end = now_ms() + DEADLINE_MS;
        while (!atomic_load(&stopped)) {
            if (now_ms() > end) {
                harness_fail(__FILE__, __LINE__, "a thread that runs a handler does not stop");
            }
        }
        atomic_store(&may_go_on, 1);
        atomic_fetch_add(&rounds, 1);
    }
}

static void stop_in_handler(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    be_stopped();
}

static void stop_in_destructor(void *user_data) {
    (void)user_data;
    be_stopped();
    atomic_fetch_add(&destructors, 1);
}

static void stop_in_log(const bird_log_entry *entry, void *user_data) {
    (void)entry;
    if (!atomic_exchange((atomic_int *)user_data, 1)) {
        be_stopped();
    }
}

MODE_CASE(handlers_are_stopped_by_signals) {
    stop_signal = SIGRTMIN + 3;
    CHECK(sigaction(stop_signal, &(struct sigaction){.sa_handler = stay_stopped, .sa_flags = SA_RESTART}, NULL) == 0);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGSEGV); /* is not blocked in a handler all the same */
    CHECK(pthread_sigmask(SIG_BLOCK, &some, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &connecting_mask) == 0);
    const int32_t mode = harness_mode();
    if (mode == BIRD_DELIVERY_THREAD || mode == BIRD_DELIVERY_LOOP) {
        sigdelset(&connecting_mask, SIGSEGV);
    }
    pthread_t collector;
    CHECK(pthread_create(&collector, NULL, collect, NULL) == 0);
    world w = world_open(mode);
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", stop_in_handler, NULL, stop_in_destructor, &binding, NULL),
                 BIRD_OK);
    for (int stops = 1; stops <= STOPS; stops++) {
        world_emit_event(&w, "private-control", "tick", "1");
        if (stops % 5 != 0) { /* alone, and several in one batch */
            UNTIL(&w, atomic_load(&rounds) >= stops);
        }
    }
    UNTIL(&w, atomic_load(&rounds) == STOPS);
    CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);
    UNTIL(&w, atomic_load(&destructors) == 1);
    CHECK_INT(atomic_load(&rounds), STOPS + 1);
    world_settle(&w);
    world_close(&w);
    atomic_store(&rounds, -1);
    CHECK(pthread_join(collector, NULL) == 0);
}

/* The log handler of a client is called on the reactor, too. */
EDGE_CASE(log_handler_is_stopped_by_signals) {
    stop_signal = SIGRTMIN + 3;
    CHECK(sigaction(stop_signal, &(struct sigaction){.sa_handler = stay_stopped, .sa_flags = SA_RESTART}, NULL) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &connecting_mask) == 0);
    pthread_t collector;
    CHECK(pthread_create(&collector, NULL, collect, NULL) == 0);
    bird_options *options = world_options(BIRD_DELIVERY_QUEUE);
    atomic_int has_logged = 0;
    set_option(options, "log_level", "verbose");
    CHECK_STATUS(bird_options_set_log(options, stop_in_log, &has_logged, NULL), BIRD_OK);
    world w = world_open_with(BIRD_DELIVERY_QUEUE, options);
    world_grant_requests(w.client);
    atomic_store(&has_logged, 1); /* what the calling thread logs */
    world_connect(&w);
    atomic_store(&has_logged, 0);
    world_emit_event(&w, "private-control", "tick", "1");
    UNTIL(&w, atomic_load(&rounds) >= 1);
    world_close(&w);
    atomic_store(&rounds, -1);
    CHECK(pthread_join(collector, NULL) == 0);
}
