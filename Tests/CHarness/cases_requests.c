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
    const bool is_reconnect = question->request_kind == BIRD_REQUEST_RECONNECT;
    CHECK((strchr(question->connection_id, '.') == NULL) == is_reconnect);
    CHECK((question->cause == NULL) != is_reconnect);
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
    } else if (record->kind == BIRD_RECORD_CONNECTING_IN) {
        const bird_state_change *change = record->detail;
        journal_add("in:%d:%lld:%s", change->attempt, (long long)change->delay_ms, change->reason_text);
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
                              1u << BIRD_RECORD_COMPLETION | 1u << BIRD_RECORD_SIGNIN_ERROR |
                              1u << BIRD_RECORD_CONNECTING_IN;
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

/* Of several threads that answer the same request one does. */
static pthread_barrier_t everybody_is_here;

static void *answer_perhaps(void *request) {
    pthread_barrier_wait(&everybody_is_here);
    const bird_status status = bird_request_authorize(request, "key:sig", NULL, NULL, NULL);
    CHECK(status == BIRD_OK || status == BIRD_ERR_ANSWERED);
    return (void *)(intptr_t)(status == BIRD_OK);
}

#define ANSWERING_THREADS 8

MODE_CASE(request_answered_by_many_threads_is_answered_once) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), keep_request);
    CHECK(pthread_barrier_init(&everybody_is_here, NULL, ANSWERING_THREADS) == 0);
    for (int round = 1; round <= 20; round++) {
        char name[32];
        snprintf(name, sizeof name, "private-%d", round);
        subscribe(&w, name);
        bird_request *request = wait_for_request(&w, round);
        pthread_t threads[ANSWERING_THREADS];
        intptr_t answers = 0;
        for (int i = 0; i < ANSWERING_THREADS; i++) {
            CHECK(pthread_create(&threads[i], NULL, answer_perhaps, request) == 0);
        }
        for (int i = 0; i < ANSWERING_THREADS; i++) {
            void *did_answer;
            CHECK(pthread_join(threads[i], &did_answer) == 0);
            answers += (intptr_t)did_answer;
        }
        CHECK_INT(answers, 1);
        UNTIL(&w, journal_count() == round);
    }
    world_close(&w);
}

static void destroy_and_answer(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    CHECK_STATUS(bird_client_destroy(record->client), BIRD_OK);
    const bird_status status = bird_request_authorize(question->request, "key:sig", NULL, NULL, NULL);
    /* Which of the two comes first is up to the reactor; after it there is nobody to answer to. */
    CHECK(status == BIRD_OK || status == BIRD_ERR_ANSWERED || status == BIRD_ERR_HANDLE);
    atomic_fetch_add(&asked, 1);
}

MODE_CASE(request_answered_by_a_handler_that_destroyed_the_client) {
    world w = open_and_observe(harness_mode(), world_options(harness_mode()), destroy_and_answer);
    subscribe(&w, "private-orders");
    UNTIL(&w, atomic_load(&asked) == 1);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_ERR_HANDLE);
    w.client = NULL;
    world_close(&w);
}

/* ----------------------------------------------------------------------------------------------------- headers ------ */

/* The edge of the case is the endpoint as well; it grants what comes with "X-Token: open". */
static bird_options *options_with_endpoint(void) {
    char endpoint[128];
    snprintf(endpoint, sizeof endpoint, "http://%s/bird/auth", harness_argument(0));
    bird_options *options = world_options(harness_mode());
    set_option(options, "authorizer", "0");
    set_option(options, "auth_endpoint", endpoint);
    set_option(options, "header_provider", "1");
    CHECK_STATUS(bird_options_set_auth_header(options, "X-Token", "shut", NULL), BIRD_OK);
    return options;
}

static const bird_header open_token = {"x-token", "open"};

static void give_headers_and_again(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    CHECK_INT(question->request_kind, BIRD_REQUEST_HEADERS);
    CHECK_TEXT(question->channel_name, "private-orders");
    CHECK(strstr(question->endpoint, "/bird/auth") != NULL);
    CHECK_STATUS(bird_request_headers(question->request, &open_token, 1, NULL), BIRD_OK);
    CHECK_STATUS(bird_request_headers(question->request, &open_token, 1, NULL), BIRD_ERR_ANSWERED);
    CHECK_STATUS(bird_request_fail(question->request, 0, NULL, NULL), BIRD_ERR_ANSWERED);
}

MODE_CASE(headers_replace_those_of_the_options) {
    world w = open_and_observe(harness_mode(), options_with_endpoint(), give_headers_and_again);
    subscribe(&w, "private-orders");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    world_close(&w);
}

static void *give_headers_elsewhere(void *request) {
    CHECK_STATUS(bird_request_headers(request, &open_token, 1, NULL), BIRD_OK);
    return NULL;
}

MODE_CASE(headers_come_later_from_another_thread_or_not_at_all) {
    world w = open_and_observe(harness_mode(), options_with_endpoint(), keep_request);
    subscribe(&w, "private-orders");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, give_headers_elsewhere, wait_for_request(&w, 1)) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    /* None are given: the POST goes out with those of the options, which the endpoint denies. */
    subscribe(&w, "private-ledger");
    CHECK_STATUS(bird_request_headers(wait_for_request(&w, 2), NULL, 0, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 2);
    CHECK(strncmp(journal_entry(1), "BIRD_ERR_DENIED:0:", 18) == 0);
    CHECK(strstr(journal_entry(1), "403") != NULL);
    world_close(&w);
}

/* The call must be refused with this status and a message that has the first text in it and not the second. */
#define REFUSED(status, with, without, call)                                                                           \
    do {                                                                                                               \
        bird_error *error = NULL;                                                                                      \
        CHECK_STATUS(call, status);                                                                                    \
        CHECK(error != NULL && strstr(bird_error_message(error), with) != NULL);                                       \
        CHECK(strstr(bird_error_message(error), without) == NULL);                                                     \
        bird_error_free(error);                                                                                        \
    } while (0)

MODE_CASE(headers_are_checked_and_kept_secret) {
    world w = open_and_observe(harness_mode(), options_with_endpoint(), keep_request);
    subscribe(&w, "private-orders");
    bird_request *request = wait_for_request(&w, 1);
    const bird_header no_name = {NULL, "hush"}, no_value = {"x-token", NULL}, bad_name = {"x token", "hush"},
                      bad_value = {"x-token", "hush\r\nx-other: 1"}, not_utf8 = {"x-token", "hush\xff"};
    const bird_header pair[] = {open_token, bad_value};
    bird_header many[65];
    for (int i = 0; i < 65; i++) {
        many[i] = open_token;
    }
    const bird_status argument = BIRD_ERR_ARGUMENT;
    REFUSED(argument, "headers[0].name", "hush", bird_request_headers(request, &no_name, 1, &error));
    REFUSED(argument, "headers[0].value", "hush", bird_request_headers(request, &no_value, 1, &error));
    REFUSED(argument, "headers[0] has a name", "hush", bird_request_headers(request, &bad_name, 1, &error));
    REFUSED(argument, "headers[0] has a value (of x-token)", "hush",
            bird_request_headers(request, &bad_value, 1, &error));
    REFUSED(argument, "headers[1] has a value (of x-token)", "hush", bird_request_headers(request, pair, 2, &error));
    REFUSED(argument, "headers[0].value", "hush", bird_request_headers(request, &not_utf8, 1, &error));
    REFUSED(argument, "headers", "hush", bird_request_headers(request, NULL, 1, &error));
    REFUSED(BIRD_ERR_SIZE, "64", "hush", bird_request_headers(request, many, 65, &error));
    REFUSED(BIRD_ERR_SIZE, "64", "hush", bird_request_headers(request, many, SIZE_MAX, &error));
    /* Answers to other kinds of request. */
    REFUSED(argument, "bird_request_headers", "key:sig",
            bird_request_authorize(request, "key:sig", NULL, NULL, &error));
    REFUSED(argument, "bird_request_headers", "key:sig", bird_request_proceed(request, 0, &error));
    CHECK_STATUS(bird_request_headers(request, many, 64, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "subscribed");
    world_close(&w);
}

MODE_CASE(headers_refused_are_a_denial_or_asked_for_again) {
    world w = open_and_observe(harness_mode(), options_with_endpoint(), keep_request);
    subscribe(&w, "private-orders");
    CHECK_STATUS(bird_request_fail(wait_for_request(&w, 1), 1, "the token is being renewed", NULL), BIRD_OK);
    CHECK_STATUS(bird_request_fail(wait_for_request(&w, 2), 0, "logged out", NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "BIRD_ERR_DENIED:0:logged out");
    world_close(&w);
}

MODE_CASE(headers_without_an_answer_time_out_and_are_asked_for_again) {
    bird_options *options = options_with_endpoint();
    set_option(options, "auth_timeout_ms", "50");
    world w = open_and_observe(harness_mode(), options, keep_request);
    subscribe(&w, "private-orders");
    bird_request *request = wait_for_request(&w, 1);
    UNTIL(&w, atomic_load(&asked) >= 5);
    CHECK_STATUS(bird_request_headers(request, &open_token, 1, NULL), BIRD_ERR_ANSWERED);
    /* It counts as a transient failure: told after three silent retries. */
    UNTIL(&w, journal_count() == 1);
    CHECK(strncmp(journal_entry(0), "BIRD_ERR_AUTH:1:", 16) == 0);
    request = atomic_load(&kept);
    world_close(&w);
    CHECK_STATUS(bird_request_headers(request, &open_token, 1, NULL), BIRD_ERR_ANSWERED);
}

/* ------------------------------------------------------------------------------------------- leave to reconnect ------ */

static bird_options *options_with_leave(void) {
    bird_options *options = world_options(harness_mode());
    set_option(options, "may_reconnect", "1");
    return options;
}

/* Authorizes, and keeps every other request. */
static void grant_or_keep(const bird_record *record, void *user_data) {
    const bird_question *question = record->detail;
    if (question->request_kind == BIRD_REQUEST_AUTHORIZE_CHANNEL) {
        CHECK_STATUS(bird_request_authorize(question->request, "key:sig", NULL, NULL, NULL), BIRD_OK);
    } else {
        keep_request(record, user_data);
    }
}

static world open_with_leave(bird_handler on_request) {
    world w = open_and_observe(harness_mode(), options_with_leave(), on_request);
    w.control = world_join(&w, "private-control");
    UNTIL(&w, journal_count() == 1);
    journal_clear();
    CHECK_INT(atomic_load(&asked), 0); /* the program's own connect asks nobody */
    return w;
}

static uint64_t attempts_refused(world *w) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(w->client, &statistics), BIRD_OK);
    return statistics.attempts_refused;
}

static void wait_until_back(world *w) {
    UNTIL(w, client_state(w->client) == BIRD_STATE_CONNECTED && channel_state(w->control) == BIRD_CHANNEL_SUBSCRIBED);
}

static void let_it_go_and_again(const bird_record *record, void *user_data) {
    const bird_question *question = record->detail;
    if (question->request_kind != BIRD_REQUEST_RECONNECT) {
        grant_or_keep(record, user_data);
        return;
    }
    CHECK_INT(question->attempt, 1);
    CHECK(question->deadline_ms <= 1000);
    CHECK_STATUS(bird_error_status(question->cause), BIRD_ERR_LOST);
    CHECK_TEXT(question->channel_name, "");
    CHECK_STATUS(bird_request_proceed(question->request, 0, NULL), BIRD_OK);
    CHECK_STATUS(bird_request_proceed(question->request, 0, NULL), BIRD_ERR_ANSWERED);
    CHECK_STATUS(bird_request_fail(question->request, 0, NULL, NULL), BIRD_ERR_ANSWERED);
    atomic_fetch_add(&asked, 1);
}

MODE_CASE(reconnect_is_allowed_in_the_handler_each_time) {
    world w = open_with_leave(let_it_go_and_again);
    for (int loss = 1; loss <= 3; loss++) {
        world_drop(&w);
        UNTIL(&w, atomic_load(&asked) == loss);
        wait_until_back(&w);
    }
    CHECK_INT(attempts_refused(&w), 0);
    world_close(&w);
}

static void *refuse_elsewhere(void *request) {
    CHECK_STATUS(bird_request_fail(request, 0, "metered line", NULL), BIRD_OK);
    return NULL;
}

MODE_CASE(reconnect_is_refused_then_put_off_by_another_thread_and_later) {
    world w = open_with_leave(grant_or_keep);
    world_drop(&w);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, refuse_elsewhere, wait_for_request(&w, 1)) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    bird_request *request = wait_for_request(&w, 2);
    CHECK_INT(attempts_refused(&w), 1);
    const int64_t start = now_ms();
    CHECK_STATUS(bird_request_proceed(request, 300, NULL), BIRD_OK);
    UNTIL(&w, journal_count() == 4);
    CHECK(now_ms() - start >= 290);
    CHECK_INT(atomic_load(&asked), 2); /* what was put off is not asked about again */
    CHECK(strncmp(journal_entry(1), "in:2:", 5) == 0 && strstr(journal_entry(1), "metered line") != NULL);
    CHECK(strncmp(journal_entry(2), "in:2:300:", 9) == 0);
    CHECK_TEXT(journal_entry(3), "subscribed");
    world_close(&w);
}

MODE_CASE(reconnect_without_an_answer_goes_ahead) {
    world w = open_with_leave(grant_or_keep);
    const int64_t start = now_ms();
    world_drop(&w);
    bird_request *request = wait_for_request(&w, 1);
    wait_until_back(&w);
    CHECK(now_ms() - start >= 1000);
    CHECK_STATUS(bird_request_fail(request, 0, "too late", NULL), BIRD_ERR_ANSWERED);
    CHECK_INT(attempts_refused(&w), 0);
    world_close(&w);
}

MODE_CASE(reconnect_answers_are_checked) {
    world w = open_with_leave(grant_or_keep);
    world_drop(&w);
    bird_request *request = wait_for_request(&w, 1);
    const bird_status argument = BIRD_ERR_ARGUMENT;
    REFUSED(argument, "delay_ms", "?", bird_request_proceed(request, -1, &error));
    REFUSED(argument, "delay_ms", "?", bird_request_proceed(request, 86400001, &error));
    REFUSED(argument, "delay_ms", "?", bird_request_proceed(request, INT64_MIN, &error));
    REFUSED(argument, "retriable", "?", bird_request_fail(request, 2, NULL, &error));
    REFUSED(argument, "bird_request_proceed", "?", bird_request_headers(request, &open_token, 1, &error));
    REFUSED(argument, "bird_request_proceed", "?", bird_request_authorize(request, "key:sig", NULL, NULL, &error));
    CHECK_STATUS(bird_request_proceed(request, 0, NULL), BIRD_OK);
    wait_until_back(&w);
    world_close(&w);
}

MODE_CASE(reconnect_question_ends_with_the_programs_own_calls) {
    world w = open_with_leave(grant_or_keep);
    world_drop(&w);
    bird_request *request = wait_for_request(&w, 1);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    wait_until_back(&w);
    CHECK_STATUS(bird_request_fail(request, 0, "too late", NULL), BIRD_ERR_ANSWERED);
    world_drop(&w);
    request = wait_for_request(&w, 2);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    CHECK_STATUS(bird_request_proceed(request, 0, NULL), BIRD_ERR_ANSWERED);
    CHECK_INT(client_state(w.client), BIRD_STATE_DISCONNECTED);
    CHECK_INT(attempts_refused(&w), 0);
    world_close(&w);
}

MODE_CASE(reconnect_question_ends_with_the_client) {
    world w = open_with_leave(grant_or_keep);
    world_drop(&w);
    bird_request *request = wait_for_request(&w, 1);
    world_close(&w);
    CHECK_STATUS(bird_request_proceed(request, 0, NULL), BIRD_ERR_ANSWERED);
}
