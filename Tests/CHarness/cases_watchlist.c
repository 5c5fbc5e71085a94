/* Watched members: what records say, who gets them, and what a late observer is told. */
#include "harness.h"

#define WATCHLIST (UINT64_C(1) << BIRD_RECORD_WATCHLIST)

static void emit_entries(world *w, const char *entries) {
    char frame[512];
    const int length = snprintf(frame, sizeof frame,
                                "{\"event\":\"bird_internal:watchlist_events\",\"data\":{\"events\":[%s]}}", entries);
    CHECK(length > 0 && (size_t)length < sizeof frame);
    world_emit(w, frame);
}

#define ENTRY(name, ids) "{\"name\":\"" name "\",\"member_ids\":[" ids "]}"

static void see_watchlist(const bird_record *record, void *user_data) {
    const bird_watchlist *detail = record->detail;
    CHECK_INT(record->kind, BIRD_RECORD_WATCHLIST);
    CHECK(record->channel == NULL);
    CHECK(detail->struct_size >= sizeof(bird_watchlist));
    CHECK_INT(record->data_kind, BIRD_DATA_VALUE);
    CHECK_INT(bird_data_is_json(record->data, record->data_length), 1);
    char ids[256] = "";
    for (uint32_t i = 0; i < detail->id_count; i++) {
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", i > 0 ? "+" : "", detail->ids[i]);
    }
    journal_add("%s%s:%s:%s", (const char *)user_data, record->event, ids, record->data);
}

static uint64_t watch(bird_client *client, const char *note) {
    uint64_t binding = 0;
    CHECK_STATUS(bird_client_observe(client, WATCHLIST, see_watchlist, (void *)note, NULL, &binding, NULL), BIRD_OK);
    return binding;
}

static void sign_in(world *w, uint32_t flags) {
    char member[32] = "";
    CHECK_STATUS(bird_client_signin(w->client, flags, 0, NULL), BIRD_OK);
    UNTIL(w, bird_client_member_id(w->client, member, sizeof member, NULL) == BIRD_OK && *member != '\0');
    world_settle(w); /* the record of the signin */
}

MODE_CASE(each_entry_of_the_watchlist_is_a_record) {
    world w = world_open(harness_mode());
    world_connect(&w);
    sign_in(&w, 0);
    CHECK_STATUS(bird_client_bind(w.client, "online", note_handler, "an event of no channel", NULL, NULL, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_bind(w.client, NULL, note_handler, "for every event", NULL, NULL, NULL), BIRD_OK);
    watch(w.client, "");
    emit_entries(&w, ENTRY("online", "\"m_8\",7,null,\"q\\\"\\u00e9\"") ",1," ENTRY("offline", "\"m_9\""));
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_entry(0), "online:m_8+7+q\"\xc3\xa9:[\"m_8\",\"7\",\"q\\\"\xc3\xa9\"]");
    CHECK_TEXT(journal_entry(1), "offline:m_9:[\"m_9\"]");
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    CHECK_INT(statistics.watchlist_entries_malformed, 1);
    world_close(&w);
}

MODE_CASE(a_late_observer_is_told_who_is_there) {
    world w = world_open(harness_mode());
    world_connect(&w);
    sign_in(&w, 0);
    watch(w.client, "");
    emit_entries(&w, ENTRY("online", "\"m_8\",\"m_9\"") "," ENTRY("offline", "\"m_1\""));
    emit_entries(&w, ENTRY("offline", "\"m_9\"") "," ENTRY("away", "\"m_8\""));
    UNTIL(&w, journal_count() == 4);
    journal_clear();
    watch(w.client, "late ");
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_entry(0), "late online:m_8:[\"m_8\"]");
    CHECK_TEXT(journal_entry(1), "late offline:m_9+m_1:[\"m_9\",\"m_1\"]");
    emit_entries(&w, ENTRY("online", "\"m_1\""));
    UNTIL(&w, journal_count() == 4);
    CHECK_TEXT(journal_entry(3), "late online:m_1:[\"m_1\"]");
    world_close(&w);
}

/* Another signin may bring another list, another connection certainly does. */
MODE_CASE(the_watchlist_ends_with_its_signin) {
    world w = world_open(harness_mode());
    world_connect(&w);
    sign_in(&w, 0);
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_SIGNED_IN, note_handler, "in", NULL, NULL, NULL),
                 BIRD_OK);
    CHECK_STATUS(
        bird_client_observe(w.client, 1u << BIRD_RECORD_CONNECTION_LOST, note_handler, "lost", NULL, NULL, NULL),
        BIRD_OK);
    for (int round = 0; round < 2; round++) {
        emit_entries(&w, ENTRY("online", "\"m_8\""));
        world_settle(&w);
        journal_clear();
        watch(w.client, "");
        UNTIL(&w, journal_count() == 1);
        CHECK_TEXT(journal_entry(0), "online:m_8:[\"m_8\"]");
        if (round == 0) {
            CHECK_STATUS(bird_client_signin(w.client, BIRD_SIGNIN_REFRESH, 0, NULL), BIRD_OK);
        } else {
            world_drop(&w);
        }
        UNTIL(&w, journal_count() >= 2);
        watch(w.client, "late ");
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
        world_settle(&w);
        CHECK(strstr(journal_text(), "late") == NULL);
        journal_clear();
    }
    world_close(&w);
}

/* Observers come while changes come: each hears every change after its first, none twice. */
typedef struct follower {
    atomic_int told;
    char last[16];
} follower;

static void follow(const bird_record *record, void *user_data) {
    follower *f = user_data;
    if (strcmp(f->last, record->event) == 0) {
        harness_fail(__FILE__, __LINE__, "told twice in a row that the member is %s", f->last);
    }
    snprintf(f->last, sizeof f->last, "%s", record->event);
    atomic_fetch_add(&f->told, 1);
}

MODE_CASE(late_observers_miss_no_change_and_hear_none_twice) {
    enum { CHANGES = 60 };
    static follower followers[CHANGES];
    world w = world_open(harness_mode());
    world_connect(&w);
    sign_in(&w, 0);
    for (int i = 0; i < CHANGES; i++) {
        emit_entries(&w, i % 2 == 0 ? ENTRY("online", "\"m_8\"") : ENTRY("offline", "\"m_8\""));
        if (i % 3 == 0) {
            world_turn(&w);
        }
        CHECK_STATUS(bird_client_observe(w.client, WATCHLIST, follow, &followers[i], NULL, NULL, NULL), BIRD_OK);
    }
    world_settle(&w);
    for (int i = 0; i < CHANGES; i++) {
        UNTIL(&w, atomic_load(&followers[i].told) > 0);
        CHECK_TEXT(followers[i].last, "offline");
    }
    world_close(&w);
}

/* What the edge says when a list was too long: an error, and the signin has succeeded. */
static void note_error(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_error *error = ((const bird_failure *)record->detail)->error;
    journal_add("%d:%s", bird_error_code(error), bird_error_message(error));
}

MODE_CASE(errors_of_limits_blame_nobody) {
    world w = world_open(harness_mode());
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, note_error, NULL, NULL, NULL, NULL), BIRD_OK);
    world_connect(&w);
    sign_in(&w, 0);
    world_emit(&w, "{\"event\":\"bird:error\",\"data\":{\"code\":4302,\"message\":\"long\"}}");
    world_emit(&w, "{\"event\":\"bird:error\",\"data\":{\"code\":4301,\"message\":\"slow\"}}");
    world_settle(&w);
    CHECK_TEXT(journal_text(), "4302:long 4301:slow");
    CHECK_INT(client_state(w.client), BIRD_STATE_CONNECTED);
    CHECK_INT(channel_state(w.control), BIRD_CHANNEL_SUBSCRIBED);
    world_close(&w);
}

static void note_end(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    if (change->current == BIRD_STATE_FAILED) {
        journal_add("failed:%d:%lld:%s", change->close_code, (long long)change->delay_ms, change->reason_text);
    }
}

/* Terminated or not authorized in time (Bird protocol 18): the reason is passed on, and only the program comes back. */
MODE_CASE(terminated_says_why_and_stays_down) {
    world w = world_open(harness_mode());
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, note_error, NULL, NULL, NULL, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_STATE, note_end, NULL, NULL, NULL, NULL), BIRD_OK);
    world_connect(&w);
    static const char *const reasons[] = {"Member connections terminated", "not authorized within timeout"};
    for (int i = 0; i < 2; i++) {
        char close[128], wanted[256];
        snprintf(close, sizeof close, "[4009,\"%s\"]", reasons[i]);
        CHECK_STATUS(bird_channel_trigger(w.control, "client-close", close, BIRD_NUL, NULL), BIRD_OK);
        UNTIL(&w, client_state(w.client) == BIRD_STATE_FAILED && journal_count() == 2);
        snprintf(wanted, sizeof wanted, "4009:%s failed:4009:-1:%s", reasons[i], reasons[i]);
        CHECK_TEXT(journal_text(), wanted);
        CHECK_STATUS(bird_client_signin(w.client, 0, 0, NULL), BIRD_ERR_STATE);
        CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
        world_settle(&w);
        journal_clear();
    }
    world_close(&w);
}
