/* The end of a client in every phase of a connection, from everywhere: at once, each destructor once, and nothing left behind. */
#include "harness.h"

#include <malloc.h>

#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

/* Far below every deadline of the network, and far above what it takes on a busy machine. */
#define AT_ONCE_MS 4000

/* ------------------------------------------------------------------------------------------ a silent name server ----- */

static atomic_int lookups;
static atomic_bool may_answer;

/* In place of the C library's: the library's resolver threads come by here. */
int getaddrinfo(const char *restrict node, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict result) {
    if (node != NULL && strcmp(node, "silent.test") == 0) {
        atomic_fetch_add(&lookups, 1);
        while (!atomic_load(&may_answer)) {
            usleep(1000);
        }
        return EAI_AGAIN;
    }
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    return real(node, service, hints, result);
}

/* ------------------------------------------------------------------------------------------------------ phases ------ */

static world subject;
static bird_channel *orders;
static atomic_int requests, events, destructors, destroyed;

static void count_record(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

static void count_destructor(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&destructors, 1);
}

static bird_statistics statistics(void) {
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(subject.client, &s), BIRD_OK);
    CHECK(s.connects <= s.attempts && s.attempts <= 1);
    CHECK(s.queue_records < 1 << 20 && s.queue_bytes < 1 << 30);
    CHECK(s.messages_received < 1 << 30 && s.messages_sent < 100 && s.client_events_lost == 0);
    return s;
}

/* The runner writes a line when the server has done its part. */
static bool is_told_to_go(void) {
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&wait, 1, 0) == 0) {
        return false;
    }
    char line[4];
    CHECK(read(STDIN_FILENO, line, 3) == 3 && memcmp(line, "go\n", 3) == 0);
    return true;
}

/* What the runner cannot see. */
static bool is_in(const char *phase) {
    if (strcmp(phase, "resolve") == 0) {
        return atomic_load(&lookups) > 0;
    }
    if (strcmp(phase, "request") == 0) {
        return atomic_load(&requests) > 0;
    }
    if (strcmp(phase, "backoff") == 0) {
        return client_state(subject.client) == BIRD_STATE_UNAVAILABLE;
    }
    return strcmp(phase, "flood") != 0 || atomic_load(&events) > 0;
}

static void enter(const char *phase, const char *way) {
    atomic_store(&lookups, 0);
    atomic_store(&requests, 0);
    atomic_store(&events, 0);
    atomic_store(&destructors, 0);
    atomic_store(&destroyed, 0);
    atomic_store(&may_answer, false);
    subject = world_open_with(harness_mode(), world_options(harness_mode()));
    uint64_t binding;
    CHECK_STATUS(bird_client_subscribe(subject.client, "private-orders", 0, &orders, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(orders, "tick", count_record, &events, count_destructor, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_bind(subject.client, NULL, count_record, &events, count_destructor, &binding, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_observe(subject.client, 1u << BIRD_RECORD_REQUEST, count_record, &requests,
                                     count_destructor, &binding, NULL),
                 BIRD_OK);
    if (strcmp(phase, "flood") == 0) {
        world_grant_requests(subject.client);
    }
    CHECK_STATUS(bird_client_connect(subject.client, NULL), BIRD_OK);
    printf("at %s\n", way);
    fflush(stdout);
    UNTIL(&subject, is_told_to_go());
    UNTIL(&subject, statistics().attempts == 1 && is_in(phase));
}

/* -------------------------------------------------------------------------------------------------- other threads ---- */

typedef struct caller {
    pthread_t thread;
    bird_status (*call)(void);
    bird_status status;
} caller;

static atomic_int callers_begun;

static bird_status wait_for_ever(void) {
    /* A state that does not come. */
    return bird_client_wait(subject.client, BIRD_STATE_FAILED, -1);
}
static bird_status flush_for_ever(void) {
    return bird_client_flush(subject.client, -1);
}
static bird_status close_for_ever(void) {
    return bird_client_close(subject.client, -1);
}
static bird_status destroy(void) {
    const bird_status status = bird_client_destroy(subject.client);
    if (status == BIRD_OK) {
        atomic_fetch_add(&destroyed, 1);
    }
    return status;
}

static void *run_caller(void *user_data) {
    caller *c = user_data;
    atomic_fetch_add(&callers_begun, 1);
    c->status = c->call();
    return NULL;
}

static void begin(caller *c, bird_status (*call)(void)) {
    c->call = call;
    const int before = atomic_load(&callers_begun);
    CHECK(pthread_create(&c->thread, NULL, run_caller, c) == 0);
    UNTIL(&subject, atomic_load(&callers_begun) > before);
}

static void end(caller *c, bird_status wanted, bird_status or_wanted) {
    CHECK(pthread_join(c->thread, NULL) == 0);
    /* It may have come too late. */
    if (c->status != wanted && c->status != or_wanted && c->status != BIRD_ERR_HANDLE) {
        harness_fail(__FILE__, __LINE__, "a call of another thread gave %s", bird_status_name(c->status));
    }
}

/* -------------------------------------------------------------------------------------------------------- ways ------ */

/* While other threads wait, flush and destroy as well. */
static void end_by_destroy(void) {
    caller waiter, flusher, destroyer;
    begin(&waiter, wait_for_ever);
    begin(&flusher, flush_for_ever);
    begin(&destroyer, destroy);
    const bird_status status = destroy();
    CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE);
    end(&waiter, BIRD_ERR_CLOSED, BIRD_ERR_CLOSED);
    end(&flusher, BIRD_ERR_CLOSED, BIRD_OK);
    end(&destroyer, BIRD_OK, BIRD_OK);
}

static void end_by_destroy_while_closing(void) {
    caller waiter, closer;
    begin(&waiter, wait_for_ever);
    begin(&closer, close_for_ever);
    CHECK_STATUS(destroy(), BIRD_OK);
    end(&waiter, BIRD_ERR_CLOSED, BIRD_ERR_CLOSED);
    end(&closer, BIRD_ERR_CLOSED, BIRD_OK);
}

static void end_by_close(void) {
    caller waiter;
    begin(&waiter, wait_for_ever);
    const bird_status status = bird_client_close(subject.client, 20);
    CHECK(status == BIRD_OK || status == BIRD_ERR_TIMEOUT);
    CHECK_STATUS(bird_client_close(subject.client, 20), BIRD_ERR_CLOSED);
    CHECK_STATUS(bird_client_connect(subject.client, NULL), BIRD_ERR_CLOSED);
    end(&waiter, BIRD_ERR_CLOSED, BIRD_ERR_CLOSED);
    CHECK_STATUS(destroy(), BIRD_OK);
}

static void destroy_inside(void *user_data) {
    (void)user_data;
    CHECK_STATUS(destroy(), BIRD_OK);
    atomic_fetch_add(&destructors, 1);
}

/* On the delivery context, where a destructor takes us even when no record comes. */
static void end_in_callback(void) {
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(subject.client, "x", count_record, &events, destroy_inside, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(subject.client, binding), BIRD_OK);
    UNTIL(&subject, atomic_load(&destructors) == 4);
    atomic_fetch_sub(&destructors, 1); /* that one */
}

static const struct {
    const char *name;
    void (*run)(void);
} ways[] = {
    {"destroy", end_by_destroy},
    {"destroy-while-closing", end_by_destroy_while_closing},
    {"close", end_by_close},
    {"callback", end_in_callback},
};

#define BATCHES 2

/* Drained batches of a flood outlive the client and keep the queue. */
static void hold_batches(bird_batch **batches, const char **data) {
    for (int i = 0; i < BATCHES; i++) {
        const bird_record *records = NULL;
        size_t count = 0, stride;
        const int64_t deadline = now_ms() + DEADLINE_MS;
        do {
            CHECK(now_ms() < deadline);
            CHECK_STATUS(bird_queue_wait(subject.queue, DEADLINE_MS), BIRD_OK);
            CHECK_STATUS(bird_queue_drain(subject.queue, &batches[i], &records, &count, &stride), BIRD_OK);
        } while (count == 0);
        data[i] = records->data;
    }
}

static void leave(bird_batch **batches, const char **data) {
    int32_t state;
    CHECK_STATUS(bird_client_state(subject.client, &state), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_channel_state(orders, &state), BIRD_ERR_CLOSED);
    bird_channel_release(orders);
    CHECK_STATUS(bird_channel_state(orders, &state), BIRD_ERR_HANDLE);
    for (int i = 0; i < BATCHES && batches[i] != NULL; i++) {
        CHECK_STATUS(bird_queue_destroy(subject.queue), BIRD_ERR_BUSY);
        CHECK_TEXT(data[i], "1");
        CHECK_STATUS(bird_batch_release(batches[i]), BIRD_OK);
    }
    if (subject.queue != NULL) {
        UNTIL(&(world){0}, bird_queue_destroy(subject.queue) == BIRD_OK);
    }
    if (subject.loop != NULL) {
        UNTIL(&(world){0}, bird_loop_destroy(subject.loop) == BIRD_OK);
    }
}

/* HOST:PORT MODE PHASE, and on stdin a line "go" for each line "at" of stdout: see test_shutdown.py. */
LOAD_CASE(client_ends_in_a_phase) {
    const char *phase = harness_argument(2);
    const int fds = count_fds(), threads = count_threads();
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        enter(phase, ways[i].name);
        bird_batch *batches[BATCHES] = {NULL};
        const char *data[BATCHES] = {NULL};
        if (strcmp(phase, "flood") == 0 && subject.queue != NULL) {
            hold_batches(batches, data);
        }
        const int64_t start = now_ms();
        ways[i].run();
        CHECK(now_ms() - start < AT_ONCE_MS);
        CHECK_INT(atomic_load(&destroyed), 1);
        CHECK_INT(atomic_load(&destructors), 3);
        const int last = atomic_load(&events);
        leave(batches, data);
        UNTIL(&(world){0}, count_threads() == threads + (strcmp(phase, "resolve") == 0));
        /* The last thread to return from a call of the client's gives the fds of its reactor back. */
        UNTIL(&(world){0}, count_fds() == fds);
        atomic_store(&may_answer, true);
        UNTIL(&(world){0}, count_threads() == threads);
        CHECK_INT(atomic_load(&events), last);
    }
    printf("over\n");
}

/* A loop that never ran holds nothing of the clients that waited for it. */
CASE(loop_forgets_clients_that_it_never_served) {
    enum { ROUNDS = 1000, WARM_UP = 20 };
    long memory = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memory = round == WARM_UP ? resident_kib() : memory;
        bird_options *options = NULL;
        CHECK_STATUS(bird_options_create(&options), BIRD_OK);
        set_option(options, "app_key", "pk_demo");
        set_option(options, "ws_host", "127.0.0.1:1");
        set_option(options, "delivery", "loop");
        bird_loop *loop = NULL;
        CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
        CHECK_STATUS(bird_options_set_loop(options, loop), BIRD_OK);
        bird_client *client = client_from(options, NULL);
        CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
        CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);
    }
    CHECK(resident_kib() - memory < 4 * 1024);
}

static int64_t allocated_bytes(void) {
    const struct mallinfo2 now = mallinfo2();
    return (int64_t)(now.uordblks + now.hblkhd);
}

/* A channel that the program never gives back keeps little of its client, and not the loop with its buffers. */
CASE(channel_that_is_never_released_keeps_no_loop) {
    enum { ROUNDS = 100, WARM_UP = 20 };
    int64_t memory = 0;
    for (int round = 0; round < ROUNDS; round++) {
        memory = round == WARM_UP ? allocated_bytes() : memory;
        bird_options *options = NULL;
        CHECK_STATUS(bird_options_create(&options), BIRD_OK);
        set_option(options, "app_key", "pk_demo");
        set_option(options, "ws_host", "127.0.0.1:1");
        set_option(options, "delivery", "loop");
        bird_loop *loop = NULL;
        CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
        CHECK_STATUS(bird_options_set_loop(options, loop), BIRD_OK);
        bird_client *client = client_from(options, NULL);
        bird_channel *channel = NULL;
        CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
        for (int turn = 0; turn < 5; turn++) {
            CHECK_STATUS(bird_loop_run_once(loop, 0), BIRD_OK);
        }
        CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
        CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);
    }
    CHECK(allocated_bytes() - memory < (ROUNDS - WARM_UP) * 16 * 1024);
}
