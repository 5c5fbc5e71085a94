/* Handlers that are bound when what they are for has been delivered already. */
#include "harness.h"

#define SUCCEEDED "bird:subscription_succeeded"
#define FAILED "bird:subscription_error"

static uint64_t bind_note(bird_channel *channel, const char *event, const char *note) {
    uint64_t binding = 0;
    CHECK_STATUS(bird_channel_bind(channel, event, note_handler, (void *)note, note_destructor, &binding, NULL),
                 BIRD_OK);
    return binding;
}

/* The edge sends both frames in one write. */
static void emit_both(world *w, const char *first, const char *second) {
    char json[1024];
    const int length = snprintf(json, sizeof json, "[\"%s\",\"%s\"]", first, second);
    CHECK(length > 0 && (size_t)length < sizeof json);
    CHECK_STATUS(bird_channel_trigger(w->control, "client-emit", json, (size_t)length, NULL), BIRD_OK);
}

#define EVENT(channel, event) "{\\\"event\\\":\\\"" event "\\\",\\\"channel\\\":\\\"" channel "\\\"}"

/* AUTH-18. Every channel is bound a moment after subscribe: its success comes before that, in between or after it, and is told once. */
static void count_call(const bird_record *record, void *user_data) {
    CHECK_INT(record->kind, BIRD_RECORD_SUBSCRIBED);
    CHECK(((const bird_subscription *)record->detail)->struct_size > 0);
    atomic_fetch_add((atomic_int *)user_data, 1);
}

MODE_CASE(a_success_is_told_once_whenever_its_handler_is_bound) {
    enum { CHANNELS = 300 };
    static atomic_int calls[CHANNELS];
    static bird_channel *channels[CHANNELS];
    world w = world_open(harness_mode());
    world_connect(&w);
    for (int i = 0; i < CHANNELS; i++) {
        char name[32];
        snprintf(name, sizeof name, "race-%d", i);
        CHECK_STATUS(bird_client_subscribe(w.client, name, 0, &channels[i], NULL), BIRD_OK);
        /* The state says so a moment before the delivery does. */
        const int64_t end = now_ms() + DEADLINE_MS;
        while (i % 2 != 0 && channel_state(channels[i]) != BIRD_CHANNEL_SUBSCRIBED) {
            CHECK(now_ms() < end);
            if (w.queue != NULL || w.loop != NULL) {
                world_turn(&w);
            }
        }
        for (volatile int pause = 0; pause < 100 * i; pause++) { /* now sooner, now later */
        }
        CHECK_STATUS(bird_channel_bind(channels[i], SUCCEEDED, count_call, &calls[i], NULL, NULL, NULL), BIRD_OK);
    }
    for (int i = 0; i < CHANNELS; i++) {
        UNTIL(&w, atomic_load(&calls[i]) > 0);
    }
    world_settle(&w);
    for (int i = 0; i < CHANNELS; i++) {
        CHECK_INT(atomic_load(&calls[i]), 1);
    }
    world_close(&w);
}

static void see_success(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *detail = record->detail;
    journal_add("%s:%s:%s:%u:%s:%d:%llu", record->channel_name, record->event, record->data, detail->member_count,
                detail->my_id, detail->is_resubscribe, (unsigned long long)record->channel_tag);
}

MODE_CASE(the_late_record_is_the_one_that_was_missed) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *room = world_join(&w, "presence-room");
    CHECK_STATUS(bird_channel_set_tag(room, 7), BIRD_OK);
    world_emit_event(&w, "presence-room", "bird_internal:member_added", "{\"member_id\":\"m_2\"}");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(room, SUCCEEDED, see_success, NULL, NULL, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0),
               "presence-room:" SUCCEEDED ":{\"presence\":{\"ids\":[\"m_1\"],\"hash\":{\"m_1\":{\"name\":\"Noor\"}},"
               "\"count\":1}}:1:m_1:0:7");
    size_t count = 0;
    CHECK_STATUS(bird_channel_member_count(room, &count), BIRD_OK);
    CHECK_INT(count, 2); /* telling it again changes no roster */
    journal_clear();
    world_drop(&w);
    UNTIL(&w, journal_count() == 1);
    CHECK(strstr(journal_entry(0), ":m_1:1:7") != NULL);
    world_close(&w);
}

static void bind_late_pair(const bird_record *record, void *user_data) {
    (void)record;
    bind_note(user_data, "tick", "tick");
    bind_note(user_data, SUCCEEDED, "succeeded");
    bind_note(user_data, FAILED, "failed");
    bind_note(user_data, NULL, "all");
    journal_add("bound");
}

/* A success precedes the channel's events, for a late handler too, even if they are in the same read. */
MODE_CASE(what_is_told_late_comes_before_later_events) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(w.control, "go", bind_late_pair, orders, NULL, NULL, NULL), BIRD_OK);
    emit_both(&w, EVENT("private-control", "go"), EVENT("orders", "tick"));
    UNTIL(&w, journal_count() >= 4);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "bound succeeded tick all");
    world_close(&w);
}

static void bind_and_unbind(const bird_record *record, void *user_data) {
    bird_channel *channel = user_data;
    CHECK_STATUS(bird_client_unbind(record->client, bind_note(channel, SUCCEEDED, "a")), BIRD_OK);
    bind_note(channel, SUCCEEDED, "b");
    CHECK_STATUS(bird_channel_unbind_event(channel, SUCCEEDED), BIRD_OK);
    journal_add("done");
}

MODE_CASE(who_is_unbound_in_time_is_told_nothing_late) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(w.control, "go", bind_and_unbind, orders, NULL, NULL, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "go", "1");
    UNTIL(&w, journal_count() >= 3);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "done ~a ~b");
    world_close(&w);
}

MODE_CASE(a_failure_stands_until_the_program_asks_anew) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders"), *again = NULL;
    bind_note(orders, FAILED, "early");
    world_emit_event(&w, "orders", "bird_internal:subscription_error", "{\"error\":\"full\"}");
    UNTIL(&w, journal_count() == 1);
    bind_note(orders, SUCCEEDED, "succeeded");
    bind_note(orders, FAILED, "late");
    UNTIL(&w, journal_count() == 2);
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 0, &again, NULL), BIRD_OK);
    CHECK(again == orders);
    bind_note(orders, FAILED, "too late");
    UNTIL(&w, journal_count() == 3);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "early late succeeded");
    world_close(&w);
}

static void note_state(const bird_record *record, void *user_data) {
    (void)user_data;
    journal_add("%s", bird_state_name(((const bird_state_change *)record->detail)->current));
}

MODE_CASE(nothing_stands_without_a_connection) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_STATE, note_state, NULL, NULL, NULL, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    bind_note(orders, SUCCEEDED, "succeeded");
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED && journal_count() == 4);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "disconnected connecting connected succeeded");
    world_close(&w);
}

/* What stands is kept with its channel, and goes with it. */
EDGE_CASE(what_stands_keeps_no_channel) {
    enum { ROUNDS = 1500, WARM_UP = 300 };
    long memory = 0;
    world w = world_open(BIRD_DELIVERY_LOOP);
    world_connect(&w);
    for (int round = 0; round < ROUNDS; round++) {
        bird_channel *room = world_join(&w, "presence-room");
        CHECK_STATUS(bird_channel_unsubscribe(room), BIRD_OK);
        bird_channel_release(room);
        memory = round == WARM_UP ? resident_kib() : memory;
    }
    CHECK(resident_kib() - memory < 768);
    printf("memory %+ld KiB over %d rounds\n", resident_kib() - memory, ROUNDS - WARM_UP);
    world_close(&w);
}

static void destroy_client(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_STATUS(bird_client_destroy(record->client), BIRD_OK);
    journal_add("destroyed");
}

MODE_CASE(a_late_handler_may_destroy_its_client) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(orders, SUCCEEDED, destroy_client, "x", note_destructor, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_text(), "destroyed ~x");
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_ERR_HANDLE);
    if (w.queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
    }
}

/* A handler for every channel, and an observer of successes, get what comes. */
MODE_CASE(only_handlers_of_the_channel_are_told_late) {
    world w = world_open(harness_mode());
    world_connect(&w);
    world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_client_bind(w.client, SUCCEEDED, note_handler, "client", NULL, NULL, NULL), BIRD_OK);
    CHECK_STATUS(
        bird_client_observe(w.client, 1u << BIRD_RECORD_SUBSCRIBED, note_handler, "observer", NULL, NULL, NULL),
        BIRD_OK);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "");
    world_close(&w);
}
