/* Resources that the operating system refuses: an error that names them, no trace, and success once they are there. */
#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

/* ------------------------------------------------------------------------------------------------------ files ------ */

static void allow_fds(rlim_t count) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void check_names_files(const bird_error *error) {
    CHECK_STATUS(bird_error_status(error), BIRD_ERR_SYSTEM);
    CHECK_INT(bird_error_retriable(error), 1);
    if (strstr(bird_error_message(error), "file descriptor") == NULL) {
        harness_fail(__FILE__, __LINE__, "the error says: %s", bird_error_message(error));
    }
}

static atomic_int errors;

static void check_error_record(const bird_record *record, void *user_data) {
    (void)user_data;
    check_names_files(((const bird_failure *)record->detail)->error);
    atomic_fetch_add(&errors, 1);
}

/* True if the client connected although it had only so many files more. */
static bool connects_with(int files) {
    const int fds = count_fds();
    uint64_t binding;
    bird_error *error = NULL;
    world w = world_open(harness_mode());
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, check_error_record, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    atomic_store(&errors, 0);
    allow_fds((rlim_t)(count_fds() + files));
    const bird_status status = bird_client_connect(w.client, &error);
    if (status != BIRD_OK) {
        check_names_files(error);
        bird_error_free(error);
    } else {
        UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED || atomic_load(&errors) > 0);
    }
    const bool is_connected = client_state(w.client) == BIRD_STATE_CONNECTED && atomic_load(&errors) == 0;
    if (status == BIRD_OK && !is_connected) {
        /* An attempt that failed just before the limit rises would find files enough when it looks for the reason. */
        CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
        UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    }
    allow_fds(RLIM_INFINITY);
    if (!is_connected) {
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    }
    UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED);
    world_close(&w);
    UNTIL(&w, count_fds() == fds);
    return is_connected;
}

MODE_CASE(connect_without_files) {
    enum { FILES_MAX = 32 };
    int files = 0;
    while (!connects_with(files)) {
        files++;
        CHECK(files < FILES_MAX);
    }
    CHECK(files > 0);
    printf("a first client needs %d files\n", files);
}

CASE(queue_without_files) {
    bird_queue *queue = NULL;
    const int fds = count_fds();
    allow_fds((rlim_t)fds);
    CHECK_STATUS(bird_queue_create(&queue), BIRD_ERR_SYSTEM);
    CHECK(queue == NULL);
    allow_fds(RLIM_INFINITY);
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    CHECK_INT(count_fds(), fds);
}

/* ----------------------------------------------------------------------------------------------------- threads ----- */

/* How many threads may still be started; below 0: any number. This definition is in the library's way to the C library's. */
static atomic_int threads_left = -1;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    typedef int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    static create real;
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    }
    const int left = atomic_load(&threads_left);
    if (left == 0) {
        return EAGAIN;
    }
    if (left > 0) {
        atomic_store(&threads_left, left - 1);
    }
    return real(thread, attributes, body, argument);
}

MODE_CASE(connect_without_threads) {
    const int32_t mode = harness_mode();
    const int threads = count_threads(), fds = count_fds();
    /* The reactor, and at least one that delivers. */
    const int needed = mode == DELIVERY_HOST ? 0 : mode == BIRD_DELIVERY_THREAD ? 2 : 1;
    for (int allowed = 0; allowed <= needed; allowed++) {
        bird_error *error = NULL;
        world w = world_open(mode);
        const int fds_before = count_fds();
        atomic_store(&threads_left, allowed);
        const bird_status status = bird_client_connect(w.client, &error);
        atomic_store(&threads_left, -1);
        CHECK_STATUS(status, allowed < needed ? BIRD_ERR_SYSTEM : BIRD_OK);
        if (status != BIRD_OK) {
            CHECK_TEXT(bird_error_field(error), "thread");
            CHECK_INT(bird_error_retriable(error), 1);
            CHECK(strstr(bird_error_message(error), "thread") != NULL);
            bird_error_free(error);
            UNTIL(&w, count_threads() == threads);
            UNTIL(&w, count_fds() == fds_before);
        }
        world_connect(&w);
        world_settle(&w);
        world_close(&w);
        UNTIL(&w, count_threads() == threads);
        UNTIL(&w, count_fds() == fds);
    }
}

static void check_no_resolver(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_error *error = ((const bird_failure *)record->detail)->error;
    CHECK_STATUS(bird_error_status(error), BIRD_ERR_SYSTEM);
    CHECK_TEXT(bird_error_field(error), "thread");
    atomic_fetch_add(&errors, 1);
}

/* HOST:PORT MODE ws_host=NAME:PORT: a name has to be looked up, for which there is no thread at first. */
LOAD_CASE(resolve_without_threads) {
    uint64_t binding;
    world w = world_open(harness_mode());
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, check_no_resolver, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    atomic_store(&threads_left, w.delivery == DELIVERY_HOST ? 0 : w.delivery == BIRD_DELIVERY_THREAD ? 5 : 1);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    UNTIL(&w, atomic_load(&errors) > 0);
    atomic_store(&threads_left, -1);
    world_connect(&w);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------------ memory ----- */

/* The Swift runtime ends a process that has no memory left at all; what the library itself asks for is modest. */
MODE_CASE(memory_may_be_scarce) {
    enum { ROOM_KIB = 96 * 1024 };
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK(fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    const rlim_t bytes = (rlim_t)pages * 4096 + (rlim_t)ROOM_KIB * 1024;
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) == 0);
    /* Five threads with stacks of 8 MiB are the larger part. */
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    UNTIL(&w, world_streamed() > 20000);
    world_end_stream(&w);
    world_close(&w);
}
