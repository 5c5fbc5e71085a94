/* Section channel of the header. */
#include "harness.h"

static bird_channel *subscribe(bird_client *client, const char *name) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(client, name, 0, &channel, NULL), BIRD_OK);
    return channel;
}

static world offline_world(void) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    return world_open_with(BIRD_DELIVERY_THREAD, options);
}

static void nothing(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

/* Bird protocol 1: 1 to 164 of A-Z a-z 0-9 _ = @ , . ; - */
CASE(channel_names_follow_the_grammar) {
    world w = offline_world();
    char name[166];
    memset(name, 'x', sizeof name);
    name[165] = '\0';
    const char *bad[] = {"",     "#server-to-user-m_1", "two words",    "a/b", "a:b", "tick!", "caf\xc3\xa9",
                         "a\nb", "private-#",           "presence-a b", name};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bird_channel *channel = NULL;
        bird_error *error = NULL;
        CHECK_STATUS(bird_client_subscribe(w.client, bad[i], 0, &channel, &error), BIRD_ERR_NAME);
        CHECK(channel == NULL);
        CHECK_STATUS(bird_error_status(error), BIRD_ERR_NAME);
        CHECK_TEXT(bird_error_field(error), "channel");
        CHECK(strlen(bird_error_message(error)) > 0);
        bird_error_free(error);
        CHECK_STATUS(bird_client_subscribe(w.client, bad[i], 0, &channel, NULL), BIRD_ERR_NAME);
    }
    name[164] = '\0';
    const char *good[] = {"a", "0", "_=@,.;-", "private-", "presence-", "orders.EU-1", name};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        bird_channel *channel = subscribe(w.client, good[i]);
        char copy[165];
        size_t length;
        CHECK_STATUS(bird_channel_name(channel, copy, sizeof copy, &length), BIRD_OK);
        CHECK_TEXT(copy, good[i]);
        bird_channel_release(channel);
    }
    world_close(&w);
}

CASE(names_must_be_utf8) {
    world w = offline_world();
    bird_channel *channel = subscribe(w.client, "orders"), *other = NULL;
    const char *bad[] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint64_t binding;
        uint32_t id;
        CHECK_STATUS(bird_client_subscribe(w.client, bad[i], 0, &other, NULL), BIRD_ERR_NAME);
        CHECK_STATUS(bird_channel_bind(channel, bad[i], nothing, NULL, NULL, &binding, NULL), BIRD_ERR_NAME);
        CHECK_STATUS(bird_client_bind(w.client, bad[i], nothing, NULL, NULL, &binding, NULL), BIRD_ERR_NAME);
        CHECK_STATUS(bird_client_intern(w.client, bad[i], &id, NULL), BIRD_ERR_NAME);
    }
    world_close(&w);
}

/* Bird protocol 1: 1 to 200 characters, free-form. */
CASE(event_names_follow_the_grammar) {
    world w = offline_world();
    bird_channel *channel = subscribe(w.client, "orders");
    char name[202 * 2];
    uint64_t binding;
    uint32_t id;
    memset(name, 'x', sizeof name);
    name[201] = '\0';
    const char *bad[] = {"", name};
    for (int i = 0; i < 2; i++) {
        bird_error *error = NULL;
        CHECK_STATUS(bird_channel_bind(channel, bad[i], nothing, NULL, NULL, &binding, &error), BIRD_ERR_NAME);
        CHECK_TEXT(bird_error_field(error), "event");
        bird_error_free(error);
        CHECK_STATUS(bird_client_bind(w.client, bad[i], nothing, NULL, NULL, &binding, NULL), BIRD_ERR_NAME);
        CHECK_STATUS(bird_client_intern(w.client, bad[i], &id, NULL), BIRD_ERR_NAME);
    }
    name[200] = '\0';
    const char *good[] = {"a",        "stock moved \"x\"", "bird:subscription_succeeded",
                          "client-x", "\xf0\x9f\x90\xa6",  name};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_STATUS(bird_channel_bind(channel, good[i], nothing, NULL, NULL, &binding, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_bind(w.client, good[i], nothing, NULL, NULL, &binding, NULL), BIRD_OK);
    }
    /* 200 characters of two bytes each: the limit counts characters. */
    for (int i = 0; i < 400; i += 2) {
        memcpy(name + i, "\xc3\xa9", 2);
    }
    name[400] = '\0';
    CHECK_STATUS(bird_channel_bind(channel, name, nothing, NULL, NULL, &binding, NULL), BIRD_OK);
    world_close(&w);
}

CASE(channel_kinds_are_decided_by_prefix) {
    const struct {
        const char *name;
        int32_t kind;
    } rows[] = {
        {"orders", BIRD_CHANNEL_PUBLIC},
        {"cache-orders", BIRD_CHANNEL_PUBLIC},
        {"Private-orders", BIRD_CHANNEL_PUBLIC},
        {"privateorders", BIRD_CHANNEL_PUBLIC},
        {"private-orders", BIRD_CHANNEL_PRIVATE},
        {"private-encrypted", BIRD_CHANNEL_PRIVATE},
        {"private-cache-orders", BIRD_CHANNEL_PRIVATE},
        {"private-encrypted-orders", BIRD_CHANNEL_ENCRYPTED},
        {"presence-orders", BIRD_CHANNEL_PRESENCE},
        {"presence-encrypted-orders", BIRD_CHANNEL_PRESENCE},
    };
    world w = offline_world();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bird_channel *channel = subscribe(w.client, rows[i].name);
        int32_t kind = -1;
        CHECK_STATUS(bird_channel_kind(channel, &kind), BIRD_OK);
        CHECK_INT(kind, rows[i].kind);
    }
    world_close(&w);
}

EDGE_CASE(channel_references_are_counted) {
    world w = world_open(BIRD_DELIVERY_LOOP);
    world_connect(&w);
    bird_channel *first = world_join(&w, "orders");
    bird_channel *second = subscribe(w.client, "orders");
    bird_channel *third = subscribe(w.client, "orders");
    CHECK(first == second && second == third);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(first, "tick", note_handler, "tick", NULL, &binding, NULL), BIRD_OK);
    bird_channel_release(first);
    bird_channel_release(second);
    CHECK_INT(channel_state(third), BIRD_CHANNEL_SUBSCRIBED);
    bird_channel_release(third);
    bird_channel_release(third); /* one too many: no effect */

    /* Nobody holds it, and still it is subscribed and bound. */
    world_emit_event(&w, "orders", "tick", "1");
    UNTIL(&w, journal_count() == 1);
    bird_channel *fourth = subscribe(w.client, "orders");
    CHECK_INT(channel_state(fourth), BIRD_CHANNEL_SUBSCRIBED);

    /* Nobody holds it and nobody wants it: now it is gone. */
    CHECK_STATUS(bird_channel_unsubscribe(fourth), BIRD_OK);
    bird_channel_release(fourth);
    world_settle(&w);
    int32_t state;
    CHECK_STATUS(bird_channel_state(fourth, &state), BIRD_ERR_HANDLE);
    world_close(&w);
}

EDGE_CASE(channel_unsubscribe_acts_for_all_holders) {
    world w = world_open(BIRD_DELIVERY_LOOP);
    world_connect(&w);
    bird_channel *first = world_join(&w, "presence-room"), *second = subscribe(w.client, "presence-room");
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(first, "tick", note_handler, "tick", note_destructor, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(first), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "~tick");

    int32_t number;
    size_t size;
    char buffer[8];
    bird_members *members;
    CHECK_STATUS(bird_channel_unsubscribe(second), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_trigger(second, "client-x", "1", 1, NULL), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_bind(second, "x", nothing, NULL, NULL, &binding, NULL), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_set_tag(second, 1), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_my_id(second, buffer, sizeof buffer, &size), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_member_count(second, &size), BIRD_ERR_UNSUBSCRIBED);
    CHECK_STATUS(bird_channel_members(second, &members), BIRD_ERR_UNSUBSCRIBED);
    const bird_status status = bird_channel_state(second, &number);
    CHECK(status == BIRD_ERR_UNSUBSCRIBED || (status == BIRD_OK && number == BIRD_CHANNEL_UNSUBSCRIBED));

    bird_channel *fresh = world_join(&w, "presence-room");
    CHECK(fresh != first);
    CHECK_STATUS(bird_channel_unsubscribe(first), BIRD_ERR_UNSUBSCRIBED);
    CHECK_INT(channel_state(fresh), BIRD_CHANNEL_SUBSCRIBED);
    bird_channel_release(first);
    bird_channel_release(second);
    world_close(&w);
}

/* Leave and rejoin without a pause ends subscribed, with events for the new reference only. */
EDGE_CASE(channel_leave_and_rejoin_ends_subscribed) {
    world w = world_open(BIRD_DELIVERY_LOOP);
    world_connect(&w);
    for (int round = 0; round < 50; round++) {
        bird_channel *channel = subscribe(w.client, "private-orders");
        CHECK_STATUS(bird_channel_unsubscribe(channel), BIRD_OK);
        bird_channel_release(channel);
    }
    bird_channel *last = world_join(&w, "private-orders");
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(last, "tick", note_handler, "tick", NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-orders", "tick", "1");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "tick");
    world_close(&w);
}

EDGE_CASE(trigger_refuses_what_the_edge_would_refuse) {
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    set_option(options, "client_event_bytes_max", "16");
    world w = world_open_with(BIRD_DELIVERY_LOOP, options);
    world_grant_requests(w.client);
    bird_channel *before = subscribe(w.client, "private-orders");
    CHECK_STATUS(bird_channel_trigger(before, "client-x", "1", 1, NULL), BIRD_ERR_NOT_SUBSCRIBED);
    world_connect(&w);
    bird_channel *private = world_join(&w, "private-orders"), *presence = world_join(&w, "presence-room");
    bird_channel *public = world_join(&w, "orders");
    bird_channel *encrypted = subscribe(w.client, "private-encrypted-orders");
    CHECK(before == private);

    CHECK_STATUS(bird_channel_trigger(public, "client-x", "1", 1, NULL), BIRD_ERR_UNSUPPORTED);
    CHECK_STATUS(bird_channel_trigger(encrypted, "client-x", "1", 1, NULL), BIRD_ERR_UNSUPPORTED);

    char long_name[202];
    memset(long_name, 'x', sizeof long_name);
    memcpy(long_name, "client-", 7);
    long_name[201] = '\0';
    const char *bad_names[] = {"", "x", "Client-x", "client", "bird:x", "client-\xff", long_name};
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        bird_error *error = NULL;
        CHECK_STATUS(bird_channel_trigger(private, bad_names[i], "1", 1, &error), BIRD_ERR_NAME);
        CHECK_TEXT(bird_error_field(error), "event");
        bird_error_free(error);
    }
    const char *bad_payloads[] = {"", " ", "{", "{\"a\":}", "01", "'a'", "1 2", "\"\xff\"", "nul", "[1,]", "\"\t\""};
    for (size_t i = 0; i < sizeof bad_payloads / sizeof *bad_payloads; i++) {
        bird_error *error = NULL;
        CHECK_STATUS(bird_channel_trigger(private, "client-x", bad_payloads[i], BIRD_NUL, &error), BIRD_ERR_PAYLOAD);
        CHECK_TEXT(bird_error_field(error), "data");
        bird_error_free(error);
    }
    bird_error *error = NULL;
    CHECK_STATUS(bird_channel_trigger(private, "client-x", "\"345678901234567\"", BIRD_NUL, &error), BIRD_ERR_SIZE);
    CHECK(strstr(bird_error_message(error), "16") != NULL);
    bird_error_free(error);
    CHECK_STATUS(bird_channel_trigger(private, "client-x", "\"34567890123456\"", BIRD_NUL, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_trigger(private, "client-x", "{\"a\":1} trailing", 7, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_trigger(private, "client-x", NULL, 0, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_trigger(presence, "client-x", " [ 1 ] ", BIRD_NUL, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
    world_close(&w);
}

EDGE_CASE(trigger_is_bounded) {
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    set_option(options, "outbound_bytes_max", "65536");
    world w = world_open_with(BIRD_DELIVERY_LOOP, options);
    world_grant_requests(w.client);
    world_connect(&w);
    /* The edge stops reading; the socket buffers of this machine fill up, then the bound of the client. */
    CHECK_STATUS(bird_channel_trigger(w.control, "client-deaf", NULL, 0, NULL), BIRD_OK);
    char payload[9000];
    memset(payload, '1', sizeof payload);
    bird_status flushed = BIRD_OK;
    const int64_t end = now_ms() + DEADLINE_MS;
    while (flushed == BIRD_OK) {
        CHECK(now_ms() < end);
        bird_status status = BIRD_OK;
        bird_error *error = NULL;
        while (status == BIRD_OK) {
            status = bird_channel_trigger(w.control, "client-noted", payload, sizeof payload, &error);
        }
        CHECK_STATUS(status, BIRD_ERR_FULL);
        CHECK_INT(bird_error_retriable(error), 1);
        bird_error_free(error);
        flushed = bird_client_flush(w.client, 200);
    }
    CHECK_STATUS(flushed, BIRD_ERR_TIMEOUT);
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK); /* never waits for the network */
}

static void see_roster(const bird_record *record, void *user_data) {
    (void)user_data;
    bird_members *members = NULL;
    size_t count = 0;
    CHECK_STATUS(bird_channel_member_count(record->channel, &count), BIRD_OK);
    CHECK_STATUS(bird_channel_members(record->channel, &members), BIRD_OK);
    CHECK_INT(bird_members_count(members), count);
    char text[96] = "";
    for (size_t i = 0; i < count; i++) {
        strcat(strcat(strcat(text, i ? "," : ""), bird_members_id(members, i)), bird_members_info(members, i));
    }
    CHECK_TEXT(bird_members_id(members, count), "");
    CHECK_TEXT(bird_members_info(members, count), "");
    CHECK_INT(bird_members_id_length(members, count), 0);
    CHECK_INT(bird_members_id_length(members, SIZE_MAX), 0);
    CHECK_TEXT(bird_members_id(members, SIZE_MAX), "");
    bird_members_free(members);
    if (record->kind == BIRD_RECORD_SUBSCRIBED) {
        const bird_subscription *subscription = record->detail;
        CHECK_INT(subscription->member_count, count);
        journal_add("%s as %s", text, subscription->my_id);
    } else {
        const bird_member *member = record->detail;
        journal_add("%s%s %s", record->kind == BIRD_RECORD_MEMBER_ADDED ? "+" : "-", member->id, text);
    }
}

/* Members of one channel in order of arrival, as the case knows them. */
#define FLOOD_MEMBERS 12
#define FLOOD_ROUNDS 100
#define FLOOD_CHANGES_PER_ROUND 20

static int flood_roster[FLOOD_MEMBERS], flood_count;
static atomic_int flood_checks;

/* Joins or leaves, whichever member `id` has not done last. */
static bool flood_change(int id) {
    for (int i = 0; i < flood_count; i++) {
        if (flood_roster[i] == id) {
            memmove(flood_roster + i, flood_roster + i + 1, (size_t)(--flood_count - i) * sizeof *flood_roster);
            return false;
        }
    }
    flood_roster[flood_count++] = id;
    return true;
}

static void see_flood(const bird_record *record, void *user_data) {
    (void)user_data;
    bird_members *members = NULL;
    CHECK_STATUS(bird_channel_members(record->channel, &members), BIRD_OK);
    char text[128] = "";
    bool is_there = false;
    const char *id = record->kind == BIRD_RECORD_EVENT ? "" : ((const bird_member *)record->detail)->id;
    for (size_t i = 0; i < bird_members_count(members); i++) {
        strcat(strcat(text, " "), bird_members_id(members, i));
        is_there = is_there || strcmp(bird_members_id(members, i), id) == 0;
    }
    bird_members_free(members);
    if (record->kind == BIRD_RECORD_EVENT) {
        CHECK_TEXT(text, record->data);
    } else {
        CHECK(is_there == (record->kind == BIRD_RECORD_MEMBER_ADDED));
    }
    atomic_fetch_add(&flood_checks, 1);
}

/* Each event says how the roster must be; many of them, with the joins and leaves between them, wait for the program at a time. */
MODE_CASE(rosters_keep_up_with_a_flood) {
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *room = world_join(&w, "presence-room");
    UNTIL(&w, channel_state(room) == BIRD_CHANNEL_SUBSCRIBED);
    world_emit_event(&w, "presence-room", "bird_internal:member_removed", "{\"member_id\":\"m_1\"}");
    world_settle(&w);
    uint64_t binding;
    const uint64_t kinds = 1u << BIRD_RECORD_MEMBER_ADDED | 1u << BIRD_RECORD_MEMBER_REMOVED;
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_flood, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(room, "roster", see_flood, NULL, NULL, &binding, NULL), BIRD_OK);
    unsigned draw = 1;
    for (int round = 0; round < FLOOD_ROUNDS; round++) {
        static char frames[10240];
        char *at = frames;
        for (int change = 0; change < FLOOD_CHANGES_PER_ROUND; change++) {
            draw = draw * 1103515245u + 12345u;
            const int id = (int)(draw >> 16) % FLOOD_MEMBERS;
            at += sprintf(at,
                          "%s\"{\\\"event\\\":\\\"bird_internal:member_%s\\\",\\\"channel\\\":\\\"presence-room\\\","
                          "\\\"data\\\":{\\\"member_id\\\":%d}}\","
                          "\"{\\\"event\\\":\\\"roster\\\",\\\"channel\\\":\\\"presence-room\\\",\\\"data\\\":\\\"",
                          change ? "," : "[", flood_change(id) ? "added" : "removed", id);
            for (int i = 0; i < flood_count; i++) {
                at += sprintf(at, " %d", flood_roster[i]);
            }
            at += sprintf(at, "\\\"}\"");
        }
        sprintf(at, "]");
        CHECK_STATUS(bird_channel_trigger(w.control, "client-emit", frames, BIRD_NUL, NULL), BIRD_OK);
    }
    UNTIL(&w, atomic_load(&flood_checks) == 2 * FLOOD_ROUNDS * FLOOD_CHANGES_PER_ROUND);
    world_close(&w);
}

MODE_CASE(presence_roster_is_that_of_the_record) {
    world w = world_open(harness_mode());
    uint64_t binding;
    const uint64_t kinds =
        1u << BIRD_RECORD_SUBSCRIBED | 1u << BIRD_RECORD_MEMBER_ADDED | 1u << BIRD_RECORD_MEMBER_REMOVED;
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_roster, NULL, NULL, &binding, NULL), BIRD_OK);
    bird_channel *room = world_join(&w, "presence-room");
    /* In one write, so that all are in the client before the first is delivered. */
    CHECK_STATUS(bird_channel_trigger(
                     w.control, "client-emit",
                     "[\"{\\\"event\\\":\\\"bird_internal:member_added\\\",\\\"channel\\\":\\\"presence-room\\\","
                     "\\\"data\\\":{\\\"member_id\\\":\\\"m_2\\\",\\\"member_info\\\":[2]}}\","
                     "\"{\\\"event\\\":\\\"bird_internal:member_added\\\",\\\"channel\\\":\\\"presence-room\\\","
                     "\\\"data\\\":{\\\"member_id\\\":3}}\","
                     "\"{\\\"event\\\":\\\"bird_internal:member_removed\\\",\\\"channel\\\":\\\"presence-room\\\","
                     "\\\"data\\\":{\\\"member_id\\\":\\\"m_2\\\"}}\","
                     "\"{\\\"event\\\":\\\"bird_internal:member_removed\\\",\\\"channel\\\":\\\"presence-room\\\","
                     "\\\"data\\\":{\\\"member_id\\\":\\\"m_unknown\\\"}}\"]",
                     BIRD_NUL, NULL),
                 BIRD_OK);
    world_settle(&w);
    CHECK_INT(journal_count(), 4);
    CHECK_TEXT(journal_entry(0), "m_1{\"name\":\"Noor\"} as m_1");
    CHECK_TEXT(journal_entry(1), "+m_2 m_1{\"name\":\"Noor\"},m_2[2]");
    CHECK_TEXT(journal_entry(2), "+3 m_1{\"name\":\"Noor\"},m_2[2],3");
    CHECK_TEXT(journal_entry(3), "-m_2 m_1{\"name\":\"Noor\"},3");

    char id[8];
    size_t length;
    bird_members *members = NULL;
    CHECK_STATUS(bird_channel_my_id(room, id, sizeof id, &length), BIRD_OK);
    CHECK_TEXT(id, "m_1");
    CHECK_STATUS(bird_channel_my_id(orders, id, sizeof id, &length), BIRD_ERR_UNSUPPORTED);
    CHECK_STATUS(bird_channel_member_count(orders, &length), BIRD_ERR_UNSUPPORTED);
    CHECK_STATUS(bird_channel_members(orders, &members), BIRD_ERR_UNSUPPORTED);
    CHECK(members == NULL);

    /* A snapshot outlives what it was taken of. */
    CHECK_STATUS(bird_channel_members(room, &members), BIRD_OK);
    world_close(&w);
    CHECK_INT(bird_members_count(members), 2);
    CHECK_TEXT(bird_members_id(members, 1), "3");
    bird_members_free(members);
}
