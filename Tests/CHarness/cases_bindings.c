/* Section bindings of the header: order, ids, and the life of user_data. */
#include "harness.h"

static uint64_t bind_channel(bird_channel *channel, const char *event, const char *note) {
    uint64_t binding = 0;
    CHECK_STATUS(bird_channel_bind(channel, event, note_handler, (void *)note, note_destructor, &binding, NULL),
                 BIRD_OK);
    return binding;
}

static uint64_t bind_client(bird_client *client, const char *event, const char *note) {
    uint64_t binding = 0;
    CHECK_STATUS(bird_client_bind(client, event, note_handler, (void *)note, note_destructor, &binding, NULL), BIRD_OK);
    return binding;
}

static uint64_t observe(bird_client *client, uint64_t kinds, const char *note) {
    uint64_t binding = 0;
    CHECK_STATUS(bird_client_observe(client, kinds, note_handler, (void *)note, note_destructor, &binding, NULL),
                 BIRD_OK);
    return binding;
}

/* FEA-05: those of the client hear of every channel. */
MODE_CASE(handlers_run_named_then_channel_then_client) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    observe(w.client, 1u << BIRD_RECORD_EVENT, "observer");
    bind_client(w.client, NULL, "client-all-1");
    bind_client(w.client, "tick", "client-named");
    bind_channel(orders, NULL, "channel-all-1");
    bind_channel(orders, "tick", "named-1");
    bind_channel(orders, "tick", "named-2");
    bind_channel(orders, NULL, "channel-all-2");
    bind_client(w.client, NULL, "client-all-2");
    bind_channel(orders, "tock", "another event");
    bind_channel(w.control, "tick", "another channel");
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() >= 8);
    CHECK_TEXT(journal_text(),
               "named-1 named-2 client-named channel-all-1 channel-all-2 client-all-1 client-all-2 observer");
    world_close(&w);
}

/* A program that was written for the other dialect keeps its handlers; an application's event is nobody else's. */
MODE_CASE(what_is_told_has_the_names_of_both_dialects) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *room = world_join(&w, "presence-room");
    world_settle(&w);
    bind_channel(room, "pusher:subscription_succeeded", "late");
    bind_channel(room, "pusher:member_added", "added");
    bind_channel(room, "bird:member_added", "added-too");
    bind_channel(room, "pusher:subscription_count", "count");
    bind_channel(room, "pusher:cache_miss", "miss");
    bind_client(w.client, "pusher:moved", "another event");
    uint32_t names[2] = {0, 0};
    CHECK_STATUS(bird_client_intern(w.client, "bird:connection_count", &names[0], NULL), BIRD_OK);
    CHECK_STATUS(bird_client_intern(w.client, "pusher:subscription_count", &names[1], NULL), BIRD_OK);
    CHECK(names[0] != 0 && names[0] == names[1]);
    UNTIL(&w, journal_count() >= 1);
    world_emit_event(&w, "presence-room", "bird_internal:member_added", "{\"member_id\":\"m_2\"}");
    world_emit_event(&w, "presence-room", "bird_internal:connection_count", "{\"connection_count\":2}");
    world_emit_event(&w, "presence-room", "bird:cache_miss", "null");
    world_emit_event(&w, "presence-room", "bird:moved", "1");
    world_settle(&w);
    CHECK_STATUS(bird_channel_unbind_event(room, "pusher:member_added"), BIRD_OK);
    world_emit_event(&w, "presence-room", "bird_internal:member_added", "{\"member_id\":\"m_3\"}");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "late added added-too count miss ~added ~added-too");
    world_close(&w);
}

/* The names of the protocol can be bound; event NULL is for application events alone. */
MODE_CASE(lifecycle_events_are_bound_by_name) {
    world w = world_open(harness_mode());
    bird_channel *room = NULL; /* bound before it can succeed */
    CHECK_STATUS(bird_client_subscribe(w.client, "presence-room", 0, &room, NULL), BIRD_OK);
    bind_channel(room, NULL, "application");
    bind_channel(room, "bird:subscription_succeeded", "succeeded");
    bind_channel(room, "bird:member_added", "added");
    bind_channel(room, "bird:member_removed", "removed");
    bind_channel(room, "bird:connection_count", "count");
    bind_client(w.client, "bird:member_added", "client-added");
    world_connect(&w);
    UNTIL(&w, channel_state(room) == BIRD_CHANNEL_SUBSCRIBED);
    world_emit_event(&w, "presence-room", "bird_internal:member_added", "{\"member_id\":\"m_2\"}");
    world_emit_event(&w, "presence-room", "bird_internal:member_removed", "{\"member_id\":\"m_2\"}");
    world_emit_event(&w, "presence-room", "bird_internal:connection_count", "{\"connection_count\":5}");
    world_emit_event(&w, "presence-room", "bird_internal:whatever", "1");
    world_emit_event(&w, "presence-room", "bird:cache_miss", "1");
    world_emit_event(&w, "presence-room", "tick", "1");
    world_settle(&w);
    /* bird:cache_miss is delivered under its own name (Bird protocol 5.3), so it is an application event here. */
    CHECK_TEXT(journal_text(), "succeeded added client-added removed count application application");
    world_close(&w);
}

MODE_CASE(same_handler_bound_twice_is_called_twice) {
    world w = world_open(harness_mode());
    world_connect(&w);
    const uint64_t first = bind_channel(w.control, "tick", "x"), second = bind_channel(w.control, "tick", "x");
    CHECK(first != second);
    world_emit_event(&w, "private-control", "tick", "1");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "x x");
    CHECK_STATUS(bird_client_unbind(w.client, first), BIRD_OK);
    UNTIL(&w, journal_count() == 3); /* the destructor */
    world_emit_event(&w, "private-control", "tick", "1");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "x x ~x x");
    world_close(&w);
}

typedef struct unbinder {
    bird_client *client;
    uint64_t own, victim;
    atomic_int calls;
} unbinder;

static void unbind_both(const bird_record *record, void *user_data) {
    (void)record;
    unbinder *u = user_data;
    atomic_fetch_add(&u->calls, 1);
    CHECK_STATUS(bird_client_unbind(u->client, u->own), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(u->client, u->own), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_unbind(u->client, u->victim), BIRD_OK);
    journal_add("unbound");
}

static void note_unbinder_destroyed(void *user_data) {
    CHECK_INT(atomic_load(&((unbinder *)user_data)->calls), 1);
    journal_add("~unbinder");
}

MODE_CASE(handler_unbinds_itself_and_the_next) {
    world w = world_open(harness_mode());
    world_connect(&w);
    unbinder u = {.client = w.client};
    CHECK_STATUS(bird_channel_bind(w.control, "tick", unbind_both, &u, note_unbinder_destroyed, &u.own, NULL), BIRD_OK);
    u.victim = bind_channel(w.control, "tick", "victim");
    bind_channel(w.control, "tick", "survivor");
    world_emit_event(&w, "private-control", "tick", "1");
    world_emit_event(&w, "private-control", "tick", "2");
    world_settle(&w);
    UNTIL(&w, journal_count() >= 5);
    /* The victim came next and is not called; destructors run after the handler that unbound, in any order. */
    int survivors = 0, victims_gone = 0, unbinders_gone = 0;
    CHECK_TEXT(journal_entry(0), "unbound");
    for (int i = 1; i < journal_count(); i++) {
        survivors += strcmp(journal_entry(i), "survivor") == 0;
        victims_gone += strcmp(journal_entry(i), "~victim") == 0;
        unbinders_gone += strcmp(journal_entry(i), "~unbinder") == 0;
    }
    CHECK_INT(survivors, 2);
    CHECK_INT(victims_gone, 1);
    CHECK_INT(unbinders_gone, 1);
    CHECK_INT(journal_count(), 5);
    CHECK_INT(atomic_load(&u.calls), 1);
    world_close(&w);
    CHECK_TEXT(journal_entry(5), "~survivor");
    CHECK_INT(journal_count(), 6);
}

/* By event: the named ones, or those for every application event; of the channel, or of the client. */
MODE_CASE(handlers_are_unbound_by_event) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    struct {
        const char *event, *note;
        bool is_of_client;
    } rows[] = {
        {"tick", "tick-1", false},  {"tock", "tock", false},       {NULL, "all-1", false},
        {"tick", "tick-2", false},  {NULL, "all-2", false},        {"tick", "client-tick", true},
        {NULL, "client-all", true}, {"tock", "client-tock", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].is_of_client) {
            bind_client(w.client, rows[i].event, rows[i].note);
        } else {
            bind_channel(orders, rows[i].event, rows[i].note);
        }
    }
    observe(w.client, 1u << BIRD_RECORD_EVENT, "observer");
    CHECK_STATUS(bird_channel_unbind_event(orders, "never bound"), BIRD_OK);
    CHECK_STATUS(bird_channel_unbind_event(w.control, "tick"), BIRD_OK);
    CHECK_STATUS(bird_client_unbind_event(w.client, "never bound"), BIRD_OK);
    CHECK_STATUS(bird_channel_unbind_event(orders, "tick"), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_text(), "~tick-1 ~tick-2");
    journal_clear();
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 5);
    CHECK_TEXT(journal_text(), "client-tick all-1 all-2 client-all observer");

    journal_clear();
    CHECK_STATUS(bird_channel_unbind_event(orders, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_unbind_event(w.client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_unbind_event(w.client, "tick"), BIRD_OK);
    UNTIL(&w, journal_count() == 4);
    CHECK_TEXT(journal_text(), "~all-1 ~all-2 ~client-all ~client-tick");
    journal_clear();
    world_emit_event(&w, "orders", "tick", "1");
    world_emit_event(&w, "orders", "tock", "1");
    UNTIL(&w, journal_count() == 4);
    CHECK_TEXT(journal_text(), "observer tock client-tock observer");
    world_close(&w);
    CHECK_INT(journal_count(), 4 + 3);
}

MODE_CASE(handlers_are_unbound_all_at_once) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    observe(w.client, 1u << BIRD_RECORD_EVENT, "observer");
    bind_client(w.client, "tick", "client");
    bind_channel(orders, "tick", "named");
    bind_channel(orders, NULL, "all");
    CHECK_STATUS(bird_channel_unbind_all(orders), BIRD_OK);
    CHECK_STATUS(bird_channel_unbind_all(orders), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_text(), "~named ~all");
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 4);
    CHECK_TEXT(journal_entry(2), "client");
    CHECK_TEXT(journal_entry(3), "observer");
    journal_clear();
    CHECK_STATUS(bird_client_unbind_all(w.client), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_text(), "~client observer");

    CHECK_STATUS(bird_channel_unsubscribe(orders), BIRD_OK);
    CHECK_STATUS(bird_channel_unbind_event(orders, "tick"), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_unbind_all(orders), BIRD_ERR_UNSUBSCRIBED);
    world_close(&w);
}

/* BND-09 */
MODE_CASE(handlers_of_before_do_not_come_back) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    bind_channel(orders, "tick", "before");
    bind_channel(orders, "tick", "before too");
    CHECK_STATUS(bird_channel_unbind_all(orders), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(orders), BIRD_OK);
    bird_channel_release(orders);
    orders = world_join(&w, "orders");
    bind_channel(orders, "tick", "after");
    world_settle(&w);
    UNTIL(&w, journal_count() == 2);
    journal_clear();
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_text(), "after");
    world_close(&w);
}

static void unbind_everything(const bird_record *record, void *user_data) {
    CHECK_STATUS(bird_channel_unbind_all(record->channel), BIRD_OK);
    CHECK_STATUS(bird_client_unbind_all(record->client), BIRD_OK);
    bind_channel(record->channel, "tick", "new");
    journal_add("unbound by %s", (const char *)user_data);
}

/* What is removed is not called any more, what is bound meanwhile has its turn with the next event. */
MODE_CASE(handler_unbinds_everything) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(orders, "tick", unbind_everything, "x", note_destructor, NULL, NULL), BIRD_OK);
    bind_channel(orders, "tick", "named");
    bind_channel(orders, NULL, "all");
    bind_client(w.client, "tick", "client");
    bind_client(w.client, NULL, "client-all");
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 6);
    CHECK_TEXT(journal_text(), "unbound by x ~x ~named ~all ~client ~client-all");
    journal_clear();
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_text(), "new");
    world_close(&w);
    CHECK_TEXT(journal_text(), "new ~new");
}

MODE_CASE(observers_get_the_kinds_they_asked_for) {
    world w = world_open(harness_mode());
    observe(w.client, 1u << BIRD_RECORD_SUBSCRIBED, "subscribed");
    const uint64_t all = observe(w.client, UINT64_MAX, "any");
    CHECK_STATUS(bird_client_unbind(w.client, all), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "~any");
    journal_clear();
    world_connect(&w);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "subscribed");
    world_close(&w);
}

CASE(unbind_of_what_is_not_bound_is_refused) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = NULL, *other = NULL;
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_create(options, &other, NULL), BIRD_OK);
    bird_options_destroy(options);
    CHECK_STATUS(bird_client_unbind(client, 0), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_unbind(client, UINT64_MAX), BIRD_ERR_ARGUMENT);
    const uint64_t binding = bind_client(client, "tick", "x");
    CHECK(binding != 0);
    CHECK_STATUS(bird_client_unbind(other, binding + 1000), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_unbind(client, binding), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(client, binding), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_TEXT(journal_text(), "~x");
    CHECK_STATUS(bird_client_destroy(other), BIRD_OK);
}

/* Situation 1 of the header: after an unbind, on the delivery context. */
static _Thread_local bool is_test_thread;

static void note_thread(void *user_data) {
    journal_add("~%s:%s", (const char *)user_data, is_test_thread ? "test" : "other");
}

MODE_CASE(destructor_after_unbind_runs_on_the_delivery_context) {
    is_test_thread = true;
    world w = world_open(harness_mode());
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", note_handler, "x", note_thread, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_text(), w.queue != NULL || w.loop != NULL ? "~x:test" : "~x:other");
    world_close(&w);
    CHECK_INT(journal_count(), 1);
}

/* Situation 2: the registration failed; on the calling thread before the call returns. */
CASE(destructor_after_a_failed_registration_runs_at_once) {
    is_test_thread = true;
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = client_from(options, NULL);
    bird_channel *channel = NULL;
    uint64_t binding;
    CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(channel, "", note_handler, "1", note_thread, &binding, NULL), BIRD_ERR_NAME);
    CHECK_TEXT(journal_text(), "~1:test");
    CHECK_STATUS(bird_channel_bind(NULL, "x", note_handler, "2", note_thread, &binding, NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_bind(client, "", note_handler, "3", note_thread, &binding, NULL), BIRD_ERR_NAME);
    CHECK_STATUS(bird_client_bind(NULL, "x", note_handler, "4", note_thread, &binding, NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_observe(NULL, 1, note_handler, "5", note_thread, &binding, NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_bind(client, "x", NULL, "6", note_thread, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_observe(client, 1, NULL, "7", note_thread, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_bind(channel, "x", NULL, "8", note_thread, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_TEXT(journal_text(), "~1:test ~2:test ~3:test ~4:test ~5:test ~6:test ~7:test ~8:test");
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_client_bind(client, "x", note_handler, "9", note_thread, &binding, NULL), BIRD_ERR_HANDLE);
    CHECK_INT(journal_count(), 9);
}

/* Situation 3: at destroy, on the destroying thread before it returns. */
MODE_CASE(destructor_at_destroy_runs_before_it_returns) {
    is_test_thread = true;
    world w = world_open(harness_mode());
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "x", note_handler, "1", note_thread, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_bind(w.client, NULL, note_handler, "2", note_thread, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_observe(w.client, 1, note_handler, "3", note_thread, &binding, NULL), BIRD_OK);
    bird_channel_release(w.control);
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
    CHECK_INT(journal_count(), 3);
    for (int i = 0; i < 3; i++) {
        CHECK(strstr(journal_entry(i), ":test") != NULL);
    }
    if (w.queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
    }
}

static void destroy_own_client(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_STATUS(bird_client_destroy(record->client), BIRD_OK);
    journal_add("handler-ends");
}

/* From within a callback: right after that callback; the handlers behind it are not called any more. */
MODE_CASE(destructor_after_destroy_in_a_handler_follows_it) {
    world w = world_open(harness_mode());
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", destroy_own_client, "own", note_destructor, &binding, NULL),
                 BIRD_OK);
    bind_channel(w.control, "tick", "next");
    world_emit_event(&w, "private-control", "tick", "1");
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_entry(0), "handler-ends");
    CHECK((strcmp(journal_entry(1), "~own") == 0 && strcmp(journal_entry(2), "~next") == 0) ||
          (strcmp(journal_entry(1), "~next") == 0 && strcmp(journal_entry(2), "~own") == 0));
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_ERR_HANDLE);
    if (w.queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
    }
}
