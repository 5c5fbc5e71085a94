/* Sections statistics and process of the header, and what a host notices of the library. */
#include "harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

EDGE_CASE(statistics_count_what_happened) {
    world w = world_open(BIRD_DELIVERY_LOOP);
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
    CHECK_INT(s.struct_size, sizeof s);
    CHECK_INT(s.attempts + s.connects + s.bytes_received + s.bytes_sent + s.messages_received + s.messages_sent, 0);
    world_connect(&w);
    /* What is received is counted at the end of a round of the reactor: behind the records. */
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.messages_received == 2); /* handshake, success */
    CHECK_INT(s.attempts, 1);
    CHECK_INT(s.connects, 1);
    CHECK_INT(s.authorizations, 1);
    CHECK_INT(s.messages_sent, 1);
    CHECK(s.bytes_received > 100);
    CHECK(s.bytes_sent > 50);

    world_emit_event(&w, "private-control", "tick", "1");
    world_emit_event(&w, "nowhere", "tick", "1");
    world_emit(&w, "not JSON");
    world_emit(&w, "[\"event\"]");
    world_emit(&w, "{\"event\":5}");
    world_settle(&w);
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.events_delivered == 2); /* one is world_settle's */
    CHECK_INT(s.frames_unroutable, 1);
    CHECK_INT(s.frames_malformed, 3);
    CHECK_INT(s.client_events_lost, 0);

    world_drop(&w);
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.connects == 2);
    CHECK(s.attempts >= 2);
    world_close(&w);
}

/* A program compiled with an older, smaller struct gets what it knows and nothing is written behind it. */
CASE(statistics_respect_struct_size) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = client_from(options, NULL);
    bird_statistics s;
    memset(&s, 0x5a, sizeof s);
    s.struct_size = offsetof(bird_statistics, messages_received);
    CHECK_STATUS(bird_client_statistics(client, &s), BIRD_OK);
    CHECK_INT(s.bytes_received, 0);
    CHECK_INT(s.messages_received, 0x5a5a5a5a5a5a5a5a);
    s.struct_size = 0;
    CHECK_STATUS(bird_client_statistics(client, &s), BIRD_ERR_ARGUMENT);
    CHECK_INT(s.messages_received, 0x5a5a5a5a5a5a5a5a);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}

EDGE_CASE(delivery_threads_are_set_before_first_use) {
    CHECK_STATUS(bird_set_delivery_threads(0), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_set_delivery_threads(65), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_set_delivery_threads(-1), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_set_delivery_threads(64), BIRD_OK);
    CHECK_STATUS(bird_set_delivery_threads(1), BIRD_OK);
    const int threads = count_threads();
    world first = world_open(BIRD_DELIVERY_THREAD), second = world_open(BIRD_DELIVERY_THREAD);
    world_connect(&first);
    world_connect(&second);
    world_settle(&first);
    world_settle(&second);
    CHECK_STATUS(bird_set_delivery_threads(2), BIRD_ERR_STATE);
    CHECK_INT(count_threads(), threads + 2); /* the reactor and one delivery thread */
    world_close(&first);
    world_close(&second);
}

/* The kernel's part of a sigset_t; the C library leaves the rest of one that it fills as it was. */
static bool blocks_the_same(const sigset_t *left, const sigset_t *right) {
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(left, number) != sigismember(right, number)) {
            return false;
        }
    }
    return true;
}

EDGE_CASE(client_is_a_good_guest) {
    struct sigaction before, after;
    sigset_t mask_before, mask_after;
    CHECK(sigaction(SIGPIPE, NULL, &before) == 0 && pthread_sigmask(SIG_SETMASK, NULL, &mask_before) == 0);
    bool is_inherited[64];
    for (int fd = 3; fd < 64; fd++) {
        is_inherited[fd] = fcntl(fd, F_GETFD) != -1;
    }
    world w = world_open(BIRD_DELIVERY_THREAD);
    world_connect(&w);
    CHECK(sigaction(SIGPIPE, NULL, &after) == 0 && pthread_sigmask(SIG_SETMASK, NULL, &mask_after) == 0);
    CHECK(before.sa_handler == after.sa_handler);
    CHECK(blocks_the_same(&mask_before, &mask_after));
    for (int fd = 3; fd < 64; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        CHECK(flags == -1 || is_inherited[fd] || (flags & FD_CLOEXEC) != 0);
    }
    /* A write to a connection that the edge has reset raises no signal. */
    for (int round = 0; round < 5; round++) {
        CHECK_STATUS(bird_channel_trigger(w.control, "client-reset", NULL, 0, NULL), BIRD_OK);
        bird_statistics s = {.struct_size = sizeof s};
        UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.connects == (uint64_t)round + 2);
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    }
    world_close(&w);
}

/* Waits for the threads of the library to end; they do so after the last client is gone. */
static void until_threads_are(int wanted) {
    world w = {.delivery = BIRD_DELIVERY_THREAD};
    UNTIL(&w, count_threads() <= wanted);
}

MODE_CASE(client_comes_and_goes_without_a_trace) {
    enum { ROUNDS = 1000, WARM_UP = 20 };
    const int threads = count_threads();
    int fds = 0;
    long memory = 0;
    for (int round = 0; round < ROUNDS; round++) {
        world w = world_open(harness_mode());
        if (round % 10 == 0) {
            world_connect(&w);
        } else if (round % 10 == 1) {
            CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK); /* destroyed while connecting */
        }
        world_close(&w);
        if (round == WARM_UP) {
            until_threads_are(threads);
            fds = count_fds();
            memory = resident_kib();
        }
    }
    UNTIL(&(world){0}, count_fds() == fds);
    CHECK(resident_kib() - memory < 8 * 1024);
    printf("threads %d, memory %+ld KiB over %d rounds\n", count_threads(), resident_kib() - memory, ROUNDS - WARM_UP);
}

/* One client that loses its connection again and again, and clients that are destroyed right after a loss. */
MODE_CASE(lost_connections_leave_nothing) {
    enum { DROPS = 150, CLIENTS = 30, WARM_UP = 30 };
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_statistics s = {.struct_size = sizeof s};
    int fds = 0, threads = 0;
    long memory = 0;
    for (uint64_t drops = 1; drops <= DROPS; drops++) {
        world_drop(&w);
        UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.connects > drops);
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
        if (drops == WARM_UP) {
            fds = count_fds();
            threads = count_threads();
            memory = resident_kib();
        }
    }
    UNTIL(&w, count_fds() == fds);
    UNTIL(&w, count_threads() == threads);
    CHECK(resident_kib() - memory < 2 * 1024);
    for (int i = 0; i < CLIENTS; i++) {
        world lost = world_open(harness_mode());
        world_connect(&lost);
        world_drop(&lost);
        UNTIL(&lost, bird_client_statistics(lost.client, &s) == BIRD_OK && s.attempts > 1);
        world_close(&lost);
    }
    UNTIL(&w, count_fds() == fds);
    UNTIL(&w, count_threads() == threads);
    CHECK(resident_kib() - memory < 4 * 1024);
    world_settle(&w);
    world_close(&w);
}

/* Before the first connect nobody works off what calls leave behind. */
CASE(calls_before_connect_leave_nothing) {
    enum { ROUNDS = 20000 };
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = client_from(options, NULL);
    const long memory = resident_kib();
    for (int round = 0; round < ROUNDS; round++) {
        bird_channel *channel = NULL;
        CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_channel_unsubscribe(channel), BIRD_OK);
        bird_channel_release(channel);
    }
    CHECK(resident_kib() - memory < 4 * 1024);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}

EDGE_CASE(reactor_ends_with_the_last_client) {
    const int threads = count_threads();
    for (int round = 0; round < 20; round++) {
        world first = world_open(BIRD_DELIVERY_LOOP), second = world_open(BIRD_DELIVERY_LOOP);
        world_connect(&first);
        world_connect(&second);
        CHECK_INT(count_threads(), threads + 1);
        world_close(&first);
        world_settle(&second);
        world_close(&second);
        until_threads_are(threads);
    }
}

/* A child has no use for its parent's handles, can have clients of its own, and does no harm to the parent's. */
MODE_CASE(fork_leaves_the_parent_unharmed) {
    const int fds = count_fds();
    world w = world_open(harness_mode());
    world_connect(&w);
    world_settle(&w);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int32_t state;
        CHECK_STATUS(bird_client_state(w.client, &state), BIRD_ERR_FORKED);
        CHECK_STATUS(bird_channel_trigger(w.control, "client-x", NULL, 0, NULL), BIRD_ERR_FORKED);
        /* Closes the copies of the fds; the connection is the parent's. */
        CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
        CHECK_STATUS(bird_client_destroy(w.client), BIRD_ERR_FORKED);
        if (w.queue != NULL) {
            CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
        }
        if (w.loop != NULL) {
            CHECK_STATUS(bird_loop_destroy(w.loop), BIRD_OK);
        }
        CHECK_INT(count_fds(), fds);
        world own = world_open(harness_mode());
        world_connect(&own);
        world_settle(&own);
        world_close(&own);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    world_settle(&w);
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
    CHECK_INT(s.connects, 1);
    world_close(&w);
}
