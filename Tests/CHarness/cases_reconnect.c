/* Policies of reconnects, giving up, and options of a living client (sections options and client of the header). */
#include "harness.h"

#include <pthread.h>

/* ---------------------------------------------------------------------------------- what a living client accepts ------ */

static void refuse(bird_client *client, const char *key, const char *value, bird_status wanted) {
    bird_error *error = NULL;
    CHECK_STATUS(bird_client_set(client, key, value, &error), wanted);
    CHECK_STATUS(bird_error_status(error), wanted);
    CHECK_TEXT(bird_error_field(error), key);
    CHECK(strlen(bird_error_message(error)) > 0);
    bird_error_free(error);
}

CASE(client_set_takes_live_options_only) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "us1");
    bird_client *client = client_from(options, NULL);
    static const char *const live[][2] = {
        {"preset", "staged"},        {"reconnect", "fixed"},           {"reconnect_delay_ms", "1"},
        {"reconnect_stages", "1x1"}, {"reconnect_attempts_max", "10"}, {"backoff_base_ms", "1"},
        {"backoff_max_ms", "1"},     {"flap_guard", "false"},          {"activity_timeout_ms", "1"},
        {"pong_timeout_ms", "1"},    {"pong_misses_max", "1"},
    };
    for (size_t i = 0; i < sizeof live / sizeof *live; i++) {
        CHECK_STATUS(bird_client_set(client, live[i][0], live[i][1], NULL), BIRD_OK);
        refuse(client, live[i][0], "no such value", BIRD_ERR_VALUE);
    }
    CHECK_STATUS(bird_client_set_int(client, "pong_misses_max", 3, NULL), BIRD_OK);
    static const char *const fixed[] = {"app_key", "region", "ws_host", "may_reconnect", "connect_timeout_ms",
                                        "delivery"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        refuse(client, fixed[i], "1", BIRD_ERR_STATE);
    }
    refuse(client, "pong_misses", "1", BIRD_ERR_OPTION);
    bird_error *error = NULL;
    CHECK_STATUS(bird_client_set_int(client, "reconnect", 1, &error), BIRD_ERR_VALUE);
    CHECK(strstr(bird_error_message(error), "text") != NULL);
    bird_error_free(error);
    CHECK_STATUS(bird_client_set_int(client, "pong_misses_max", 0, NULL), BIRD_ERR_VALUE);
    CHECK_STATUS(bird_client_set_int(client, "connect_timeout_ms", 5, NULL), BIRD_ERR_STATE);
    CHECK_STATUS(bird_client_set(client, NULL, "1", NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_set(client, "preset", NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_set(NULL, "preset", "staged", NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_retry_now(NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_retry_now(client), BIRD_OK);
    CHECK_INT(client_state(client), BIRD_STATE_INITIALIZED);
    CHECK_STATUS(bird_client_close(client, 1000), BIRD_OK);
    CHECK_STATUS(bird_client_set(client, "preset", "staged", NULL), BIRD_ERR_CLOSED);
    CHECK_STATUS(bird_client_retry_now(client), BIRD_ERR_CLOSED);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_client_set_int(client, "pong_misses_max", 1, NULL), BIRD_ERR_HANDLE);
}

/* ------------------------------------------------------------------------------------------------------- plans ------ */

#define LONG_MS "86400000"

static void see_plan(const bird_record *record, void *user_data) {
    (void)user_data;
    if (record->kind == BIRD_RECORD_CONNECTING_IN) {
        const bird_state_change *change = record->detail;
        CHECK(change->struct_size >= sizeof *change);
        journal_add("in:%d:%s%s", change->attempt, change->policy, change->delay_ms > 1000000 ? ":long" : "");
    } else if (record->kind == BIRD_RECORD_CONNECTION_LOST) {
        journal_add("lost");
    } else if (record->kind == BIRD_RECORD_COMPLETION) {
        const bird_completion *completion = record->detail;
        journal_add("done:%s", bird_status_name(completion->status));
    } else if (record->kind == BIRD_RECORD_ERROR) {
        const bird_failure *failure = record->detail;
        journal_add("error:%s", bird_status_name(bird_error_status(failure->error)));
    } else {
        const bird_state_change *change = record->detail;
        CHECK((change->policy[0] != '\0') == (change->delay_ms >= 0));
        if (change->current == BIRD_STATE_DISCONNECTED) {
            journal_add("%s:%s", bird_status_name(change->reason), change->reason_text);
        }
    }
}

/* Connected and joined; what is planned is in the journal. `settings` are pairs that end with NULL. */
static world open_planning(const char *const *settings, bird_handler on_request) {
    bird_options *options = world_options(harness_mode());
    for (; *settings != NULL; settings += 2) {
        set_option(options, settings[0], settings[1]);
    }
    world w = world_open_with(harness_mode(), options);
    if (on_request == NULL) {
        world_grant_requests(w.client);
    } else {
        CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_REQUEST, on_request, NULL, NULL, NULL, NULL),
                     BIRD_OK);
    }
    const uint64_t kinds = 1u << BIRD_RECORD_CONNECTING_IN | 1u << BIRD_RECORD_CONNECTION_LOST |
                           1u << BIRD_RECORD_COMPLETION | 1u << BIRD_RECORD_ERROR | 1u << BIRD_RECORD_STATE;
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_plan, NULL, NULL, NULL, NULL), BIRD_OK);
    world_connect(&w);
    return w;
}

static void wait_until_back(world *w) {
    UNTIL(w, client_state(w->client) == BIRD_STATE_CONNECTED && channel_state(w->control) == BIRD_CHANNEL_SUBSCRIBED);
}

static uint64_t connects(world *w) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w->client, &statistics), BIRD_OK);
    return statistics.connects;
}

static const char *const waits_long[] = {"reconnect", "fixed", "reconnect_delay_ms", LONG_MS, NULL};

MODE_CASE(client_set_plans_what_is_planned_anew) {
    world w = open_planning(waits_long, NULL);
    world_drop(&w);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_entry(0), "lost");
    CHECK_TEXT(journal_entry(1), "in:1:fixed:long");
    CHECK_STATUS(bird_client_set(w.client, "reconnect_stages", "1x" LONG_MS, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_set(w.client, "reconnect", "staged", NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 3); /* other stages were nothing to the plan of then */
    CHECK_TEXT(journal_entry(2), "in:1:staged:long");
    CHECK_STATUS(bird_client_set(w.client, "reconnect_stages", "1x1", NULL), BIRD_OK);
    wait_until_back(&w);
    CHECK_INT(journal_count(), 4);
    CHECK_TEXT(journal_entry(3), "in:1:staged");
    CHECK_INT(connects(&w), 2);
    world_close(&w);
}

MODE_CASE(client_retry_now_begins_what_is_planned) {
    world w = open_planning(waits_long, NULL);
    CHECK_STATUS(bird_client_retry_now(w.client), BIRD_OK); /* connected: no effect */
    for (uint64_t loss = 1; loss <= 3; loss++) {
        world_drop(&w);
        UNTIL(&w, journal_count() == 2 * (int)loss);
        CHECK_TEXT(journal_entry(2 * (int)loss - 1), "in:1:fixed:long");
        CHECK_STATUS(bird_client_retry_now(w.client), BIRD_OK);
        wait_until_back(&w);
        CHECK_INT(connects(&w), loss + 1);
    }
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    CHECK_STATUS(bird_client_retry_now(w.client), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    CHECK_INT(connects(&w), 4);
    world_close(&w);
}

static void retry_at_once(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    if (change->attempt % 2 == 0 || change->delay_ms < 1000000) {
        return;
    }
    CHECK_STATUS(bird_client_set_int(record->client, "pong_misses_max", 2, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_retry_now(record->client), BIRD_OK);
}

MODE_CASE(client_retry_now_and_set_in_a_handler) {
    world w = open_planning(waits_long, NULL);
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_CONNECTING_IN, retry_at_once, NULL, NULL, NULL, NULL),
                 BIRD_OK);
    world_drop(&w);
    UNTIL(&w, connects(&w) == 2);
    wait_until_back(&w);
    world_close(&w);
}

/* ---------------------------------------------------------------------------------------------------- giving up ------ */

static void grant_but_never_reconnect(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    if (question->request_kind == BIRD_REQUEST_RECONNECT) {
        CHECK_STATUS(bird_request_fail(question->request, 0, "not today", NULL), BIRD_OK);
    } else {
        CHECK_STATUS(bird_request_authorize(question->request, "key:sig", NULL, NULL, NULL), BIRD_OK);
    }
}

MODE_CASE(client_gives_up_and_says_so) {
    static const char *const settings[] = {
        "may_reconnect", "1", "reconnect", "fixed", "reconnect_attempts_max", "2", "reconnect_delay_ms", LONG_MS, NULL};
    world w = open_planning(settings, grant_but_never_reconnect);
    world_drop(&w);
    UNTIL(&w, journal_count() == 2); /* lost, and the first plan */
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 7, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_set_int(w.client, "reconnect_delay_ms", 1, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 7);
    CHECK_TEXT(journal_entry(2), "in:1:fixed"); /* planned anew */
    CHECK_TEXT(journal_entry(3), "in:2:fixed");
    CHECK_TEXT(journal_entry(4), "error:BIRD_ERR_GAVE_UP");
    CHECK(strncmp(journal_entry(5), "BIRD_ERR_GAVE_UP:gave up after 2 attempts: ", 43) == 0);
    CHECK_TEXT(journal_entry(6), "done:BIRD_ERR_GAVE_UP");
    CHECK_STATUS(bird_client_retry_now(w.client), BIRD_OK); /* no effect */
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_DISCONNECTED, 0), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, -1), BIRD_ERR_GAVE_UP);
    CHECK_STATUS(bird_client_signin(w.client, 0, 0, NULL), BIRD_ERR_STATE);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, DEADLINE_MS), BIRD_OK);
    wait_until_back(&w);
    UNTIL(&w, channel_state(channel) == BIRD_CHANNEL_SUBSCRIBED);
    bird_channel_release(channel);
    world_close(&w);
}

/* --------------------------------------------------------------------------------------------------- keep-alive ------ */

static uint64_t messages_sent(world *w) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w->client, &statistics), BIRD_OK);
    return statistics.messages_sent;
}

MODE_CASE(client_set_changes_the_keep_alive_of_now) {
    world w = open_planning(waits_long, NULL);
    const uint64_t before = messages_sent(&w);
    CHECK_STATUS(bird_client_set_int(w.client, "activity_timeout_ms", 20, NULL), BIRD_OK);
    UNTIL(&w, messages_sent(&w) >= before + 5); /* pings, which the edge answers */
    CHECK_STATUS(bird_client_set_int(w.client, "activity_timeout_ms", 86400000, NULL), BIRD_OK);
    world_settle(&w);
    CHECK_INT(connects(&w), 1);
    CHECK_INT(client_state(w.client), BIRD_STATE_CONNECTED);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------------ threads ------ */

#define CHANGES 300

static void *change_and_retry(void *client) {
    static const char *const policies[] = {"jitter", "fixed", "staged"};
    for (int i = 0; i < CHANGES; i++) {
        CHECK_STATUS(bird_client_set(client, "reconnect", policies[i % 3], NULL), BIRD_OK);
        CHECK_STATUS(bird_client_set_int(client, "reconnect_delay_ms", 1 + i % 5, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_set_int(client, "pong_misses_max", 1 + i % 3, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_retry_now(client), BIRD_OK);
    }
    return NULL;
}

MODE_CASE(client_set_and_retry_now_from_many_threads) {
    static const char *const settings[] = {"reconnect_stages", "2x1,1x3", NULL};
    world w = open_planning(settings, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&threads[i], NULL, change_and_retry, w.client) == 0);
    }
    for (uint64_t loss = 1; loss <= 3; loss++) {
        world_drop(&w);
        UNTIL(&w, connects(&w) == loss + 1);
        wait_until_back(&w);
    }
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    world_close(&w);
}
