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
