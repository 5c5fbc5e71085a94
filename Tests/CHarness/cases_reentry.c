/* Every function may be called from every callback; the thread table of the header says what some give there. */
#include "harness.h"

#include <pthread.h>

static void nothing(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

static void call_everything(const bird_record *record, void *user_data) {
    world *w = user_data;
    bird_client *client = record->client;
    bird_channel *channel = record->channel, *other = NULL;
    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_queue *queue = NULL;
    bird_client *second = NULL;
    bird_members *members = NULL;
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    char buffer[200];
    size_t length, count, stride;
    int32_t number;
    uint32_t event_id;
    uint64_t binding;
    bird_statistics statistics = {.struct_size = sizeof statistics};

    CHECK_INT(bird_version_number(), BIRD_VERSION_NUMBER);
    CHECK_STATUS(bird_client_wait(client, BIRD_STATE_CONNECTED, 0), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_flush(client, 0), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_close(client, 0), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_connect(client, &error), BIRD_OK);
    CHECK_INT(client_state(client), BIRD_STATE_CONNECTED);
    CHECK_STATUS(bird_client_connection_id(client, buffer, sizeof buffer, &length), BIRD_OK);
    CHECK_STATUS(bird_client_member_id(client, buffer, sizeof buffer, &length), BIRD_OK);
    CHECK_STATUS(bird_client_subscribe(client, "made-inside", 3, &other, &error), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(other, "tick", nothing, NULL, NULL, &binding, &error), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(client, binding), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(other), BIRD_OK);
    bird_channel_release(other);
    CHECK_STATUS(bird_client_member_channel(client, &other), BIRD_OK);
    bird_channel_release(other);
    CHECK_STATUS(bird_client_signin(client, 0, 0, &error), BIRD_OK);
    CHECK_STATUS(bird_client_bind(client, "tick", nothing, NULL, NULL, &binding, &error), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(client, binding), BIRD_OK);
    CHECK_STATUS(bird_client_observe(client, 1, nothing, NULL, NULL, &binding, &error), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(client, binding), BIRD_OK);
    CHECK_STATUS(bird_client_intern(client, "inside", &event_id, &error), BIRD_OK);
    CHECK_STATUS(bird_client_statistics(client, &statistics), BIRD_OK);
    CHECK_STATUS(bird_channel_trigger(channel, "client-noted", record->data, record->data_length, &error), BIRD_OK);
    CHECK_INT(channel_state(channel), BIRD_CHANNEL_SUBSCRIBED);
    CHECK_STATUS(bird_channel_kind(channel, &number), BIRD_OK);
    CHECK_STATUS(bird_channel_name(channel, buffer, sizeof buffer, &length), BIRD_OK);
    CHECK_STATUS(bird_channel_set_tag(channel, 9), BIRD_OK);
    CHECK_STATUS(bird_channel_my_id(channel, buffer, sizeof buffer, &length), BIRD_OK);
    CHECK_STATUS(bird_channel_member_count(channel, &count), BIRD_OK);
    CHECK_STATUS(bird_channel_members(channel, &members), BIRD_OK);
    CHECK_INT(bird_members_count(members), count);
    bird_members_free(members);
    CHECK_INT(bird_data_is_json(record->data, record->data_length), 1);

    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    CHECK_STATUS(bird_options_set(options, "app_key", "pk_inside", &error), BIRD_OK);
    CHECK_STATUS(bird_options_set(options, "region", "eu1", &error), BIRD_OK);
    CHECK_STATUS(bird_options_set_int(options, "pong_timeout_ms", 5, &error), BIRD_OK);
    CHECK_STATUS(bird_options_set_auth_header(options, "X-A", "b", &error), BIRD_OK);
    CHECK_STATUS(bird_options_set_tag(options, 1), BIRD_OK);
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    CHECK_STATUS(bird_options_set_queue(options, queue), BIRD_OK);
    CHECK_STATUS(bird_client_create(options, &second, &error), BIRD_OK);
    CHECK_STATUS(bird_client_wait(second, BIRD_STATE_CONNECTED, 0), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_queue_fd(queue, &number), BIRD_OK);
    CHECK_STATUS(bird_queue_wake(queue), BIRD_OK);
    CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &count, &stride), BIRD_OK);
    CHECK_STATUS(bird_queue_dispatch(queue, 0, &count), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(second), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    bird_options_destroy(options);
    CHECK(error == NULL);

    if (w->queue != NULL) {
        CHECK_STATUS(bird_queue_drain(w->queue, &batch, &records, &count, &stride), BIRD_ERR_BUSY);
        CHECK_STATUS(bird_queue_dispatch(w->queue, 0, &count), BIRD_ERR_BUSY);
        CHECK_STATUS(bird_queue_fd(w->queue, &number), BIRD_OK);
        CHECK_STATUS(bird_queue_destroy(w->queue), BIRD_ERR_BUSY);
    }
    CHECK_TEXT(record->data, "{\"n\":1}");
    journal_add("all");
}

MODE_CASE(every_function_works_inside_a_handler) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *room = world_join(&w, "presence-room");
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(room, "tick", call_everything, &w, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "presence-room", "tick", "\"{\\\"n\\\":1}\"");
    UNTIL(&w, journal_count() == 1);
    world_settle(&w);
    world_close(&w);
}

static void reconnect(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_STATUS(bird_client_disconnect(record->client), BIRD_OK);
    CHECK_STATUS(bird_client_connect(record->client, NULL), BIRD_OK);
    journal_add("reconnected");
}

MODE_CASE(handler_disconnects_and_connects) {
    world w = world_open(harness_mode());
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", reconnect, NULL, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "1");
    bird_statistics statistics = {.struct_size = sizeof statistics};
    UNTIL(&w, bird_client_statistics(w.client, &statistics) == BIRD_OK && statistics.connects == 2);
    UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "reconnected");
    world_close(&w);
}

static void unsubscribe_own_channel(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_STATUS(bird_channel_unsubscribe(record->channel), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(record->channel), BIRD_ERR_UNSUBSCRIBED);
    journal_add("left");
}

MODE_CASE(handler_unsubscribes_its_channel) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(orders, "tick", unsubscribe_own_channel, NULL, NULL, &binding, NULL), BIRD_OK);
    world_emit(&w, "{\"event\":\"tick\",\"channel\":\"orders\"}");
    world_emit(&w, "{\"event\":\"tick\",\"channel\":\"orders\"}");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "left");
    world_close(&w);
}

/* Eight threads use one client while the edge drops it; what they get may vary, but nothing hangs or crashes. */
static atomic_bool storm_is_over;

static void *storm(void *argument) {
    world *w = argument;
    while (!atomic_load(&storm_is_over)) {
        bird_channel *channel = NULL;
        uint64_t binding;
        bird_status status = bird_client_subscribe(w->client, "storm", 0, &channel, NULL);
        if (status == BIRD_ERR_FULL) { /* the storm is faster than the reactor */
            continue;
        }
        CHECK_STATUS(status, BIRD_OK);
        if (bird_channel_bind(channel, "tick", nothing, NULL, NULL, &binding, NULL) == BIRD_OK) {
            bird_client_unbind(w->client, binding);
        }
        status = bird_channel_unsubscribe(channel);
        CHECK(status == BIRD_OK || status == BIRD_ERR_UNSUBSCRIBED || status == BIRD_ERR_FULL);
        bird_channel_release(channel);
        bird_channel_trigger(w->control, "client-noted", "1", 1, NULL);
        CHECK(client_state(w->client) >= BIRD_STATE_CONNECTING);
        status = bird_client_flush(w->client, 100); /* the edge is to keep up */
        CHECK(status == BIRD_OK || status == BIRD_ERR_TIMEOUT);
    }
    return NULL;
}

MODE_CASE(many_threads_share_one_client) {
    enum { THREADS = 8, DROPS = 5 };
    world w = world_open(harness_mode());
    world_connect(&w);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, storm, &w) == 0);
    }
    bird_statistics statistics = {.struct_size = sizeof statistics};
    for (uint64_t drops = 1; drops <= DROPS; drops++) {
        UNTIL(&w, bird_channel_trigger(w.control, "client-drop", NULL, 0, NULL) == BIRD_OK);
        UNTIL(&w, bird_client_statistics(w.client, &statistics) == BIRD_OK && statistics.connects > drops);
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    }
    atomic_store(&storm_is_over, true);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    world_settle(&w);
    world_close(&w);
}
