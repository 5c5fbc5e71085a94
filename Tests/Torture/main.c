/* usage: torture SECONDS SEED THREADS */
#include "torture.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, BURST_CALLS = 64 };

uint64_t run_seed;
int run_threads, run_seconds;
static atomic_bool is_over;
static atomic_ullong thread_calls;

static void rest(long nanoseconds) {
    const struct timespec pause = {.tv_nsec = nanoseconds};
    nanosleep(&pause, NULL);
}

static void *torture(void *number) {
    chance c = {mix(run_seed) + mix((uint64_t)(uintptr_t)number)};
    unsigned long long calls = 0;
    call_each(&c);
    while (!atomic_load(&is_over)) {
        /* Connections need their time as well. */
        if (++calls % BURST_CALLS == 0) {
            rest(1000000);
        }
        call_random(draw(&c));
    }
    size_t functions = 0;
    const char *name;
    for (unsigned long long count; call_at(functions, &name, &count); functions++) {
    }
    atomic_fetch_add(&thread_calls, calls + functions);
    return NULL;
}

static int count_entries(const char *path) {
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    int count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

static void run_threads_for(int seconds) {
    pthread_t threads[THREADS_MAX];
    for (int i = 0; i < run_threads; i++) {
        CHECK(pthread_create(&threads[i], NULL, torture, (void *)(uintptr_t)(i + 1)) == 0);
    }
    const int64_t end = now_ms() + (int64_t)seconds * 1000;
    while (now_ms() < end) {
        rest(50000000);
        lanes_check();
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < run_threads; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* What waits in queues and loops is delivered. */
static void turn(void) {
    for (size_t i = 0; slot_at(QUEUES, i) != NULL; i++) {
        bird_queue_dispatch(atomic_load(slot_at(QUEUES, i)), 0, NULL);
    }
    for (size_t i = 0; slot_at(LOOPS, i) != NULL; i++) {
        bird_loop_run_once(atomic_load(slot_at(LOOPS, i)), 0);
    }
    rest(1000000);
    lanes_check();
}

/* The edge is good from now on: whatever was accepted comes to its end. */
static void heal(void) {
    atomic_store(&callbacks_are_good, true);
    edge_heal();
    const int64_t end = now_ms() + PATIENCE_MS;
    for (bool is_connected = false; operations_open() > 0 || !is_connected;) {
        is_connected = true;
        for (size_t i = 0; slot_at(CLIENTS, i) != NULL; i++) {
            bird_client *client = atomic_load(slot_at(CLIENTS, i));
            int32_t state = BIRD_STATE_CONNECTED;
            if (bird_client_connect(client, NULL) == BIRD_OK) {
                subject_connects(subject_of(client));
                bird_client_state(client, &state);
            }
            is_connected = is_connected && state == BIRD_STATE_CONNECTED;
        }
        turn();
        if (now_ms() > end) {
            FAIL("with a good edge %d operations are open, and all clients %s connected", operations_open(),
                 is_connected ? "are" : "are not");
        }
    }
}

#define END_ALL(shelf, call)                                                                                           \
    for (size_t i = 0; slot_at(shelf, i) != NULL; i++) {                                                               \
        void *handle = atomic_exchange(slot_at(shelf, i), NULL);                                                       \
        call;                                                                                                          \
        bury(shelf, handle);                                                                                           \
    }

static void end_everything(void) {
    END_ALL(CLIENTS, destroy_client(handle))
    END_ALL(CHANNELS, bird_channel_release(handle))
    END_ALL(REQUESTS, (void)0)
    END_ALL(BATCHES, bird_batch_release(handle))
    END_ALL(OPTIONS, bird_options_destroy(handle))
    END_ALL(QUEUES, CHECK(bird_queue_destroy(handle) != BIRD_ERR_BUSY))
    END_ALL(LOOPS, CHECK(bird_loop_destroy(handle) != BIRD_ERR_BUSY))
}

static void print_fds(void) {
    char name[64], target[256];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        const ssize_t length = readlink(name, target, sizeof target - 1);
        if (length > 0) {
            fprintf(stderr, "fd %d: %.*s\n", fd, (int)length, target);
        }
    }
}

/* Threads of the library that have nothing left to do may need a moment to end. */
static void check_nothing_is_left(int fds, int threads) {
    const int64_t end = now_ms() + PATIENCE_MS;
    while (tickets_open() > 0 || count_entries("/proc/self/fd") != fds || count_entries("/proc/self/task") != threads) {
        rest(1000000);
        if (now_ms() > end) {
            print_fds();
            FAIL("left: %d destructors that have not run, %d fds, %d threads", tickets_open(),
                 count_entries("/proc/self/fd") - fds, count_entries("/proc/self/task") - threads);
        }
    }
    check_graves();
}

static void remove_log_directory(void) {
    DIR *directory = opendir(log_directory);
    CHECK(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        unlinkat(dirfd(directory), entry->d_name, 0);
    }
    closedir(directory);
    CHECK(rmdir(log_directory) == 0);
}

static void print_figures(void) {
    unsigned long long calls = 0, count;
    const char *name;
    size_t functions = 0;
    for (; call_at(functions, &name, &count); functions++) {
        calls += count;
    }
    printf("torture: seed %llu, %d threads, %d s: %llu calls of %zu functions, %llu of them in callbacks; %llu records "
           "handled, %llu drained, %llu requests, %llu log entries; %llu connections, %llu upgraded\n",
           (unsigned long long)run_seed, run_threads, run_seconds, calls, functions, calls - atomic_load(&thread_calls),
           atomic_load(&records_handled), atomic_load(&records_drained), atomic_load(&requests_seen),
           atomic_load(&log_entries), atomic_load(&edge_connections), atomic_load(&edge_upgrades));
}

int main(int argc, char **argv) {
    run_seconds = argc == 4 ? atoi(argv[1]) : 0;
    run_seed = argc == 4 ? strtoull(argv[2], NULL, 10) : 0;
    run_threads = argc == 4 ? atoi(argv[3]) : 0;
    if (run_seconds <= 0 || run_threads <= 0 || run_threads > THREADS_MAX) {
        fprintf(stderr, "usage: torture SECONDS SEED THREADS, at most %d threads\n", THREADS_MAX);
        return 2;
    }
    lanes_catch_crashes();
    const char *place_for_files = getenv("TMPDIR");
    snprintf(log_directory, sizeof log_directory, "%s/torture-XXXXXX",
             place_for_files != NULL ? place_for_files : "/tmp");
    CHECK(mkdtemp(log_directory) != NULL);
    const int fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    edge_start(run_seed);
    run_threads_for(run_seconds);
    heal();
    end_everything();
    edge_stop();
    check_nothing_is_left(fds, threads);
    remove_log_directory();
    print_figures();
    return 0;
}
