/* The end of a process in the middle of everything. Run by test_process.py, which judges the exit status and the time it takes. */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define EXIT_STATUS 3
#define CLIENTS 4

static bird_client *clients[CLIENTS];
static bird_queue *queue;
static bird_loop *loop;
static const char *way;
static atomic_bool may_end;
static atomic_int events;

/* The next line of the output tells when the end began. */
static void announce(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("%.6f\n", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
    fflush(stdout);
}

static void end_here(void) {
    announce();
    if (strcmp(way, "_exit") == 0) {
        _exit(EXIT_STATUS);
    }
    if (strcmp(way, "quick_exit") == 0) {
        quick_exit(EXIT_STATUS);
    }
    if (strcmp(way, "abort") == 0) {
        abort();
    }
    exit(EXIT_STATUS);
}

static void *end_on_thread(void *argument) {
    (void)argument;
    end_here();
    return NULL;
}

static void end_in_handler(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    atomic_fetch_add(&events, 1);
    if (atomic_load(&may_end) && strcmp(way, "handler") == 0 && atomic_exchange(&may_end, false)) {
        end_here();
    }
}

/* Like a destructor of a C++ object that lives as long as the program: registered before the library was used, so called after the
   library's own exit handler. */
static void destroy_at_exit(void) {
    int32_t state;
    bird_channel *channel = NULL;
    if (strcmp(way, "destroying") != 0) {
        return;
    }
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_STATUS(bird_client_state(clients[i], &state), BIRD_OK);
        CHECK_STATUS(bird_client_subscribe(clients[i], "late", 0, &channel, NULL), BIRD_OK);
        const bird_status flushed = bird_client_flush(clients[i], 50);
        CHECK(flushed == BIRD_OK || flushed == BIRD_ERR_TIMEOUT);
        CHECK_STATUS(bird_client_destroy(clients[i]), BIRD_OK);
    }
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    if (loop != NULL) {
        CHECK_STATUS(bird_loop_run_once(loop, 5), BIRD_OK);
    }
    CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);
    bird_client *late = client_from(world_options(BIRD_DELIVERY_THREAD), NULL);
    CHECK_STATUS(bird_client_connect(late, NULL), BIRD_ERR_STATE);
    CHECK_STATUS(bird_client_destroy(late), BIRD_OK);
}

static void note_abort(int number) {
    (void)number;
    ssize_t ignored = write(STDOUT_FILENO, "aborted\n", 8);
    (void)ignored;
}

/* HOST:PORT MODE SITUATION WAY: with clients that are always in the middle of a connect, or in a flood of events, the process ends this
   way at a moment that no event of the library decides. */
LOAD_CASE(process_ends) {
    const int32_t mode = harness_mode();
    const bool is_flooded = strcmp(harness_argument(2), "flood") == 0;
    way = harness_argument(3);
    CHECK(atexit(destroy_at_exit) == 0);
    signal(SIGABRT, note_abort);
    if (mode == BIRD_DELIVERY_QUEUE) {
        CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    }
    if (mode == DELIVERY_HOST) {
        CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
    }
    for (int i = 0; i < CLIENTS; i++) {
        bird_channel *channel = NULL;
        uint64_t binding;
        bird_options *options = world_options(mode);
        if (loop != NULL) {
            CHECK_STATUS(bird_options_set_loop(options, loop), BIRD_OK);
        }
        clients[i] = client_from(options, queue);
        CHECK_STATUS(bird_client_observe(clients[i], UINT64_MAX, end_in_handler, NULL, NULL, &binding, NULL), BIRD_OK);
        if (is_flooded) {
            CHECK_STATUS(bird_client_subscribe(clients[i], "bench", 0, &channel, NULL), BIRD_OK);
        }
        CHECK_STATUS(bird_client_connect(clients[i], NULL), BIRD_OK);
    }
    world w = {.delivery = mode, .queue = queue, .loop = loop};
    UNTIL(&w, atomic_load(&events) > (is_flooded ? 1000 : 4 * CLIENTS));
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t end = now_ms() + now.tv_nsec / 1000 % 20;
    UNTIL(&w, now_ms() >= end);
    atomic_store(&may_end, true);
    if (strcmp(way, "handler") == 0) {
        UNTIL(&w, false);
    }
    if (strcmp(way, "thread") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, end_on_thread, NULL) == 0);
        UNTIL(&w, false);
    }
    if (strcmp(way, "return") == 0) {
        announce();
        return;
    }
    end_here();
}

static atomic_bool has_ended;

static void end_slowly(void *value) {
    (void)value;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&has_ended, true);
}

/* After the library's own exit handler, which is registered later. */
static void check_that_it_has_ended(void) {
    if (!atomic_load(&has_ended)) {
        fputs("the thread of the library was still there\n", stderr);
        _exit(1);
    }
}

static void destroy_and_leave(const bird_record *record, void *user_data) {
    pthread_key_t *key = user_data;
    CHECK(pthread_setspecific(*key, key) == 0);
    CHECK_STATUS(bird_client_destroy(record->client), BIRD_OK);
    journal_add("destroyed");
}

/* Where the last client is destroyed in its own handler, nobody waits for the library's thread but the end of the process: the TLS library
   frees what it keeps for a thread when the thread ends. */
EDGE_CASE(exit_waits_for_a_thread_that_has_stopped_itself) {
    static pthread_key_t key;
    CHECK(atexit(check_that_it_has_ended) == 0);
    CHECK(pthread_key_create(&key, end_slowly) == 0);
    bird_client *client = client_from(world_options(BIRD_DELIVERY_LOOP), NULL);
    CHECK_STATUS(bird_client_observe(client, 1u << BIRD_RECORD_STATE, destroy_and_leave, &key, NULL, NULL, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
    world w = {.delivery = BIRD_DELIVERY_LOOP};
    UNTIL(&w, journal_count() == 1);
}
