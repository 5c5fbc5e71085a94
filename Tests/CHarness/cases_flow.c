/* Programs that do not keep up; see SLOW PROGRAMS in the header. */
#include "harness.h"

#include <sys/resource.h>

enum { BOUND = 50, CLIENTS = 4 };

static bird_statistics statistics_of(bird_client *client) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(client, &statistics), BIRD_OK);
    return statistics;
}

/* The edge sends this many numbered events in one write, from `first` on; returns when the client has read them. */
static void emit_numbers(world *w, int first, int count) {
    static char json[64 * 1024];
    size_t length = 0;
    for (int i = first; i < first + count; i++) {
        length += (size_t)snprintf(json + length, sizeof json - length,
                                   "%s\"{\\\"event\\\":\\\"number\\\",\\\"channel\\\":\\\"private-control\\\","
                                   "\\\"data\\\":%d}\"",
                                   i == first ? "[" : ",", i);
        CHECK(length + 2 < sizeof json);
    }
    json[length++] = ']';
    /* Events are counted at the end of a round of the reactor, for which a flush waits. */
    CHECK_STATUS(bird_client_flush(w->client, DEADLINE_MS), BIRD_OK);
    const uint64_t before = statistics_of(w->client).events_delivered;
    CHECK_STATUS(bird_channel_trigger(w->control, "client-emit", json, length, NULL), BIRD_OK);
    const int64_t end = now_ms() + DEADLINE_MS;
    while (statistics_of(w->client).events_delivered < before + (uint64_t)count) {
        CHECK(now_ms() < end);
    }
}

typedef struct tally {
    int numbers, first, last;
    int notices;
} tally;

/* Drains what waits into the tally of each client's tag, until nothing is left, and releases it. */
static void drain_into(bird_queue *queue, tally *tallies) {
    for (;;) {
        bird_batch *batch = NULL;
        const bird_record *records = NULL;
        size_t count = 0, stride = 0;
        CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &count, &stride), BIRD_OK);
        if (count == 0) {
            return;
        }
        for (size_t i = 0; i < count; i++) {
            const bird_record *record = (const void *)((const char *)records + i * stride);
            tally *t = &tallies[record->client_tag];
            if (record->kind == BIRD_RECORD_EVENT) {
                const int number = atoi(record->data);
                CHECK(t->numbers == 0 || number == t->last + 1); /* without a gap between those that are left */
                t->first = t->numbers++ == 0 ? number : t->first;
                t->last = number;
            } else if (record->kind == BIRD_RECORD_ERROR) {
                const bird_error *error = ((const bird_failure *)record->detail)->error;
                CHECK_STATUS(bird_error_status(error), BIRD_ERR_FULL);
                CHECK_INT(bird_error_area(error), BIRD_AREA_CONNECTION);
                CHECK_TEXT(bird_error_field(error), "overflow");
                t->notices++;
            }
        }
        CHECK_STATUS(bird_batch_release(batch), BIRD_OK);
    }
}

static bird_client *client_on(bird_queue *queue, uint64_t tag, const char *overflow) {
    bird_options *options = world_options(BIRD_DELIVERY_QUEUE);
    char bound[16];
    snprintf(bound, sizeof bound, "%d", BOUND);
    set_option(options, "overflow", overflow);
    set_option(options, "queue_records_max", bound);
    set_option(options, "client_event_bytes_max", "65536"); /* for what the edge is asked to send */
    CHECK_STATUS(bird_options_set_tag(options, tag), BIRD_OK);
    bird_client *client = client_from(options, queue);
    world_grant_requests(client);
    return client;
}

EDGE_CASE(overflow_of_one_client_leaves_the_others_of_its_queue_alone) {
    static const char *const policies[CLIENTS] = {"drop-oldest", "drop-newest", "pause", "drop-oldest"};
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    world worlds[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        worlds[i] = (world){.delivery = BIRD_DELIVERY_QUEUE, .queue = queue};
        worlds[i].client = client_on(queue, (uint64_t)i, policies[i]);
        world_connect(&worlds[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        world_settle(&worlds[i]);
    }
    /* The last two stay within their bounds, the others get far more, in turns. */
    for (int round = 0; round < 20; round++) {
        emit_numbers(&worlds[0], round * 100, 100);
        emit_numbers(&worlds[1], round * 100, 100);
        emit_numbers(&worlds[2], round * 2, 2);
        emit_numbers(&worlds[3], round * 2, 2);
    }
    CHECK_INT(statistics_of(worlds[0].client).queue_records, BOUND);
    tally tallies[CLIENTS] = {0};
    drain_into(queue, tallies);
    CHECK_INT(tallies[0].first, 2000 - BOUND + 1); /* the notice has a place too */
    CHECK_INT(tallies[0].last, 1999);
    CHECK_INT(tallies[1].first, 0);
    CHECK_INT(tallies[1].last, BOUND - 1);
    CHECK(tallies[0].notices == 1 && tallies[1].notices == 1);
    for (int i = 0; i < CLIENTS; i++) {
        const bird_statistics statistics = statistics_of(worlds[i].client);
        CHECK_INT(statistics.events_dropped, i < 2 ? 2000 - tallies[i].numbers : 0);
        CHECK_INT(statistics.queue_records, 0);
        CHECK_INT(statistics.queue_bytes, 0);
        CHECK_INT(statistics.read_pauses, 0);
        if (i >= 2) {
            CHECK_INT(tallies[i].numbers, 40);
            CHECK_INT(tallies[i].notices, 0);
        }
        CHECK_STATUS(bird_client_destroy(worlds[i].client), BIRD_OK);
    }
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

/* A client that has more than it can hold does not keep the consumer from the others. */
EDGE_CASE(clients_of_a_queue_take_turns) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    /* With drop-oldest even a few events are several batches. */
    world flooded = {.delivery = BIRD_DELIVERY_QUEUE, .queue = queue, .client = client_on(queue, 0, "drop-oldest")};
    world quiet = {.delivery = BIRD_DELIVERY_QUEUE, .queue = queue, .client = client_on(queue, 1, "pause")};
    world_connect(&flooded);
    world_connect(&quiet);
    world_settle(&flooded);
    world_settle(&quiet);
    emit_numbers(&flooded, 0, BOUND);
    emit_numbers(&quiet, 0, 1);
    const uint64_t turns[] = {0, 1, 0};
    for (int i = 0; i < 3; i++) {
        bird_batch *batch = NULL;
        const bird_record *records = NULL;
        size_t count = 0, stride;
        CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &count, &stride), BIRD_OK);
        CHECK(count > 0 && count < BOUND);
        CHECK_INT(records->client_tag, turns[i]);
        CHECK_STATUS(bird_batch_release(batch), BIRD_OK);
    }
    CHECK_STATUS(bird_client_destroy(flooded.client), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(quiet.client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

/* What the program holds cannot be dropped under its hands: then the new events are. */
EDGE_CASE(drop_oldest_leaves_batches_that_are_held) {
    world w = {.delivery = BIRD_DELIVERY_QUEUE};
    CHECK_STATUS(bird_queue_create(&w.queue), BIRD_OK);
    w.client = client_on(w.queue, 0, "drop-oldest");
    world_connect(&w);
    world_settle(&w);
    emit_numbers(&w, 0, BOUND);
    bird_batch *held[BOUND];
    const bird_record *records[BOUND];
    size_t counts[BOUND], stride = 0;
    int batches = 0;
    for (size_t taken = 0; taken < BOUND; taken += counts[batches++]) {
        CHECK_STATUS(bird_queue_drain(w.queue, &held[batches], &records[batches], &counts[batches], &stride), BIRD_OK);
        CHECK(counts[batches] > 0);
    }
    emit_numbers(&w, BOUND, 100);
    CHECK_INT(statistics_of(w.client).events_dropped, 100);
    tally t = {0};
    drain_into(w.queue, &t);
    CHECK(t.numbers == 0 && t.notices == 1);
    int number = 0;
    for (int i = 0; i < batches; i++) {
        for (size_t at = 0; at < counts[i]; at++) {
            const bird_record *record = (const void *)((const char *)records[i] + at * stride);
            CHECK_INT(atoi(record->data), number++);
        }
        CHECK_STATUS(bird_batch_release(held[i]), BIRD_OK);
    }
    CHECK_INT(statistics_of(w.client).queue_records, 0);
    emit_numbers(&w, 500, 10);
    drain_into(w.queue, &t);
    CHECK(t.numbers == 10 && t.first == 500);
    CHECK_INT(statistics_of(w.client).queue_bytes, 0);
    world_close(&w);
}

static atomic_int in_handler;

static void count_number(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    atomic_fetch_add(&in_handler, 1);
}

/* A dispatch that ends within a batch, a flood, and so on: what is dropped are the oldest of those that were not delivered. */
EDGE_CASE(drop_oldest_between_two_dispatches) {
    world w = {.delivery = BIRD_DELIVERY_QUEUE};
    CHECK_STATUS(bird_queue_create(&w.queue), BIRD_OK);
    w.client = client_on(w.queue, 0, "drop-oldest");
    world_connect(&w);
    world_settle(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "number", count_number, NULL, NULL, &binding, NULL), BIRD_OK);
    int sent = 0;
    for (int round = 0; round < 30; round++) {
        emit_numbers(&w, sent, 70);
        sent += 70;
        size_t count;
        CHECK_STATUS(bird_queue_dispatch(w.queue, 7, &count), BIRD_OK);
        CHECK(count >= 1);
        CHECK(statistics_of(w.client).queue_records <= BOUND + 1);
    }
    size_t count;
    do {
        CHECK_STATUS(bird_queue_dispatch(w.queue, 0, &count), BIRD_OK);
    } while (count > 0);
    const bird_statistics statistics = statistics_of(w.client);
    CHECK_INT(atomic_load(&in_handler) + (int)statistics.events_dropped, sent);
    CHECK_INT(statistics.queue_records, 0);
    CHECK_INT(statistics.queue_bytes, 0);
    world_close(&w);
}

/* LOOP has no queue, and the option no effect. */
EDGE_CASE(overflow_means_nothing_without_a_queue) {
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    set_option(options, "overflow", "drop-newest");
    set_option(options, "queue_records_max", "1");
    set_option(options, "client_event_bytes_max", "65536");
    world w = world_open_with(BIRD_DELIVERY_LOOP, options);
    world_grant_requests(w.client);
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "number", count_number, NULL, NULL, &binding, NULL), BIRD_OK);
    emit_numbers(&w, 0, 500);
    UNTIL(&w, atomic_load(&in_handler) == 500);
    CHECK_INT(statistics_of(w.client).events_dropped, 0);
    world_close(&w);
}

static atomic_int authorized;

static void count_success(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

/* HOST:PORT AUTH_ENDPOINT CLIENTS CHANNELS: each client subscribes so many private channels by POST; ends when all are subscribed. */
LOAD_CASE(many_clients_authorize_side_by_side) {
    const int count = atoi(harness_argument(2)), channels = atoi(harness_argument(3));
    bird_client **clients = calloc((size_t)count, sizeof *clients);
    CHECK(count > 0 && channels > 0 && clients != NULL);
    for (int i = 0; i < count; i++) {
        bird_options *options = world_options(BIRD_DELIVERY_LOOP);
        set_option(options, "authorizer", "0");
        set_option(options, "auth_endpoint", harness_argument(1));
        clients[i] = client_from(options, NULL);
        uint64_t binding;
        CHECK_STATUS(bird_client_bind(clients[i], "bird:subscription_succeeded", count_success, &authorized, NULL,
                                      &binding, NULL),
                     BIRD_OK);
        for (int n = 0; n < channels; n++) {
            char name[32];
            snprintf(name, sizeof name, "private-%d-%d", i, n);
            bird_channel *channel = NULL;
            CHECK_STATUS(bird_client_subscribe(clients[i], name, 0, &channel, NULL), BIRD_OK);
            bird_channel_release(channel);
        }
        CHECK_STATUS(bird_client_connect(clients[i], NULL), BIRD_OK);
    }
    world w = {.delivery = BIRD_DELIVERY_LOOP};
    UNTIL(&w, atomic_load(&authorized) == count * channels);
    for (int i = 0; i < count; i++) {
        CHECK_STATUS(bird_client_destroy(clients[i]), BIRD_OK);
    }
    free(clients);
}

static int64_t cpu_us(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
}

/* What was read and had no room is let go with the connection; it does not keep the reactor from reading on to the end. */
EDGE_CASE(close_while_reading_is_paused_costs_nothing) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    world w = {.delivery = BIRD_DELIVERY_QUEUE, .queue = queue, .client = client_on(queue, 0, "pause")};
    world_connect(&w);
    world_settle(&w);
    char frame[128], json[32 * 1024] = "[";
    for (int i = 0; i < 4 * BOUND; i++) {
        snprintf(frame, sizeof frame,
                 "%s\"{\\\"event\\\":\\\"n\\\",\\\"channel\\\":\\\"private-control\\\",\\\"data\\\":%d}\"",
                 i == 0 ? "" : ",", i);
        CHECK(strlen(json) + strlen(frame) + 2 < sizeof json);
        strcat(json, frame);
    }
    strcat(json, "]");
    CHECK_STATUS(bird_channel_trigger(w.control, "client-emit", json, BIRD_NUL, NULL), BIRD_OK);
    UNTIL(&(world){0}, statistics_of(w.client).read_pauses == 1);
    const int64_t before = cpu_us();
    CHECK_STATUS(bird_client_close(w.client, DEADLINE_MS), BIRD_OK);
    CHECK(cpu_us() - before < 20000 * SLOWNESS); /* and not two seconds of it */
    world_close(&w);
}
