/* What a fork does to a program that has clients: nothing to the parent; a child has handles that say so, and can have its own. */
#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that hangs ends by SIGALRM, which fails the parent's check of its status. */
#define CHILD_DEADLINE_S 30

extern char **environ;

/* --------------------------------------------------------------------------------------------------- children ------ */

static pid_t fork_checked(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(CHILD_DEADLINE_S);
    }
    return child;
}

/* The parent's records go on being consumed meanwhile. */
static void until_ended_with(world *w, pid_t child, int wanted) {
    int status = -1;
    UNTIL(w, waitpid(child, &status, WNOHANG) == child);
    CHECK_INT(status, wanted);
}

/* A new client, from nothing to an event. */
static void use_own_client(int32_t delivery) {
    world own = world_open(delivery);
    world_connect(&own);
    world_settle(&own);
    world_close(&own);
}

/* ------------------------------------------------------------------------------------------------------- files ------ */

#define FDS_MAX 256

typedef struct fd_table {
    bool is_open[FDS_MAX];
} fd_table;

static fd_table open_fds(void) {
    fd_table table = {0};
    DIR *directory = opendir("/proc/self/fd");
    CHECK(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        const int fd = atoi(entry->d_name);
        CHECK(fd < FDS_MAX);
        table.is_open[fd] = fd > 2 && fd != dirfd(directory);
    }
    closedir(directory);
    return table;
}

static bool are_open(const fd_table *wanted) {
    const fd_table found = open_fds();
    return memcmp(found.is_open, wanted->is_open, sizeof found.is_open) == 0;
}

/* A thread of the library that is ending may still have to give some back. */
static void check_open_fds(const fd_table *wanted) {
    for (const int64_t end = now_ms() + DEADLINE_MS; !are_open(wanted) && now_ms() < end;) {
        world_turn(&(world){0});
    }
    const fd_table found = open_fds();
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (found.is_open[fd] != wanted->is_open[fd]) {
            char path[32], name[256] = "nothing";
            snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
            const ssize_t length = readlink(path, name, sizeof name - 1);
            name[length < 0 ? 0 : length] = '\0';
            harness_fail(__FILE__, __LINE__, "fd %d is %s", fd, found.is_open[fd] ? name : "closed");
        }
    }
}

/* ------------------------------------------------------------------------------------------- inherited handles ------ */

/* One handle of each kind; the batch and the request come from a queue of their own. */
typedef struct handles {
    world *w;
    bird_options *options;
    world asking;
    bird_batch *batch;
    bird_request *request;
    bird_loop *loop;
    bird_client *looping; /* its sockets are the loop's */
} handles;

static handles open_handles(world *w) {
    handles all = {.w = w};
    CHECK_STATUS(bird_options_create(&all.options), BIRD_OK);
    CHECK_STATUS(bird_loop_create(&all.loop), BIRD_OK);
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    CHECK_STATUS(bird_options_set_loop(options, all.loop), BIRD_OK);
    all.looping = client_from(options, NULL);
    CHECK_STATUS(bird_client_connect(all.looping, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_wait(all.looping, BIRD_STATE_CONNECTED, DEADLINE_MS), BIRD_OK);
    all.asking = world_open_with(BIRD_DELIVERY_QUEUE, world_options(BIRD_DELIVERY_QUEUE));
    CHECK_STATUS(bird_client_subscribe(all.asking.client, "private-slow", 0, &all.asking.control, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_connect(all.asking.client, NULL), BIRD_OK);
    while (all.request == NULL) {
        const char *record;
        size_t count, stride;
        CHECK_STATUS(bird_queue_wait(all.asking.queue, DEADLINE_MS), BIRD_OK);
        CHECK_STATUS(bird_queue_drain(all.asking.queue, &all.batch, (const bird_record **)&record, &count, &stride),
                     BIRD_OK);
        for (size_t i = 0; i < count; i++, record += stride) {
            if (((const bird_record *)record)->kind == BIRD_RECORD_REQUEST) {
                all.request = ((const bird_question *)((const bird_record *)record)->detail)->request;
            }
        }
        if (all.request == NULL && all.batch != NULL) {
            CHECK_STATUS(bird_batch_release(all.batch), BIRD_OK);
        }
    }
    return all;
}

static void close_handles(handles *all) {
    CHECK_STATUS(bird_batch_release(all->batch), BIRD_OK);
    bird_options_destroy(all->options);
    world_close(&all->asking);
    CHECK_INT(client_state(all->looping), BIRD_STATE_CONNECTED);
    CHECK_STATUS(bird_client_destroy(all->looping), BIRD_OK);
    CHECK_STATUS(bird_loop_destroy(all->loop), BIRD_OK);
}

static void never_called(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    harness_fail(__FILE__, __LINE__, "a handler was called");
}

static void count_destructor(void *user_data) {
    ++*(int *)user_data;
}

static void never_logged(const bird_log_entry *entry, void *user_data) {
    (void)entry;
    (void)user_data;
    harness_fail(__FILE__, __LINE__, "a log handler was called");
}

/* Together with the next function: every function that takes a handle and returns a status. */
static void check_options_are_refused(handles *all) {
    bird_client *made = NULL;
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set(all->options, "app_key", "pk", &error), BIRD_ERR_FORKED);
    CHECK(strstr(bird_error_message(error), "parent") != NULL);
    CHECK_INT(bird_error_retriable(error), 0);
    bird_error_free(error);
    CHECK_STATUS(bird_options_set_int(all->options, "pong_timeout_ms", 1000, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_options_set_auth_header(all->options, "X-A", "b", NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_options_set_queue(all->options, all->asking.queue), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_options_set_loop(all->options, all->loop), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_options_set_tag(all->options, 1), BIRD_ERR_FORKED);
    int destructions = 0;
    CHECK_STATUS(bird_options_set_log(all->options, never_logged, &destructions, count_destructor), BIRD_ERR_FORKED);
    CHECK_INT(destructions, 1);
    CHECK_STATUS(bird_client_create(all->options, &made, NULL), BIRD_ERR_FORKED);
    CHECK(made == NULL);
}

static void check_every_call_is_refused(handles *all) {
    bird_client *client = all->w->client;
    bird_channel *channel = all->w->control, *joined = NULL;
    bird_queue *queue = all->asking.queue;
    bird_options *own_options = NULL;
    int32_t number;
    uint32_t id;
    int64_t time_ms;
    uint64_t binding;
    size_t count, stride;
    char text[16];
    const bird_record *records;
    bird_batch *batch;
    bird_members *members = NULL;
    int destructions = 0;

    CHECK_STATUS(bird_options_create(&own_options), BIRD_OK);
    CHECK_STATUS(bird_options_set_queue(own_options, queue), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_options_set_loop(own_options, all->loop), BIRD_ERR_FORKED);
    bird_options_destroy(own_options);

    CHECK_STATUS(bird_client_connect(client, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_disconnect(client), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_network_hint(client, BIRD_NETWORK_UP), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_retry_now(client), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_set(client, "reconnect", "fixed", NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_set_int(client, "reconnect_delay_ms", 1, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_dump(client, text, sizeof text, &count), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_wait(client, BIRD_STATE_CONNECTED, 1000), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_flush(client, 1000), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_close(client, 1000), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_state(client, &number), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_connection_id(client, text, sizeof text, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &joined, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_signin(client, 0, 0, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_member_id(client, text, sizeof text, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_member_channel(client, &joined), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_statistics(client, &(bird_statistics){.struct_size = sizeof(bird_statistics)}),
                 BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_intern(client, "tick", &id, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_unbind(client, 1), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_unbind_event(client, "tick"), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_unbind_all(client), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_bind(client, "tick", never_called, &destructions, count_destructor, &binding, NULL),
                 BIRD_ERR_FORKED);
    CHECK_STATUS(bird_client_observe(client, 2, never_called, &destructions, count_destructor, &binding, NULL),
                 BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_bind(channel, "tick", never_called, &destructions, count_destructor, &binding, NULL),
                 BIRD_ERR_FORKED);
    CHECK_INT(destructions, 3); /* of registrations that failed */

    CHECK_STATUS(bird_channel_unsubscribe(channel), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_trigger(channel, "client-x", NULL, 0, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_state(channel, &number), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_kind(channel, &number), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_name(channel, text, sizeof text, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_set_tag(channel, 1), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_unbind_event(channel, "tick"), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_unbind_all(channel), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_my_id(channel, text, sizeof text, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_member_count(channel, &count), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_channel_members(channel, &members), BIRD_ERR_FORKED);

    CHECK_STATUS(bird_queue_fd(queue, &number), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_queue_wait(queue, 1000), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_queue_wake(queue), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &count, &stride), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_queue_dispatch(queue, 0, &count), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_batch_release(all->batch), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_request_authorize(all->request, "pk:sig", NULL, NULL, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_request_fail(all->request, 0, "no", NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_request_headers(all->request, NULL, 0, NULL), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_request_proceed(all->request, 0, NULL), BIRD_ERR_FORKED);

    CHECK_STATUS(bird_loop_fd(all->loop, &number), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_loop_deadline(all->loop, &time_ms), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_loop_run_once(all->loop, 1000), BIRD_ERR_FORKED);
    CHECK_STATUS(bird_loop_wake(all->loop), BIRD_ERR_FORKED);
}

/* Clients, queues, loops and options in the child; a channel needs none, but may be released. */
static void destroy_inherited(handles *all) {
    world w = *all->w, asking = all->asking; /* the handles are tried once more afterwards */
    bird_channel_release(w.control);
    world_close(&w);
    world_close(&asking);
    CHECK_STATUS(bird_client_destroy(all->looping), BIRD_OK);
    CHECK_STATUS(bird_loop_destroy(all->loop), BIRD_OK);
    bird_options_destroy(all->options);
}

static int bound_destructions;

MODE_CASE(child_has_no_use_for_inherited_handles) {
    const fd_table fds = open_fds();
    world w = world_open(harness_mode());
    uint64_t binding;
    CHECK_STATUS(
        bird_client_bind(w.client, "never", never_called, &bound_destructions, count_destructor, &binding, NULL),
        BIRD_OK);
    world_connect(&w);
    handles all = open_handles(&w);
    world_stream(&w);
    const pid_t child = fork_checked();
    if (child == 0) {
        check_options_are_refused(&all);
        check_every_call_is_refused(&all);
        destroy_inherited(&all);
        check_open_fds(&fds);
        check_every_call_is_refused(&all);
        CHECK_INT(bound_destructions, 0); /* what it would release is the parent's */
        use_own_client(harness_mode());
        check_open_fds(&fds);
        _exit(0);
    }
    until_ended_with(&w, child, 0);
    const int64_t streamed = world_streamed();
    UNTIL(&w, world_streamed() > streamed + 1000); /* still, after the child's destroy */
    world_end_stream(&w);
    CHECK_STATUS(bird_request_authorize(all.request, "pk:sig", NULL, NULL, NULL), BIRD_OK);
    close_handles(&all);
    world_close(&w);
    CHECK_INT(bound_destructions, 1);
    check_open_fds(&fds);
}

MODE_CASE(child_leaves_inherited_handles_alone) {
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    for (int round = 0; round < 6; round++) {
        const pid_t child = fork_checked();
        if (child == 0) {
            use_own_client(harness_mode());
            if (round % 2 == 0) {
                exit(0);
            }
            _exit(0);
        }
        until_ended_with(&w, child, 0);
    }
    world_end_stream(&w);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------ when to fork ------ */

MODE_CASE(fork_before_any_use) {
    world parent = {.delivery = BIRD_DELIVERY_LOOP};
    const pid_t child = fork_checked();
    use_own_client(harness_mode());
    if (child == 0) {
        exit(0);
    }
    until_ended_with(&parent, child, 0);
}

MODE_CASE(fork_between_create_and_connect) {
    world w = world_open(harness_mode());
    const pid_t child = fork_checked();
    if (child == 0) {
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_ERR_FORKED);
        CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
        use_own_client(harness_mode());
        _exit(0);
    }
    until_ended_with(&w, child, 0);
    world_connect(&w);
    world_settle(&w);
    world_close(&w);
}

MODE_CASE(fork_while_connecting) {
    for (int round = 0; round < 30; round++) {
        const fd_table fds = open_fds();
        world w = world_open(harness_mode());
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
        const pid_t child = fork_checked();
        if (child == 0) {
            world_close(&w);
            check_open_fds(&fds);
            _exit(0);
        }
        until_ended_with(&w, child, 0);
        UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED);
        bird_statistics s = {.struct_size = sizeof s};
        CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
        CHECK_INT(s.attempts, 1);
        world_close(&w);
    }
}

MODE_CASE(fork_many_times_in_a_row) {
    enum { FORKS = 200 };
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    for (int round = 0; round < FORKS; round++) {
        const pid_t child = fork_checked();
        if (child == 0) {
            if (round % 2 == 0) {
                exit(0);
            }
            _exit(0);
        }
        until_ended_with(&w, child, 0);
    }
    world_end_stream(&w);
    world_close(&w);
}

MODE_CASE(fork_of_a_child) {
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    const pid_t child = fork_checked();
    if (child == 0) {
        world own = world_open(harness_mode());
        world_connect(&own);
        const pid_t grandchild = fork_checked();
        if (grandchild == 0) {
            int32_t state;
            CHECK_STATUS(bird_client_state(w.client, &state), BIRD_ERR_FORKED);
            CHECK_STATUS(bird_client_state(own.client, &state), BIRD_ERR_FORKED);
            CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
            CHECK_STATUS(bird_client_destroy(own.client), BIRD_OK);
            use_own_client(harness_mode());
            exit(0);
        }
        until_ended_with(&own, grandchild, 0);
        world_settle(&own);
        CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
        world_settle(&own);
        world_close(&own);
        exit(0);
    }
    until_ended_with(&w, child, 0);
    world_end_stream(&w);
    world_close(&w);
}

/* --------------------------------------------------------------------------------------------- threads that call ---- */

static atomic_bool is_enough;
static atomic_int calls[3], threads_ended;

static void *make_and_end_clients(void *argument) {
    (void)argument;
    while (!atomic_load(&is_enough)) {
        world w = world_open(harness_mode());
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
        if (atomic_fetch_add(&calls[0], 1) % 2 == 0) {
            UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED);
        }
        world_close(&w);
    }
    atomic_fetch_add(&threads_ended, 1);
    return NULL;
}

static void *join_and_leave(void *argument) {
    bird_client *client = argument;
    while (!atomic_load(&is_enough)) {
        bird_channel *channel = NULL;
        CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);
        /* At the pace of the edge: what is asked of it must not pile up. */
        world idle = {.delivery = BIRD_DELIVERY_LOOP};
        UNTIL(&idle, channel_state(channel) == BIRD_CHANNEL_SUBSCRIBED);
        CHECK_STATUS(bird_channel_unsubscribe(channel), BIRD_OK);
        bird_channel_release(channel);
        atomic_fetch_add(&calls[1], 1);
    }
    atomic_fetch_add(&threads_ended, 1);
    return NULL;
}

static void *make_and_end_small_things(void *argument) {
    (void)argument;
    while (!atomic_load(&is_enough)) {
        bird_options_destroy(world_options(harness_mode()));
        bird_queue *queue = NULL;
        CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
        CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
        atomic_fetch_add(&calls[2], 1);
    }
    atomic_fetch_add(&threads_ended, 1);
    return NULL;
}

MODE_CASE(fork_while_threads_call) {
    static void *(*const bodies[])(void *) = {make_and_end_clients, join_and_leave, make_and_end_small_things};
    enum { THREADS = sizeof bodies / sizeof *bodies };
    pthread_t threads[THREADS];
    world w = world_open(harness_mode());
    world_connect(&w);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, bodies[i], w.client) == 0);
    }
    for (int round = 0; round < 12; round++) {
        for (int i = 0; i < THREADS; i++) {
            const int before = atomic_load(&calls[i]);
            UNTIL(&w, atomic_load(&calls[i]) > before);
        }
        const pid_t child = fork_checked();
        if (child == 0) {
            CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
            use_own_client(harness_mode());
            _exit(0);
        }
        until_ended_with(&w, child, 0);
    }
    atomic_store(&is_enough, true);
    UNTIL(&w, atomic_load(&threads_ended) == THREADS); /* what one of them waits for may need this one's turns */
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    world_settle(&w);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------ in a handler ------ */

static world handlers_world;
static atomic_int forked_child, child_returns;

static void fork_once(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    if (atomic_load(&forked_child) != 0) {
        return;
    }
    const pid_t child = fork_checked();
    if (child == 0) {
        int32_t state;
        CHECK_STATUS(bird_client_state(handlers_world.client, &state), BIRD_ERR_FORKED);
        if (atomic_load(&child_returns)) {
            return;
        }
        use_own_client(handlers_world.delivery);
        CHECK_STATUS(bird_client_destroy(handlers_world.client), BIRD_OK);
        use_own_client(handlers_world.delivery);
        _exit(0);
    }
    atomic_store(&forked_child, child);
}

static void fork_in_handler(bool returns) {
    world *w = &handlers_world;
    *w = world_open(harness_mode());
    atomic_store(&child_returns, returns);
    world_connect(w);
    world_stream(w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w->control, "number", fork_once, NULL, NULL, &binding, NULL), BIRD_OK);
    const pid_t parent = getpid();
    while (atomic_load(&forked_child) == 0) {
        if (w->queue == NULL && w->loop == NULL) {
            world_turn(w);
            continue;
        }
        size_t count;
        const bird_status status =
            w->queue != NULL ? bird_queue_dispatch(w->queue, 0, &count) : bird_loop_run_once(w->loop, 5);
        if (getpid() != parent) { /* the child, in which the handler has returned */
            CHECK_STATUS(status, BIRD_ERR_FORKED);
            use_own_client(w->delivery);
            exit(0);
        }
        CHECK_STATUS(status, BIRD_OK);
    }
    until_ended_with(w, atomic_load(&forked_child), 0);
    const int64_t streamed = world_streamed();
    UNTIL(w, world_streamed() > streamed + 1000);
    world_end_stream(w);
    world_close(w);
}

MODE_CASE(fork_in_a_handler) {
    fork_in_handler(false);
}

/* The thread of the handler is the child's only one: when it is the library's, it ends, and the child with it. */
MODE_CASE(child_returns_from_the_handler_that_forked) {
    fork_in_handler(true);
}

/* ------------------------------------------------------------------------------------------------------- exec ------ */

/* Run by the programs below; FDS: how many files the parent had open before it used the library. */
LOAD_CASE(program_has_inherited_no_files) {
    CHECK_INT(count_fds(), atoi(harness_argument(0)));
}

MODE_CASE(exec_inherits_no_files) {
    char fds[16];
    snprintf(fds, sizeof fds, "%d", count_fds());
    char program[] = "/proc/self/exe", name[] = "program_has_inherited_no_files";
    char *arguments[] = {program, name, fds, NULL};
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork_checked();
        if (child == 0) {
            execv(program, arguments);
            _exit(1);
        }
        until_ended_with(&w, child, 0);
        child = vfork();
        if (child == 0) {
            execv(program, arguments);
            _exit(1);
        }
        until_ended_with(&w, child, 0);
        CHECK_INT(posix_spawn(&child, program, NULL, NULL, arguments, environ), 0);
        until_ended_with(&w, child, 0);
        CHECK_INT(system(NULL) != 0 ? system("exit 0") : 0, 0);
    }
    world_end_stream(&w);
    world_close(&w);
}
