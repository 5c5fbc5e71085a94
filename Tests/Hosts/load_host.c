/*
 * load_host CASE LIBRARY HOST:PORT [LIBRARY]: a host that is not linked with the library but loads it. It has functions of its own with the names
 * of the library's internals and of what is linked into it; none of them may be called by it.
 */
#include <birdrealtime.h>

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30000
#define ROUNDS 200

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _Exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* ---------------------------------------------------------------------------------------------- names of our own --- */

#define OUR_OWN(name)                                                                                                  \
    void name(void);                                                                                                   \
    void name(void) {                                                                                                  \
        fprintf(stderr, "the host's " #name " was called\n");                                                          \
        _Exit(1);                                                                                                      \
    }

OUR_OWN(birdlinux_thread_start)
OUR_OWN(birdlinux_cond_init)
OUR_OWN(birdlinux_callback_depth)
OUR_OWN(birdlinux_dup_cloexec)
OUR_OWN(birdcurl_multi_init)
OUR_OWN(birdcurl_set_sockets)
OUR_OWN(sodium_init)
OUR_OWN(crypto_secretbox_open_easy)
OUR_OWN(randombytes_buf)
OUR_OWN(swift_retain)
OUR_OWN(swift_release)
OUR_OWN(swift_allocObject)
OUR_OWN(swift_once)
OUR_OWN(swift_beginAccess)

/* ----------------------------------------------------------------------------------------------------- the library -- */

typedef struct library {
    void *handle;
    __typeof__(bird_options_create) *options_create;
    __typeof__(bird_options_destroy) *options_destroy;
    __typeof__(bird_options_set) *options_set;
    __typeof__(bird_client_create) *client_create;
    __typeof__(bird_client_connect) *client_connect;
    __typeof__(bird_client_wait) *client_wait;
    __typeof__(bird_client_state) *client_state;
    __typeof__(bird_client_destroy) *client_destroy;
} library;

static void *find(void *handle, const char *name) {
    void *function = dlsym(handle, name);
    CHECK(function != NULL);
    return function;
}

static library resolve(void *handle) {
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        _Exit(1);
    }
    library bird = {.handle = handle};
    *(void **)&bird.options_create = find(handle, "bird_options_create");
    *(void **)&bird.options_destroy = find(handle, "bird_options_destroy");
    *(void **)&bird.options_set = find(handle, "bird_options_set");
    *(void **)&bird.client_create = find(handle, "bird_client_create");
    *(void **)&bird.client_connect = find(handle, "bird_client_connect");
    *(void **)&bird.client_wait = find(handle, "bird_client_wait");
    *(void **)&bird.client_state = find(handle, "bird_client_state");
    *(void **)&bird.client_destroy = find(handle, "bird_client_destroy");
    return bird;
}

static bird_client *connected(const library *bird, const char *server) {
    bird_options *options = NULL;
    bird_client *client = NULL;
    CHECK(bird->options_create(&options) == BIRD_OK);
    CHECK(bird->options_set(options, "app_key", "pk_host", NULL) == BIRD_OK);
    CHECK(bird->options_set(options, "ws_host", server, NULL) == BIRD_OK);
    CHECK(bird->options_set(options, "allow_insecure", "1", NULL) == BIRD_OK);
    CHECK(bird->client_create(options, &client, NULL) == BIRD_OK);
    bird->options_destroy(options);
    CHECK(bird->client_connect(client, NULL) == BIRD_OK);
    CHECK(bird->client_wait(client, BIRD_STATE_CONNECTED, WAIT_MS) == BIRD_OK);
    return client;
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

/* The kernel takes a moment to forget a thread that has been joined. */
static void until_threads_are(int wanted) {
    for (int tries = 0; count_entries("/proc/self/task") != wanted; tries++) {
        CHECK(tries < WAIT_MS);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* 0 where what grows would be a sanitizer. */
static long resident_kib(void) {
#ifdef SANITIZED
    return 0;
#endif
    long total, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident * 4;
}

/* ------------------------------------------------------------------------------------------------------- cases ----- */

static char **arguments; /* LIBRARY HOST:PORT ... */

static void load_and_unload(int flags, bool uses) {
    const int threads = count_entries("/proc/self/task");
    int fds = 0;
    long memory = 0;
    for (int round = 0; round < ROUNDS; round++) {
        library bird = resolve(dlopen(arguments[0], flags));
        if (uses) {
            CHECK(bird.client_destroy(connected(&bird, arguments[1])) == BIRD_OK);
        }
        CHECK(dlclose(bird.handle) == 0);
        if (round == ROUNDS / 10) {
            fds = count_entries("/proc/self/fd");
            memory = resident_kib();
        }
    }
    until_threads_are(threads);
    CHECK(count_entries("/proc/self/fd") == fds);
    CHECK(resident_kib() - memory < 2048);
}

static void unused(void) {
    load_and_unload(RTLD_NOW | RTLD_LOCAL, false);
}

static void used(void) {
    load_and_unload(RTLD_NOW | RTLD_LOCAL, true);
}

static void used_lazily_and_globally(void) {
    load_and_unload(RTLD_LAZY | RTLD_GLOBAL, true);
}

static void *load_on_thread(void *argument) {
    library *bird = argument;
    *bird = resolve(dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL));
    return connected(bird, arguments[1]);
}

/* The thread that loaded and first used the library is gone when the client is. */
static void loaded_by_a_thread(void) {
    const int threads = count_entries("/proc/self/task");
    library bird;
    pthread_t thread;
    void *client;
    CHECK(pthread_create(&thread, NULL, load_on_thread, &bird) == 0);
    CHECK(pthread_join(thread, &client) == 0);
    int32_t state;
    CHECK(bird.client_state(client, &state) == BIRD_OK && state == BIRD_STATE_CONNECTED);
    CHECK(bird.client_destroy(client) == BIRD_OK);
    until_threads_are(threads);
}

static void use_two(const library *first, const library *second) {
    CHECK(first->client_create != second->client_create);
    const int threads = count_entries("/proc/self/task");
    for (int round = 0; round < 20; round++) {
        bird_client *one = connected(first, arguments[1]), *other = connected(second, arguments[1]);
        int32_t state;
        CHECK(first->client_destroy(one) == BIRD_OK);
        CHECK(second->client_state(other, &state) == BIRD_OK && state == BIRD_STATE_CONNECTED);
        CHECK(second->client_destroy(other) == BIRD_OK);
    }
    until_threads_are(threads);
}

static void two_copies(void) {
    const library first = resolve(dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL));
    const library second = resolve(dlopen(arguments[2], RTLD_NOW | RTLD_LOCAL));
    use_two(&first, &second);
}

/* A copy in a namespace of its own, with its own C library, libcurl and TLS library. */
static void two_namespaces(void) {
    const library first = resolve(dlopen(arguments[0], RTLD_NOW | RTLD_LOCAL));
    const library second = resolve(dlmopen(LM_ID_NEWLM, arguments[0], RTLD_NOW | RTLD_LOCAL));
    use_two(&first, &second);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"unused", unused},
    {"used", used},
    {"used_lazily_and_globally", used_lazily_and_globally},
    {"loaded_by_a_thread", loaded_by_a_thread},
    {"two_copies", two_copies},
    {"two_namespaces", two_namespaces},
};

int main(int count, char **values) {
    for (size_t i = 0; count > 3 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(cases[i].name, values[1]) == 0) {
            arguments = values + 2;
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: load_host CASE LIBRARY HOST:PORT [LIBRARY]\n");
    return 2;
}
