/* Section client of the header. */
#include "harness.h"

#include <pthread.h>

static bird_client *plain_client(const char *host) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "ws_host", host);
    set_option(options, "allow_insecure", "1");
    return client_from(options, NULL);
}

CASE(client_starts_nothing_before_connect) {
    const int fds = count_fds(), threads = count_threads();
    bird_client *client = plain_client("localhost:1");
    CHECK_INT(client_state(client), BIRD_STATE_INITIALIZED);
    CHECK_INT(count_threads(), threads);
    CHECK_INT(count_fds(), fds);
    CHECK_STATUS(bird_client_wait(client, BIRD_STATE_INITIALIZED, 0), BIRD_OK);
    CHECK_STATUS(bird_client_wait(client, BIRD_STATE_CONNECTED, 10), BIRD_ERR_TIMEOUT);
    CHECK_STATUS(bird_client_wait(client, 6, 10), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_wait(client, -1, 10), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_flush(client, 0), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_INT(count_fds(), fds);
}

static void see_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    journal_add("%s>%s:%s", bird_state_name(change->previous), bird_state_name(change->current),
                bird_status_name(change->reason));
}

CASE(client_without_a_server_is_unavailable) {
    world w = {.delivery = BIRD_DELIVERY_THREAD};
    w.client = plain_client("127.0.0.1:1"); /* nobody listens on port 1 */
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_STATE, see_state, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_UNAVAILABLE, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_DISCONNECTED, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_client_signin(w.client, 0, 0, NULL), BIRD_ERR_STATE);
    UNTIL(&w, journal_count() >= 3);
    CHECK_TEXT(journal_entry(0), "initialized>connecting:BIRD_OK");
    CHECK_TEXT(journal_entry(1), "connecting>unavailable:BIRD_ERR_CONNECT");
    CHECK_TEXT(journal_entry(journal_count() - 1), "unavailable>disconnected:BIRD_OK");
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
}

MODE_CASE(client_goes_through_its_states) {
    world w = world_open(harness_mode());
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_STATE, see_state, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    world_connect(&w);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, 0), BIRD_OK);
    char id[32] = "";
    size_t length;
    CHECK_STATUS(bird_client_connection_id(w.client, id, sizeof id, &length), BIRD_OK);
    CHECK(strchr(id, '.') != NULL);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK); /* no effect */
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_DISCONNECTED, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_client_connection_id(w.client, id, sizeof id, &length), BIRD_OK);
    CHECK_TEXT(id, "");
    UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_IDLE);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    world_settle(&w);
    CHECK_TEXT(journal_text(), "initialized>connecting:BIRD_OK connecting>connected:BIRD_OK "
                               "connected>disconnected:BIRD_OK disconnected>connecting:BIRD_OK "
                               "connecting>connected:BIRD_OK");
    world_close(&w);
}

EDGE_CASE(client_refused_by_the_edge_is_failed) {
    world w = world_open(BIRD_DELIVERY_LOOP);
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_STATE, see_state, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    world_connect(&w);
    CHECK_STATUS(bird_channel_trigger(w.control, "client-close", "4009", BIRD_NUL, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_FAILED, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, DEADLINE_MS), BIRD_ERR_REFUSED);
    CHECK_STATUS(bird_client_signin(w.client, 0, 0, NULL), BIRD_ERR_STATE);
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_entry(2), "connected>failed:BIRD_ERR_REFUSED");
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK); /* an explicit call dials again */
    CHECK_STATUS(bird_client_wait(w.client, BIRD_STATE_CONNECTED, DEADLINE_MS), BIRD_OK);
    world_close(&w);
}

static void *connect_once(void *client) {
    CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
    return NULL;
}

EDGE_CASE(client_connects_once_for_many_callers) {
    world w = world_open(BIRD_DELIVERY_THREAD);
    pthread_t threads[5];
    for (int i = 0; i < 5; i++) {
        CHECK(pthread_create(&threads[i], NULL, connect_once, w.client) == 0);
    }
    for (int i = 0; i < 5; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    world_connect(&w);
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    CHECK_INT(statistics.attempts, 1);
    CHECK_INT(statistics.connects, 1);
    world_close(&w);
}

MODE_CASE(client_flushes_and_closes) {
    world w = world_open(harness_mode());
    world_connect(&w);
    CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
    for (int i = 0; i < 100; i++) {
        CHECK_STATUS(bird_channel_trigger(w.control, "client-noted", "{\"n\":1}", BIRD_NUL, NULL), BIRD_OK);
    }
    CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    CHECK_INT(statistics.messages_sent, 101); /* with the subscribe */
    CHECK_STATUS(bird_client_close(w.client, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_ERR_CLOSED);
    world_close(&w);
}

static void see_member(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_member *member = record->detail;
    CHECK_INT(member->id_length, strlen(member->id));
    journal_add("signed_in:%s:%s", member->id, record->data);
}

static void see_completion(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_completion *completion = record->detail;
    CHECK((completion->error == NULL) == (completion->status == BIRD_OK));
    journal_add("%d:%llu:%s", completion->operation, (unsigned long long)record->operation_tag,
                bird_status_name(completion->status));
}

MODE_CASE(client_signs_in_again_after_a_drop) {
    world w = world_open(harness_mode());
    uint64_t binding;
    const uint64_t kinds = 1u << BIRD_RECORD_SIGNED_IN;
    CHECK_STATUS(bird_client_observe(w.client, kinds, see_member, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(
        bird_client_observe(w.client, 1u << BIRD_RECORD_COMPLETION, see_completion, NULL, NULL, &binding, NULL),
        BIRD_OK);
    CHECK_STATUS(bird_client_signin(w.client, 0, 11, NULL), BIRD_OK); /* armed before connect */
    world_connect(&w);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_entry(0), "signed_in:m_1:{\"member_id\":\"m_1\",\"member_info\":{\"name\":\"Noor\"}}");
    CHECK_TEXT(journal_entry(1), "2:11:BIRD_OK");
    char id[16];
    size_t length;
    CHECK_STATUS(bird_client_member_id(w.client, id, sizeof id, &length), BIRD_OK);
    CHECK_TEXT(id, "m_1");

    CHECK_STATUS(bird_client_signin(w.client, 0, 12, NULL), BIRD_OK); /* signed in: completes at once */
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_entry(2), "2:12:BIRD_OK");
    CHECK_STATUS(bird_client_signin(w.client, BIRD_SIGNIN_REFRESH, 13, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 5);
    CHECK_TEXT(journal_entry(4), "2:13:BIRD_OK");
    CHECK_STATUS(bird_client_signin(w.client, 1u << 31, 14, NULL), BIRD_ERR_ARGUMENT);

    journal_clear();
    world_drop(&w);
    UNTIL(&w, journal_count() == 1);
    CHECK(strncmp(journal_entry(0), "signed_in:m_1", 13) == 0);
    world_close(&w);
}

MODE_CASE(member_channel_is_bound_before_signin) {
    world w = world_open(harness_mode());
    bird_channel *member = NULL, *again = NULL;
    CHECK_STATUS(bird_client_member_channel(w.client, &member), BIRD_OK);
    CHECK_STATUS(bird_client_member_channel(w.client, &again), BIRD_OK);
    CHECK(member == again);
    int32_t kind = -1;
    CHECK_STATUS(bird_channel_kind(member, &kind), BIRD_OK);
    CHECK_INT(kind, BIRD_CHANNEL_MEMBER);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(member, "parcel.left", note_handler, "parcel", NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(member), BIRD_ERR_UNSUPPORTED);

    world_connect(&w);
    CHECK_STATUS(bird_client_signin(w.client, 0, 0, NULL), BIRD_OK);
    UNTIL(&w, channel_state(member) == BIRD_CHANNEL_SUBSCRIBED);
    CHECK_STATUS(bird_channel_trigger(member, "client-x", "1", 1, NULL), BIRD_ERR_UNSUPPORTED);
    world_emit_event(&w, "#server-to-user-m_1", "parcel.left", "\"{}\"");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "parcel");
    bird_channel_release(member);
    bird_channel_release(again);
    world_close(&w);
}
