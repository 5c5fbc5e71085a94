/* Section queue of the header. */
#include "harness.h"

#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

static bird_queue *new_queue(void) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    return queue;
}

static int queue_fd(bird_queue *queue) {
    int32_t fd = -1;
    CHECK_STATUS(bird_queue_fd(queue, &fd), BIRD_OK);
    CHECK(fd >= 0);
    return fd;
}

static bool is_readable(int fd, int timeout_ms) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    const int count = poll(&entry, 1, timeout_ms);
    CHECK(count >= 0 && (entry.revents & (POLLERR | POLLHUP | POLLNVAL)) == 0);
    return count == 1;
}

/* Drains until nothing waits; gives the number of records. */
static size_t drain_all(bird_queue *queue) {
    size_t total = 0;
    for (;;) {
        bird_batch *batch = NULL;
        const bird_record *records = NULL;
        size_t count = 0, stride = 0;
        CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &count, &stride), BIRD_OK);
        if (count == 0) {
            CHECK(batch == NULL);
            return total;
        }
        CHECK(batch != NULL && records != NULL);
        CHECK(stride >= sizeof(bird_record) && stride % _Alignof(bird_record) == 0);
        for (size_t i = 0; i < count; i++) {
            const bird_record *record = (const void *)((const char *)records + i * stride);
            CHECK(record->kind >= 1 && record->struct_size <= stride);
            CHECK(record->client == records->client);
        }
        total += count;
        CHECK_STATUS(bird_batch_release(batch), BIRD_OK);
        CHECK_STATUS(bird_batch_release(batch), BIRD_ERR_HANDLE);
    }
}

CASE(queue_of_nobody_is_quiet) {
    bird_queue *queue = new_queue();
    CHECK(!is_readable(queue_fd(queue), 0));
    CHECK_INT(queue_fd(queue), queue_fd(queue));
    CHECK_INT(drain_all(queue), 0);
    size_t count = 9;
    CHECK_STATUS(bird_queue_dispatch(queue, 0, &count), BIRD_OK);
    CHECK_INT(count, 0);
    CHECK_STATUS(bird_queue_wait(queue, 0), BIRD_ERR_TIMEOUT);
    const int64_t start = now_ms();
    CHECK_STATUS(bird_queue_wait(queue, 50), BIRD_ERR_TIMEOUT);
    CHECK(now_ms() - start >= 49);
    CHECK_STATUS(bird_queue_wake(queue), BIRD_OK); /* ends the next wait */
    CHECK_STATUS(bird_queue_wait(queue, DEADLINE_MS), BIRD_ERR_WOKEN);
    CHECK(now_ms() - start < DEADLINE_MS);
    CHECK_STATUS(bird_queue_wait(queue, 0), BIRD_ERR_TIMEOUT);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

static void *wake(void *queue) {
    CHECK_STATUS(bird_queue_wake(queue), BIRD_OK);
    return NULL;
}

CASE(queue_wake_ends_a_wait) {
    bird_queue *queue = new_queue();
    for (int round = 0; round < 100; round++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, wake, queue) == 0);
        CHECK_STATUS(bird_queue_wait(queue, -1), BIRD_ERR_WOKEN);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

/* A consumer that never finds the queue empty still sees each wake-up, once. */
EDGE_CASE(queue_wake_is_seen_while_records_wait) {
    bird_queue *queue = new_queue();
    bird_client *client = client_from(world_options(BIRD_DELIVERY_QUEUE), queue);
    CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
    CHECK_STATUS(bird_queue_wait(queue, DEADLINE_MS), BIRD_OK);
    for (int round = 0; round < 3; round++) {
        CHECK_STATUS(bird_queue_wake(queue), BIRD_OK);
        CHECK_STATUS(bird_queue_wait(queue, DEADLINE_MS), BIRD_ERR_WOKEN);
        CHECK_STATUS(bird_queue_wait(queue, DEADLINE_MS), BIRD_OK);
    }
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

EDGE_CASE(queue_fd_works_with_poll_and_epoll) {
    bird_queue *queue = new_queue();
    const int fd = queue_fd(queue);
    bird_client *client = client_from(world_options(BIRD_DELIVERY_QUEUE), queue);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event level = {.events = EPOLLIN, .data.fd = fd};
    CHECK(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &level) == 0);

    CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
    size_t records = 0;
    while (client_state(client) != BIRD_STATE_CONNECTED || records < 2) { /* two changes of state */
        CHECK(is_readable(fd, DEADLINE_MS));
        struct epoll_event event;
        CHECK(epoll_wait(epoll, &event, 1, DEADLINE_MS) == 1);
        records += drain_all(queue);
    }
    /* It may be readable once too often, not for ever. */
    const int64_t end = now_ms() + DEADLINE_MS;
    while (is_readable(fd, 0)) {
        CHECK(now_ms() < end);
        drain_all(queue);
    }

    /* Edge-triggered too: news after an empty drain is a new edge. */
    struct epoll_event edge = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &edge) == 0);
    for (int round = 0; round < 20; round++) {
        struct epoll_event event;
        while (epoll_wait(epoll, &event, 1, 0) == 1) {
            drain_all(queue);
        }
        CHECK_STATUS(round % 2 == 0 ? bird_client_disconnect(client) : bird_client_connect(client, NULL), BIRD_OK);
        /* An edge without a record may be that of one which was drained before. */
        do {
            CHECK(epoll_wait(epoll, &event, 1, DEADLINE_MS) == 1);
        } while (drain_all(queue) == 0);
    }
    close(epoll);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

/* A wait may also end for a destructor that has to run, and then there is no record. */
static const bird_record *wait_for_one(bird_queue *queue, bird_batch **batch) {
    const bird_record *records = NULL;
    const int64_t end = now_ms() + DEADLINE_MS;
    size_t count = 0, stride;
    while (count == 0) {
        CHECK(now_ms() < end);
        CHECK_STATUS(bird_queue_wait(queue, DEADLINE_MS), BIRD_OK);
        CHECK_STATUS(bird_queue_drain(queue, batch, &records, &count, &stride), BIRD_OK);
    }
    CHECK_INT(count, 1);
    return records;
}

EDGE_CASE(queue_batches_are_held_side_by_side) {
    world w = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&w);
    world_settle(&w);
    CHECK_STATUS(bird_channel_set_tag(w.control, 77), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "\"first\"");
    bird_batch *first = NULL, *second = NULL;
    const bird_record *first_records = wait_for_one(w.queue, &first);
    world_emit_event(&w, "private-control", "tick", "\"second\"");
    const bird_record *second_records = wait_for_one(w.queue, &second);
    CHECK(first != second);
    CHECK_TEXT(first_records->data, "first");
    CHECK_TEXT(second_records->data, "second");
    CHECK_INT(second_records->channel_tag, 77);

    /* A held batch outlives its client, and keeps the queue. */
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
    CHECK_TEXT(first_records->data, "first");
    CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_batch_release(second), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_batch_release(first), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
}

static void see_client(const bird_record *record, void *user_data) {
    (void)user_data;
    journal_add("%llu", (unsigned long long)record->client_tag);
}

EDGE_CASE(queue_serves_several_clients) {
    enum { CLIENTS = 8 };
    bird_queue *queue = new_queue();
    bird_client *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        bird_options *options = world_options(BIRD_DELIVERY_QUEUE);
        CHECK_STATUS(bird_options_set_tag(options, (uint64_t)i), BIRD_OK);
        clients[i] = client_from(options, queue);
        uint64_t binding;
        CHECK_STATUS(
            bird_client_bind(clients[i], "bird:subscription_succeeded", see_client, NULL, NULL, &binding, NULL),
            BIRD_OK);
        bird_channel *channel = NULL;
        CHECK_STATUS(bird_client_subscribe(clients[i], "orders", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_connect(clients[i], NULL), BIRD_OK);
    }
    world w = {.delivery = BIRD_DELIVERY_QUEUE, .queue = queue};
    UNTIL(&w, journal_count() == CLIENTS);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_ERR_BUSY);
    for (int i = 0; i < CLIENTS; i++) {
        bool is_there = false;
        char tag[8];
        snprintf(tag, sizeof tag, "%d", i);
        for (int entry = 0; entry < CLIENTS; entry++) {
            is_there = is_there || strcmp(journal_entry(entry), tag) == 0;
        }
        CHECK(is_there);
        CHECK_STATUS(bird_client_destroy(clients[i]), BIRD_OK);
    }
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

EDGE_CASE(queue_dispatch_takes_about_as_many_as_asked) {
    enum { EVENTS = 500 };
    world w = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&w);
    world_settle(&w);
    for (int i = 0; i < EVENTS; i++) {
        world_emit_event(&w, "private-control", "tick", "1");
    }
    bird_statistics statistics = {.struct_size = sizeof statistics};
    const int64_t end = now_ms() + DEADLINE_MS;
    do {
        CHECK(now_ms() < end);
        CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    } while (statistics.queue_records < EVENTS);
    CHECK(statistics.queue_bytes > 0);
    size_t count = 0, total = 0;
    CHECK_STATUS(bird_queue_dispatch(w.queue, 10, &count), BIRD_OK);
    CHECK(count >= 1 && count < EVENTS);
    total = count;
    CHECK_STATUS(bird_queue_dispatch(w.queue, 0, &count), BIRD_OK);
    CHECK_INT(total + count, EVENTS);
    CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    CHECK_INT(statistics.queue_records, 0);
    CHECK_INT(statistics.queue_bytes, 0);
    world_close(&w);
}

typedef struct gate {
    bird_queue *queue;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_inside, may_leave;
} gate;

static void stand_in_the_gate(const bird_record *record, void *user_data) {
    (void)record;
    gate *g = user_data;
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count, stride;
    CHECK_STATUS(bird_queue_drain(g->queue, &batch, &records, &count, &stride), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_queue_dispatch(g->queue, 0, &count), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_queue_destroy(g->queue), BIRD_ERR_BUSY);
    pthread_mutex_lock(&g->lock);
    g->is_inside = true;
    pthread_cond_signal(&g->changed);
    while (!g->may_leave) {
        pthread_cond_wait(&g->changed, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}

static void *dispatch_into_the_gate(void *argument) {
    gate *g = argument;
    size_t count;
    const int64_t end = now_ms() + DEADLINE_MS;
    for (bool is_done = false; !is_done;) {
        CHECK(now_ms() < end);
        CHECK_STATUS(bird_queue_wait(g->queue, DEADLINE_MS), BIRD_OK);
        CHECK_STATUS(bird_queue_dispatch(g->queue, 0, &count), BIRD_OK);
        pthread_mutex_lock(&g->lock);
        is_done = g->is_inside;
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

EDGE_CASE(queue_in_use_by_another_thread_is_busy) {
    world w = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&w);
    world_settle(&w);
    gate g = {.queue = w.queue, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "gate", stand_in_the_gate, &g, NULL, &binding, NULL), BIRD_OK);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, dispatch_into_the_gate, &g) == 0);
    world_emit_event(&w, "private-control", "gate", "1");
    pthread_mutex_lock(&g.lock);
    while (!g.is_inside) {
        pthread_cond_wait(&g.changed, &g.lock);
    }
    pthread_mutex_unlock(&g.lock);

    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count, stride;
    CHECK_STATUS(bird_queue_drain(w.queue, &batch, &records, &count, &stride), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_queue_dispatch(w.queue, 0, &count), BIRD_ERR_BUSY);
    /* An unbind does not wait for the call that is running. */
    CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);

    pthread_mutex_lock(&g.lock);
    g.may_leave = true;
    pthread_cond_signal(&g.changed);
    pthread_mutex_unlock(&g.lock);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(bird_queue_dispatch(w.queue, 0, &count), BIRD_OK);
    world_close(&w);
}

/* Destroy waits for a handler that is running on another thread. */
typedef struct destroyer {
    bird_client *client;
    atomic_bool is_done;
} destroyer;

static void *destroy_client(void *argument) {
    destroyer *d = argument;
    CHECK_STATUS(bird_client_destroy(d->client), BIRD_OK);
    atomic_store(&d->is_done, true);
    return NULL;
}

static destroyer waiting_destroyer;

static void destroyer_has_to_wait(const bird_record *record, void *user_data) {
    pthread_t *thread = user_data;
    waiting_destroyer.client = record->client;
    CHECK(pthread_create(thread, NULL, destroy_client, &waiting_destroyer) == 0);
    /* From here on the client is as good as gone; the thread cannot be done as long as we are here. */
    const int64_t end = now_ms() + DEADLINE_MS;
    int32_t state;
    while (bird_client_state(record->client, &state) == BIRD_OK) {
        CHECK(now_ms() < end);
    }
    CHECK(!atomic_load(&waiting_destroyer.is_done));
    CHECK_TEXT(record->data, "still here");
    journal_add("handler-ends");
}

MODE_CASE(destroy_waits_for_the_running_handler) {
    world w = world_open(harness_mode());
    world_connect(&w);
    pthread_t thread;
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", destroyer_has_to_wait, &thread, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "\"still here\"");
    UNTIL(&w, journal_count() == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(atomic_load(&waiting_destroyer.is_done));
    if (w.queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
    }
}
