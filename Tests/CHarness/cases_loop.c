/* Section loop of the header: a loop that the host drives. */
#include "harness.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>

static world host_world(void) {
    return world_open(DELIVERY_HOST);
}

static int loop_fd(bird_loop *loop) {
    int32_t fd = -1;
    CHECK_STATUS(bird_loop_fd(loop, &fd), BIRD_OK);
    CHECK(fd >= 0);
    return fd;
}

static int64_t loop_deadline(bird_loop *loop) {
    int64_t deadline_ms = -2;
    CHECK_STATUS(bird_loop_deadline(loop, &deadline_ms), BIRD_OK);
    CHECK(deadline_ms >= -1);
    return deadline_ms;
}

/* Connects, subscribes, loses the connection and comes back, by nothing but the fd and rounds that do not wait. */
EDGE_CASE(loop_is_driven_by_its_fd_alone) {
    const int threads = count_threads();
    world w = host_world();
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_subscribe(w.client, "private-control", 0, &w.control, NULL), BIRD_OK);
    bird_statistics s = {.struct_size = sizeof s};
    bool has_dropped = false;
    const int64_t end = now_ms() + DEADLINE_MS;
    while (s.connects < 2 || channel_state(w.control) != BIRD_CHANNEL_SUBSCRIBED) {
        struct pollfd wait = {.fd = loop_fd(w.loop), .events = POLLIN};
        CHECK(poll(&wait, 1, (int)(end - now_ms())) == 1);
        CHECK_STATUS(bird_loop_run_once(w.loop, 0), BIRD_OK);
        if (!has_dropped && channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED) {
            has_dropped = true;
            world_drop(&w);
        }
        CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
        CHECK_INT(count_threads(), threads);
    }
    world_close(&w);
    CHECK_INT(count_threads(), threads);
}

/* A host without a place for the fd sleeps until the deadline, or until somebody calls. */
EDGE_CASE(loop_has_a_deadline) {
    bird_options *options = world_options(DELIVERY_HOST);
    set_option(options, "backoff_base_ms", "20000");
    world w = world_open_with(DELIVERY_HOST, options);
    world_grant_requests(w.client);
    CHECK_INT(loop_deadline(w.loop), -1);
    world_connect(&w);
    world_settle(&w);
    UNTIL(&w, loop_deadline(w.loop) > 0); /* the ping */
    CHECK(loop_deadline(w.loop) <= 120000);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    CHECK_INT(loop_deadline(w.loop), 0);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    world_close(&w);
}

static void *wake_from_another_thread(void *loop) {
    CHECK_STATUS(bird_loop_wake(loop), BIRD_OK);
    return NULL;
}

CASE(loop_wakes_up) {
    bird_loop *loop = NULL;
    CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
    CHECK_STATUS(bird_loop_run_once(loop, 0), BIRD_OK);
    CHECK_STATUS(bird_loop_wake(loop), BIRD_OK);
    CHECK_STATUS(bird_loop_run_once(loop, -1), BIRD_OK);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wake_from_another_thread, loop) == 0);
    CHECK_STATUS(bird_loop_run_once(loop, -1), BIRD_OK);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);
    CHECK_STATUS(bird_loop_destroy(loop), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_loop_destroy(NULL), BIRD_OK);
    CHECK_STATUS(bird_loop_create(NULL), BIRD_ERR_ARGUMENT);
}

EDGE_CASE(loop_outlives_clients) {
    const int fds = count_fds();
    world w = host_world();
    CHECK_STATUS(bird_loop_destroy(w.loop), BIRD_ERR_BUSY);
    world_connect(&w);
    CHECK_STATUS(bird_loop_destroy(w.loop), BIRD_ERR_BUSY);
    bird_loop *loop = w.loop;
    world_close(&w);
    bird_options *options = world_options(DELIVERY_HOST);
    CHECK_STATUS(bird_options_set_loop(options, loop), BIRD_ERR_HANDLE);
    bird_options_destroy(options);
    CHECK_INT(count_fds(), fds);
}

/* --------------------------------------------------------------------------------------------------- who runs it ------ */

static atomic_int is_inside, may_leave;

static void run_again(const bird_record *record, void *user_data) {
    (void)record;
    world *w = user_data;
    journal_add("%s", bird_status_name(bird_loop_run_once(w->loop, 0)));
    journal_add("%s", bird_status_name(bird_client_flush(w->client, 0)));
    journal_add("%s", bird_status_name(bird_loop_destroy(w->loop)));
    CHECK(loop_deadline(w->loop) >= 0);
}

EDGE_CASE(loop_is_not_run_by_its_own_handler) {
    world w = host_world();
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", run_again, &w, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "1");
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_text(), "BIRD_ERR_BUSY BIRD_ERR_CALLBACK BIRD_ERR_BUSY");
    world_close(&w);
}

static void stay_inside(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    atomic_store(&is_inside, 1);
    const int64_t end = now_ms() + DEADLINE_MS;
    while (!atomic_load(&may_leave)) {
        CHECK(now_ms() < end);
    }
}

static void *run_until_told(void *user_data) {
    world *w = user_data;
    while (!atomic_load(&may_leave)) {
        world_turn(w);
    }
    return NULL;
}

EDGE_CASE(loop_is_run_by_one_thread_at_a_time) {
    world w = host_world();
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", stay_inside, NULL, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "1");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run_until_told, &w) == 0);
    const int64_t end = now_ms() + DEADLINE_MS;
    while (!atomic_load(&is_inside)) {
        CHECK(now_ms() < end);
    }
    CHECK_STATUS(bird_loop_run_once(w.loop, 0), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_loop_destroy(w.loop), BIRD_ERR_BUSY);
    atomic_store(&may_leave, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    world_close(&w);
}

/* The owner's waiting calls run the loop. */
EDGE_CASE(loop_runs_while_its_owner_waits) {
    world w = host_world();
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, 0), BIRD_ERR_TIMEOUT);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, DEADLINE_MS), BIRD_OK);
    w.control = world_join(&w, "private-control");
    CHECK_STATUS(bird_channel_trigger(w.control, "client-x", "1", 1, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
    CHECK_INT(s.client_events_lost, 0);
    CHECK_STATUS(bird_client_close(w.client, DEADLINE_MS), BIRD_OK);
    world_close(&w);
}

typedef struct waiter {
    bird_client *client;
    bird_status status;
} waiter;

static void *wait_elsewhere(void *user_data) {
    waiter *me = user_data;
    me->status = bird_client_wait(me->client, BIRD_STATE_CONNECTED, DEADLINE_MS);
    return NULL;
}

/* Any other thread waits for the one that runs the loop. */
EDGE_CASE(loop_is_left_to_its_owner) {
    world w = host_world();
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    waiter waiting = {.client = w.client, .status = -1};
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wait_elsewhere, &waiting) == 0);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(waiting.status, BIRD_OK);
    world_close(&w);
}

static void *destroy_elsewhere(void *client) {
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    atomic_store(&may_leave, 1);
    return NULL;
}

/* Needs no round of the loop, and does not mind one. */
EDGE_CASE(loop_lets_other_threads_destroy) {
    for (int is_running = 0; is_running < 2; is_running++) {
        atomic_store(&may_leave, 0);
        world w = host_world();
        world_connect(&w);
        uint64_t binding;
        CHECK_STATUS(bird_channel_bind(w.control, "tick", note_handler, "x", note_destructor, &binding, NULL), BIRD_OK);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, destroy_elsewhere, w.client) == 0);
        if (is_running) {
            run_until_told(&w);
        }
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK_INT(journal_count(), is_running + 1);
        w.client = NULL;
        world_close(&w);
    }
}

/* --------------------------------------------------------------------------------------------- modes on the loop ------ */

/* The reactor's work is the host's; who delivers is another question. */
EDGE_CASE(loop_serves_every_delivery_mode) {
    for (int32_t mode = BIRD_DELIVERY_THREAD; mode <= BIRD_DELIVERY_LOOP; mode++) {
        journal_clear();
        bird_options *options = world_options(mode);
        world w = {.delivery = mode};
        CHECK_STATUS(bird_loop_create(&w.loop), BIRD_OK);
        CHECK_STATUS(bird_options_set_loop(options, w.loop), BIRD_OK);
        if (mode == BIRD_DELIVERY_QUEUE) {
            CHECK_STATUS(bird_queue_create(&w.queue), BIRD_OK);
        }
        w.client = client_from(options, w.queue);
        bird_channel *channel = NULL;
        uint64_t binding;
        CHECK_STATUS(bird_client_subscribe(w.client, "fleet", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_channel_bind(channel, "bird:subscription_succeeded", note_handler, "x", NULL, &binding, NULL),
                     BIRD_OK);
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
        const int64_t end = now_ms() + DEADLINE_MS;
        while (journal_count() == 0) {
            CHECK(now_ms() < end);
            CHECK_STATUS(bird_loop_run_once(w.loop, 5), BIRD_OK);
            if (w.queue != NULL) {
                size_t count;
                CHECK_STATUS(bird_queue_dispatch(w.queue, 0, &count), BIRD_OK);
            }
        }
        world_close(&w);
    }
}

/* ---------------------------------------------------------------------------------------- time and what has come ----- */

/* HOST:PORT MODE KIND: a wait that a signal ends, or that comes late, after a ping: its pong has come meanwhile, and its deadline has passed.
   What has come is looked at first. test_liveness.py */
LOAD_CASE(wait_that_overtakes_a_pong) {
    void (*arm)(const char *, int);
    bool (*done)(void);
    *(void **)&arm = dlsym(RTLD_DEFAULT, "waits_arm");
    *(void **)&done = dlsym(RTLD_DEFAULT, "waits_done");
    CHECK(arm != NULL && done != NULL);
    bird_options *options = world_options(harness_mode());
    set_option(options, "activity_timeout_ms", "1000");
    set_option(options, "pong_timeout_ms", "1000"); /* in which the edge must answer, on a busy machine, too */
    world w = world_open_with(harness_mode(), options);
    world_grant_requests(w.client);
    world_connect(&w);
    world_settle(&w);
    bird_statistics s = {.struct_size = sizeof s};
    for (int round = 0; round < 2; round++) {
        CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
        const uint64_t pings = s.pings_sent;
        arm(harness_argument(2), 1500);
        UNTIL(&w, done());
        UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.pings_sent > pings + 1);
        CHECK_INT(s.pongs_missed, 0);
        CHECK_INT(s.connects, 1);
    }
    world_close(&w);
}
