/* Section records of the header. */
#include "harness.h"

static void see_layout(const bird_record *record, void *user_data) {
    atomic_int *seen = user_data;
    CHECK(record->struct_size >= sizeof(bird_record));
    CHECK(record->client != NULL);
    CHECK(record->channel_name[record->channel_name_length] == '\0');
    CHECK_INT(strlen(record->channel_name), record->channel_name_length);
    CHECK(record->event[record->event_length] == '\0');
    CHECK_INT(strlen(record->event), record->event_length);
    CHECK(record->data[record->data_length] == '\0');
    CHECK((record->channel == NULL) == (record->channel_name_length == 0));
    if (record->kind != BIRD_RECORD_COMPLETION) {
        CHECK_INT(record->operation_tag, 0);
    }
    if (record->data_kind == BIRD_DATA_NONE) {
        CHECK_INT(record->data_length, 0);
    }
    if (record->detail != NULL) {
        CHECK(*(const uint32_t *)record->detail >= 8);
    }
    atomic_fetch_or(seen, 1 << record->kind);
}

/* Every kind of record that an edge can cause, looked at closely. */
MODE_CASE(records_are_well_formed) {
    world w = world_open(harness_mode());
    atomic_int seen = 0;
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, UINT64_MAX, see_layout, &seen, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_signin(w.client, 0, 1, NULL), BIRD_OK);
    world_connect(&w);
    world_join(&w, "presence-room");
    world_emit_event(&w, "presence-room", "bird_internal:member_added", "{\"member_id\":\"m_2\",\"member_info\":{}}");
    world_emit_event(&w, "presence-room", "bird_internal:member_removed", "\"{\\\"member_id\\\":\\\"m_2\\\"}\"");
    world_emit_event(&w, "presence-room", "bird_internal:connection_count", "{\"connection_count\":1}");
    world_emit_event(&w, "presence-room", "bird_internal:subscription_error", "{\"error\":\"full\"}");
    world_emit(&w, "{\"event\":\"tick\",\"channel\":\"private-control\"}");
    world_emit(&w, "{\"event\":\"bird:error\",\"data\":{\"code\":4301,\"message\":\"slow down\"}}");
    world_emit(&w, "{\"event\":\"bird_internal:watchlist_events\","
                   "\"data\":{\"events\":[{\"name\":\"online\",\"member_ids\":[\"m_2\"]}]}}");
    world_settle(&w);
    world_drop(&w);
    const int wanted = 1 << BIRD_RECORD_EVENT | 1 << BIRD_RECORD_SUBSCRIBED | 1 << BIRD_RECORD_SUBSCRIPTION_ERROR |
                       1 << BIRD_RECORD_MEMBER_ADDED | 1 << BIRD_RECORD_MEMBER_REMOVED |
                       1 << BIRD_RECORD_CONNECTION_COUNT | 1 << BIRD_RECORD_STATE | 1 << BIRD_RECORD_ERROR |
                       1 << BIRD_RECORD_COMPLETION | 1 << BIRD_RECORD_REQUEST | 1 << BIRD_RECORD_SIGNED_IN |
                       1 << BIRD_RECORD_CONNECTION_LOST | 1 << BIRD_RECORD_CONNECTING_IN | 1 << BIRD_RECORD_WATCHLIST;
    UNTIL(&w, (atomic_load(&seen) & wanted) == wanted);
    world_close(&w);
}

static void see_tags(const bird_record *record, void *user_data) {
    (void)user_data;
    journal_add("%s:%llu:%u", record->event, (unsigned long long)record->channel_tag, record->event_id);
}

MODE_CASE(records_carry_tags_and_interned_ids) {
    world w = world_open(harness_mode());
    world_connect(&w);
    uint32_t first = 0, second = 0, again = 0;
    CHECK_STATUS(bird_client_intern(w.client, "tick", &first, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_intern(w.client, "tock", &second, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_intern(w.client, "tick", &again, NULL), BIRD_OK);
    CHECK(first != 0 && second != 0 && first != second && first == again);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, NULL, see_tags, NULL, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(&w, "private-control", "tick", "1");
    world_settle(&w);
    CHECK_STATUS(bird_channel_set_tag(w.control, 18446744073709551615u), BIRD_OK);
    world_emit_event(&w, "private-control", "tock", "1");
    world_emit_event(&w, "private-control", "tuck", "1");
    world_emit(&w, "{\"channel\":\"private-control\",\"event\":\"t\\u0069ck\",\"data\":1}");
    world_settle(&w);
    char wanted[256];
    snprintf(wanted, sizeof wanted, "tick:0:%u", first);
    CHECK_TEXT(journal_entry(0), wanted);
    int next = 1;
    while (strncmp(journal_entry(next), "settled", 7) == 0) {
        next++;
    }
    snprintf(wanted, sizeof wanted, "tock:18446744073709551615:%u", second);
    CHECK_TEXT(journal_entry(next), wanted);
    CHECK_TEXT(journal_entry(next + 1), "tuck:18446744073709551615:0");
    snprintf(wanted, sizeof wanted, "tick:18446744073709551615:%u", first);
    CHECK_TEXT(journal_entry(next + 2), wanted);
    world_close(&w);
}

static void see_data(const bird_record *record, void *user_data) {
    (void)user_data;
    static const char *const kinds[] = {"none", "string", "value"};
    journal_add("%s[%.*s]", kinds[record->data_kind], (int)record->data_length, record->data);
}

/* Bird protocol 3.1, with every byte kept: one level of string encoding is undone and nothing else is touched. */
MODE_CASE(records_keep_the_bytes_of_data) {
    world w = world_open(harness_mode());
    world_connect(&w);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w.control, "tick", see_data, NULL, NULL, &binding, NULL), BIRD_OK);
    const struct {
        const char *sent, *seen;
    } rows[] = {
        {"\"{\\\"a\\\":1}\"", "string[{\"a\":1}]"},
        {"{ \"a\" : 1.0e+00 }", "value[{ \"a\" : 1.0e+00 }]"},
        {"\"ready\"", "string[ready]"},
        {"\"\\\"ready\\\"\"", "string[\"ready\"]"},
        {"\"42\"", "string[42]"},
        {"12345678901234567890123", "value[12345678901234567890123]"},
        {"null", "value[null]"},
        {"\"null\"", "string[null]"},
        {"true", "value[true]"},
        {"\"\"", "string[]"},
        {"[1, 2]", "value[[1, 2]]"},
        {"\"\\u00e9\\ud83d\\udc26\\/\"", "string[\xc3\xa9\xf0\x9f\x90\xa6/]"},
    };
    const int count = sizeof rows / sizeof *rows;
    for (int i = 0; i < count; i++) {
        world_emit_event(&w, "private-control", "tick", rows[i].sent);
    }
    world_emit(&w, "{\"event\":\"tick\",\"channel\":\"private-control\"}");
    world_settle(&w);
    for (int i = 0; i < count; i++) {
        CHECK_TEXT(journal_entry(i), rows[i].seen);
    }
    CHECK_TEXT(journal_entry(count), "none[]");
    world_close(&w);
}

CASE(data_is_json_is_strict) {
    const char *yes[] = {"1",           " {\"a\":[1,2.5e-3,null,true,false,\"x\"]} ", "\"\\u00e9\\n\"", "-0", "[]",
                         "\"\xc3\xa9\""};
    const char *no[] = {"",
                        "01",
                        "+1",
                        "{a:1}",
                        "[1,]",
                        "nan",
                        "ready",
                        "1 2",
                        "\"\n\"",
                        "\"\xff\"",
                        "\"\\x41\"",
                        "{\"a\":1",
                        "tru",
                        "\"\\ud800",
                        "--1",
                        "1e",
                        "\xef\xbb\xbf"
                        "1"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        CHECK_INT(bird_data_is_json(yes[i], BIRD_NUL), 1);
        CHECK_INT(bird_data_is_json(yes[i], strlen(yes[i])), 1);
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        CHECK_INT(bird_data_is_json(no[i], BIRD_NUL), 0);
        CHECK_INT(bird_data_is_json(no[i], strlen(no[i])), 0);
    }
    CHECK_INT(bird_data_is_json("1\0", 2), 0);
    CHECK_INT(bird_data_is_json("[1]x", 3), 1);
    char deep[4096];
    memset(deep, '[', sizeof deep);
    CHECK_INT(bird_data_is_json(deep, sizeof deep), 0);
    memset(deep, '[', 512);
    memset(deep + 512, ']', 512);
    CHECK_INT(bird_data_is_json(deep, 1024), 1);
    memset(deep, '[', 513);
    memset(deep + 513, ']', 513);
    CHECK_INT(bird_data_is_json(deep, 1026), 0);
}

static void see_kind(const bird_record *record, void *user_data) {
    (void)user_data;
    journal_add("%u", record->kind);
}

MODE_CASE(records_mask_keeps_other_kinds_away) {
    bird_options *options = world_options(harness_mode());
    const uint64_t mask = 1u << BIRD_RECORD_REQUEST | 1u << BIRD_RECORD_EVENT;
    CHECK_STATUS(bird_options_set_int(options, "records", (int64_t)mask, NULL), BIRD_OK);
    world w = world_open_with(harness_mode(), options);
    world_grant_requests(w.client);
    uint64_t binding;
    CHECK_STATUS(
        bird_client_observe(w.client, ~(UINT64_C(1) << BIRD_RECORD_REQUEST), see_kind, NULL, NULL, &binding, NULL),
        BIRD_OK);
    world_connect(&w);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "1"); /* the event of world_settle alone */
    world_close(&w);
}

static void see_any(const bird_record *record, void *user_data) {
    (void)user_data;
    if (record->kind == BIRD_RECORD_COMPLETION) {
        const bird_completion *completion = record->detail;
        journal_add("done:%llu:%s", (unsigned long long)record->operation_tag, bird_status_name(completion->status));
    } else if (record->kind == BIRD_RECORD_SUBSCRIBED) {
        const bird_subscription *subscription = record->detail;
        CHECK((subscription->interrupted_ms > 0) <= subscription->is_resubscribe);
        journal_add("%s:%d", record->channel_name, subscription->is_resubscribe);
    } else {
        journal_add("%s", record->event);
    }
}

/* One order over all records: success first, then the channel's events; a tag completes once. */
MODE_CASE(records_come_in_one_order) {
    world w = world_open(harness_mode());
    world_connect(&w);
    world_settle(&w);
    uint64_t binding;
    const uint64_t kinds = 1u << BIRD_RECORD_EVENT | 1u << BIRD_RECORD_SUBSCRIBED | 1u << BIRD_RECORD_COMPLETION;
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_any, NULL, NULL, &binding, NULL), BIRD_OK);
    bird_channel *orders = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 5, &orders, NULL), BIRD_OK);
    world_emit_event(&w, "orders", "first", "1");
    UNTIL(&w, journal_count() == 3);
    CHECK(strcmp(journal_entry(2), "first") == 0);
    CHECK_TEXT(journal_entry(0), "orders:0");
    CHECK_TEXT(journal_entry(1), "done:5:BIRD_OK");
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 6, &orders, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 4);
    CHECK_TEXT(journal_entry(3), "done:6:BIRD_OK");

    journal_clear();
    world_drop(&w);
    UNTIL(&w, journal_count() == 2);
    CHECK(strstr(journal_text(), "orders:1") != NULL);
    CHECK(strstr(journal_text(), "private-control:1") != NULL);
    world_close(&w);
}

/* The end of the wish is an end of the operation too. */
MODE_CASE(operations_end_with_the_wish) {
    world w = world_open(harness_mode());
    uint64_t binding;
    const uint64_t kinds = 1u << BIRD_RECORD_COMPLETION;
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_any, NULL, NULL, &binding, NULL), BIRD_OK);
    bird_channel *orders = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 5, &orders, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(orders), BIRD_OK);
    world_connect(&w);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "done:5:BIRD_ERR_UNSUBSCRIBED");
    world_settle(&w);
    CHECK_INT(journal_count(), 1);
    world_close(&w);
}
