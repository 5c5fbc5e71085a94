/* Section requests of the header. */
#include "harness.h"

#include <pthread.h>

#define REQUESTS (1u << BIRD_RECORD_REQUEST)

/* What the handlers of this file leave behind for the test's own thread. */
static _Atomic(bird_request *) kept;
static atomic_int asked;

static void keep_request(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    CHECK(question->struct_size >= sizeof *question);
    CHECK(question->request != NULL);
    CHECK(question->deadline_ms > 0);
    CHECK(strchr(question->connection_id, '.') != NULL);
    atomic_store(&kept, question->request);
    atomic_fetch_add(&asked, 1);
}

static void see_outcome(const bird_record *record, void *user_data) {
    (void)user_data;
    if (record->kind == BIRD_RECORD_SUBSCRIBED) {
        journal_add("subscribed");
        return;
    }
    const bird_error *error;
    if (record->kind == BIRD_RECORD_SUBSCRIPTION_ERROR) {
        const bird_subscription *subscription = record->detail;
        error = subscription->error;
        journal_add("%s:%d:%s", bird_status_name(bird_error_status(error)), subscription->will_retry,
                    bird_error_message(error));
    } else if (record->kind == BIRD_RECORD_COMPLETION) {
        const bird_completion *completion = record->detail;
        journal_add("done:%s", bird_status_name(completion->status));
    } else {
        const bird_failure *failure = record->detail;
        journal_add("signin:%s", bird_status_name(bird_error_status(failure->error)));
    }
}

static world open_and_observe(int32_t delivery, bird_options *options, bird_handler on_request) {
    world w = world_open_with(delivery, options);
    uint64_t binding;
    const uint64_t outcomes = 1u << BIRD_RECORD_SUBSCRIBED | 1u << BIRD_RECORD_SUBSCRIPTION_ERROR |
                              1u << BIRD_RECORD_COMPLETION | 1u << BIRD_RECORD_SIGNIN_ERROR;
    CHECK_STATUS(bird_client_observe(w.client, REQUESTS, on_request, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_observe(w.client, outcomes, see_outcome, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED);
    return w;
}

static bird_request *wait_for_request(world *w, int number) {
    UNTIL(w, atomic_load(&asked) == number);
    return atomic_load(&kept);
}

static void subscribe(world *w, const char *name) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w->client, name, 0, &channel, NULL), BIRD_OK);
    bird_channel_release(channel);
}

static void answer_now_and_again(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    CHECK_INT(question->request_kind, BIRD_REQUEST_AUTHORIZE_CHANNEL);
    CHECK_TEXT(question->channel_name, "private-orders");
    CHECK_STATUS(bird_request_authorize(question->request, "key:sig", NULL, NULL, NULL), BIRD_OK);
    const bird_status second = bird_request_authorize(question->request, "key:sig", NULL, NULL, NULL);
    CHECK(second == BIRD_ERR_ANSWERED || second == BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_request_fail(question->request, 0, "changed my mind", NULL), second);
}

MODE_CASE(request_is_answered_in_its_handler_and_once) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), answer_now_and_again);
    subscribe(&w, "private-orders");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    world_close(&w);
}

static void *answer_elsewhere(void *request) {
    CHECK_STATUS(bird_request_authorize(request, "key:sig", NULL, NULL, NULL), BIRD_OK);
    return NULL;
}

MODE_CASE(request_is_answered_later_by_another_thread) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    subscribe(&w, "private-orders");
    bird_request *request = wait_for_request(&w, 1);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, answer_elsewhere, request) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    CHECK_STATUS(bird_request_authorize(request, "key:sig", NULL, NULL, NULL), BIRD_ERR_ANSWERED);
    world_close(&w);
    const bird_status status = bird_request_fail(request, 0, "too late", NULL);
    CHECK(status == BIRD_ERR_HANDLE || status == BIRD_ERR_ANSWERED);
}

MODE_CASE(request_refused_is_a_denial) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "private-orders", 7, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_request_fail(wait_for_request(&w, 1), 0, "not yours", NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK(strncmp(journal_entry(0), "BIRD_ERR_DENIED:0:", 18) == 0);
    CHECK(strstr(journal_entry(0), "not yours") != NULL);
    CHECK_TEXT(journal_entry(1), "done:BIRD_ERR_DENIED");
    CHECK_INT(channel_state(channel), BIRD_CHANNEL_FAILED);
    /* Asked again by the program, and not before. */
    CHECK_STATUS(bird_client_subscribe(w.client, "private-orders", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_request_authorize(wait_for_request(&w, 2), "key:sig", NULL, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_entry(2), "subscribed");
    world_close(&w);
}

MODE_CASE(request_failed_for_now_is_asked_again) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    subscribe(&w, "private-orders");
    CHECK_STATUS(bird_request_fail(wait_for_request(&w, 1), 1, "busy", NULL), BIRD_OK);
    CHECK_STATUS(bird_request_authorize(wait_for_request(&w, 2), "key:sig", NULL, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() >= 1 && strcmp(journal_entry(journal_count() - 1), "subscribed") == 0);
    world_close(&w);
}

MODE_CASE(request_without_an_answer_times_out_and_is_asked_again) {
    bird_options *options = world_options(harness_mode());
    set_option(options, "auth_timeout_ms", "50");
    world w = open_and_observe(harness_mode(), options, keep_request);
    subscribe(&w, "private-orders");
    bird_request *request = wait_for_request(&w, 1);
    UNTIL(&w, atomic_load(&asked) >= 2);
    CHECK_STATUS(bird_request_authorize(request, "key:sig", NULL, NULL, NULL), BIRD_ERR_ANSWERED);
    world_close(&w);
}

/* An answer belongs to the connection it was asked for. */
MODE_CASE(request_of_a_lost_connection_is_over) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    subscribe(&w, "private-orders");
    bird_request *first = wait_for_request(&w, 1);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    const bird_status status = bird_request_authorize(first, "key:stale", NULL, NULL, NULL);
    CHECK(status == BIRD_ERR_ANSWERED || status == BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    bird_request *second = wait_for_request(&w, 2);
    CHECK(first != second);
    CHECK_STATUS(bird_request_authorize(second, "key:fresh", NULL, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    world_close(&w);
}

MODE_CASE(request_open_at_destroy_is_over) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    subscribe(&w, "private-orders");
    bird_request *request = wait_for_request(&w, 1);
    world_close(&w);
    const bird_status status = bird_request_authorize(request, "key:sig", NULL, NULL, NULL);
    CHECK(status == BIRD_ERR_ANSWERED || status == BIRD_ERR_HANDLE || status == BIRD_ERR_CLOSED);
}

MODE_CASE(request_answers_are_checked) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    subscribe(&w, "presence-room");
    bird_request *request = wait_for_request(&w, 1);
    CHECK_STATUS(bird_request_authorize(request, NULL, NULL, NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_request_authorize(request, "", NULL, NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_request_authorize(request, "key:\xff", NULL, NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_request_fail(request, 0, NULL, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK(strncmp(journal_entry(0), "BIRD_ERR_DENIED:0:", 18) == 0);
    world_close(&w);
}

MODE_CASE(request_for_signin_is_refused_and_granted) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    CHECK_STATUS(bird_client_signin(w.client, 0, 3, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_signin(w.client, 0, 4, NULL), BIRD_OK); /* shares the question */
    CHECK_STATUS(bird_request_fail(wait_for_request(&w, 1), 0, "who are you", NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK_TEXT(journal_text(), "done:BIRD_ERR_DENIED done:BIRD_ERR_DENIED");
    CHECK_STATUS(bird_client_signin(w.client, 0, 5, NULL), BIRD_OK);
    CHECK_STATUS(bird_request_authorize(wait_for_request(&w, 2), "key:sig", "{\"member_id\":\"m_1\"}", NULL, NULL),
                 BIRD_OK);
    UNTIL(&w, journal_count() == 3);
    CHECK_TEXT(journal_entry(2), "done:BIRD_OK");
    world_close(&w);
}
