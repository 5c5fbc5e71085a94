/* Handlers that change what they belong to, and threads that share one client. cases_threads.c has the thread table. */
#include "harness.h"

#include <pthread.h>

static void nothing(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
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
