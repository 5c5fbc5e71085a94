/*
 * The operating system refuses a resource, once, anywhere in the life of a client (preload/faults.c): the program is told by a status or an
 * error record, the client goes on as soon as it can, and nothing is left of it at its end.
 */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>

typedef void (*arm_function)(const char *, int, int);
typedef int (*left_function)(void);

static arm_function arm;
static left_function left;
static int refused_calls;
static atomic_int error_records, destructors;

static void count_error(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK(record->kind == BIRD_RECORD_STATE || ((const bird_failure *)record->detail)->error != NULL);
    atomic_fetch_add(&error_records, record->kind == BIRD_RECORD_ERROR);
}

static void count_tick(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

static void count_destructor(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&destructors, 1);
}

/* A call that was refused is made again. */
static bool is_accepted(bird_status status) {
    if (status != BIRD_OK) {
        CHECK_STATUS(status, BIRD_ERR_SYSTEM);
        CHECK(left() == 0);
        refused_calls++;
    }
    return status == BIRD_OK;
}

/* What depends on a deadline is soon over. */
static bird_options *life_options(int32_t delivery) {
    bird_options *options = world_options(delivery);
    char url[128];
    snprintf(url, sizeof url, "http://%s/", harness_argument(0));
    set_option(options, "authorizer", "0");
    set_option(options, "auth_endpoint", url);
    CHECK_STATUS(bird_options_set_auth_header(options, "X-Token", "open", NULL), BIRD_OK);
    set_option(options, "connect_timeout_ms", "300");
    set_option(options, "auth_timeout_ms", "300");
    set_option(options, "answer_timeout_ms", "300");
    set_option(options, "activity_timeout_ms", "300");
    set_option(options, "pong_timeout_ms", "300");
    harness_set_options(options);
    return options;
}

static void open_life(world *w) {
    *w = (world){.delivery = harness_mode()};
    bird_options *options = life_options(w->delivery);
    while (w->delivery == BIRD_DELIVERY_QUEUE && !is_accepted(bird_queue_create(&w->queue))) {
    }
    while (w->delivery == DELIVERY_HOST && !is_accepted(bird_loop_create(&w->loop))) {
    }
    if (w->loop != NULL) {
        CHECK_STATUS(bird_options_set_loop(options, w->loop), BIRD_OK);
    }
    if (w->queue != NULL) {
        CHECK_STATUS(bird_options_set_queue(options, w->queue), BIRD_OK);
    }
    while (!is_accepted(bird_client_create(options, &w->client, NULL))) {
    }
    bird_options_destroy(options);
    CHECK_STATUS(bird_client_observe(w->client, 1u << BIRD_RECORD_STATE | 1u << BIRD_RECORD_ERROR, count_error, NULL,
                                     count_destructor, NULL, NULL),
                 BIRD_OK);
}

/* From its creation to its end, with an event that comes. */
static void live(void) {
    world w;
    atomic_int ticks = 0;
    atomic_store(&destructors, 0);
    open_life(&w);
    while (!is_accepted(bird_client_connect(w.client, NULL))) {
    }
    CHECK_STATUS(bird_client_subscribe(w.client, "private-control", 0, &w.control, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(w.control, "tick", count_tick, &ticks, NULL, NULL, NULL), BIRD_OK);
    /* The connection may go once more, and with it what was asked for. */
    int64_t asked = 0;
    const int64_t end = now_ms() + DEADLINE_MS;
    while (atomic_load(&ticks) == 0) {
        if (channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED && now_ms() - asked > 100) {
            asked = now_ms();
            const char *frame =
                "\"{\\\"event\\\":\\\"tick\\\",\\\"channel\\\":\\\"private-control\\\",\\\"data\\\":1}\"";
            const bird_status status = bird_channel_trigger(w.control, "client-emit", frame, BIRD_NUL, NULL);
            CHECK(status == BIRD_OK || status == BIRD_ERR_NOT_SUBSCRIBED);
        }
        world_turn(&w);
        if (now_ms() > end) {
            char dump[16384];
            CHECK_STATUS(bird_client_dump(w.client, dump, sizeof dump, NULL), BIRD_OK);
            harness_fail(__FILE__, __LINE__, "the client does not recover: %s", dump);
        }
    }
    bird_channel_release(w.control);
    world_close(&w);
    CHECK_INT(atomic_load(&destructors), 1);
}

static void check_left(int fds, int threads) {
    UNTIL(&(world){0}, count_threads() == threads);
    UNTIL(&(world){0}, count_fds() == fds);
}

/* HOST:PORT MODE FUNCTION ERROR STEP: the first call fails, and then each call that is a STEP-th part further on, until a life has no more of
   them. test_faults.py */
LOAD_CASE(life_with_one_fault) {
    const char *function = harness_argument(2);
    const int error = atoi(harness_argument(3)), step = atoi(harness_argument(4));
    *(void **)&arm = dlsym(RTLD_DEFAULT, "faults_arm");
    *(void **)&left = dlsym(RTLD_DEFAULT, "faults_left");
    CHECK(arm != NULL && left != NULL && step > 0);
    live(); /* what is made once in a process is made */
    const int fds = count_fds(), threads = count_threads();
    int lives = 0;
    for (int nth = 1;; nth += 1 + nth / step) {
        arm(function, nth, error);
        live();
        const bool is_through = left() > 0;
        arm(function, 0, 0);
        check_left(fds, threads);
        if (is_through) {
            break;
        }
        lives++;
    }
    printf("lives: %d, calls refused: %d, error records: %d\n", lives, refused_calls, atomic_load(&error_records));
}

/* ----------------------------------------------------------------------------------------------- half-made objects ----- */

/* Each call of a constructor to the system fails once: what it had made is undone before it returns, and it can be called again. */
static int fail_each_step(const char *function, int error, bird_status (*construct)(world *), void (*end)(world *)) {
    int refused = 0;
    for (int nth = 1;; nth++) {
        world w = {.delivery = harness_mode()};
        const int fds = count_fds(), threads = count_threads();
        arm(function, nth, error);
        const bird_status status = construct(&w);
        const bool is_through = left() > 0;
        arm(function, 0, 0);
        if (status != BIRD_OK) {
            CHECK_STATUS(status, BIRD_ERR_SYSTEM);
            refused++;
            check_left(fds, threads);
            CHECK_STATUS(construct(&w), BIRD_OK);
        }
        end(&w);
        check_left(fds, threads);
        if (is_through) {
            return refused;
        }
    }
}

static bird_status make_queue(world *w) {
    return bird_queue_create(&w->queue);
}

static void end_queue(world *w) {
    CHECK_STATUS(bird_queue_destroy(w->queue), BIRD_OK);
}

static bird_status make_loop(world *w) {
    return bird_loop_create(&w->loop);
}

static void end_loop(world *w) {
    CHECK_STATUS(bird_loop_destroy(w->loop), BIRD_OK);
}

static world base; /* what the client to be made uses */

static bird_status make_client(world *w) {
    bird_options *options = life_options(harness_mode());
    if (base.loop != NULL) {
        CHECK_STATUS(bird_options_set_loop(options, base.loop), BIRD_OK);
    }
    if (base.queue != NULL) {
        CHECK_STATUS(bird_options_set_queue(options, base.queue), BIRD_OK);
    }
    const bird_status status = bird_client_create(options, &w->client, NULL);
    bird_options_destroy(options);
    return status == BIRD_ERR_VALUE ? BIRD_ERR_SYSTEM : status; /* a log file that cannot be opened */
}

static void end_client(world *w) {
    CHECK_STATUS(bird_client_destroy(w->client), BIRD_OK);
}

/* The first connect makes the reactor, the watcher of the network and the pool. A client that it was refused to stays, and ends well. */
static bird_status make_and_connect(world *w) {
    bird_status status = make_client(w);
    if (status != BIRD_OK) {
        return status;
    }
    status = bird_client_connect(w->client, NULL);
    if (status != BIRD_OK) {
        end_client(w);
    }
    return status;
}

/* HOST:PORT MODE log_file=PATH: test_faults.py */
LOAD_CASE(constructors_undo_their_steps) {
    static const struct {
        const char *function;
        int error;
    } faults[] = {{"eventfd", EMFILE},        {"epoll_create1", EMFILE},  {"epoll_ctl", ENOMEM},
                  {"timerfd_create", ENFILE}, {"pthread_create", EAGAIN}, {"open", EMFILE},
                  {"socket", EMFILE}};
    *(void **)&arm = dlsym(RTLD_DEFAULT, "faults_arm");
    *(void **)&left = dlsym(RTLD_DEFAULT, "faults_left");
    CHECK(arm != NULL && left != NULL);
    live(); /* what is made once in a process is made */
    const int32_t mode = harness_mode();
    const int fds = count_fds();
    if (mode == BIRD_DELIVERY_QUEUE) {
        CHECK_STATUS(bird_queue_create(&base.queue), BIRD_OK);
    }
    if (mode == DELIVERY_HOST) {
        CHECK_STATUS(bird_loop_create(&base.loop), BIRD_OK);
    }
    int of_queues = 0, of_loops = 0, of_clients = 0, of_connects = 0;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        of_queues += fail_each_step(faults[i].function, faults[i].error, make_queue, end_queue);
        of_loops += fail_each_step(faults[i].function, faults[i].error, make_loop, end_loop);
        of_clients += fail_each_step(faults[i].function, faults[i].error, make_client, end_client);
        of_connects += fail_each_step(faults[i].function, faults[i].error, make_and_connect, end_client);
    }
    CHECK_INT(of_queues, 1);  /* its eventfd */
    CHECK_INT(of_loops, 5);   /* epoll, eventfd, timerfd, and both watched */
    CHECK_INT(of_clients, 2); /* its log file, and the file of CA certificates */
    if (mode != DELIVERY_HOST) {
        CHECK(of_connects >= 6); /* the same, and the thread */
    }
    /* Nothing that failed holds them. */
    CHECK_STATUS(bird_queue_destroy(base.queue), BIRD_OK);
    CHECK_STATUS(bird_loop_destroy(base.loop), BIRD_OK);
    check_left(fds, count_threads());
}
