/* Options, queues, loops, requests, and what belongs to no handle. */
#include "torture.h"

#define OF_HANDLE MAY(ERR_HANDLE)

PLAIN_CALL(bird_version_number, 1) {
    (void)c;
    CHECK(bird_version_number() == BIRD_VERSION_NUMBER);
    return BIRD_OK;
}

PLAIN_CALL(bird_version_string, 1) {
    (void)c;
    CHECK(strcmp(bird_version_string(), BIRD_VERSION_STRING) == 0);
    return BIRD_OK;
}

PLAIN_CALL(bird_version_check, 1) {
    const bird_status status = bird_version_check((int32_t)draw(c));
    CHECK(status == BIRD_OK || status == BIRD_ERR_UNSUPPORTED);
    return BIRD_OK;
}

PLAIN_CALL(bird_status_name, 1) {
    CHECK(*bird_status_name((bird_status)draw(c)) != '\0');
    return BIRD_OK;
}

PLAIN_CALL(bird_status_message, 1) {
    CHECK(*bird_status_message(-(bird_status)below(c, 50)) != '\0');
    return BIRD_OK;
}

PLAIN_CALL(bird_log_level_name, 1) {
    CHECK(*bird_log_level_name((int32_t)below(c, 8)) != '\0');
    return BIRD_OK;
}

PLAIN_CALL(bird_log_area_name, 1) {
    CHECK(*bird_log_area_name((int32_t)draw(c)) != '\0');
    return BIRD_OK;
}

PLAIN_CALL(bird_data_is_json, 4) {
    const uint64_t bytes = draw(c);
    const int32_t is_json = bird_data_is_json(&bytes, below(c, sizeof bytes + 1));
    CHECK((is_json == 0 || is_json == 1) && bird_data_is_json(NULL, draw(c)) == 0);
    return BIRD_OK;
}

CALL(bird_set_delivery_threads, 1, MAY(ERR_STATE) | MAY(ERR_ARGUMENT)) {
    return bird_set_delivery_threads(once_in(c, 4) ? (int32_t)draw(c) & 0x7FFFFFC0 : 1 + (int32_t)below(c, 4));
}

/* ----------------------------------------------------------------------------------------------------- errors ------ */

static bird_error *an_error(chance *c, bird_status *status) {
    bird_error *error = NULL;
    *status = bird_options_set(pick(c, OPTIONS), "no_such_option", "1", &error);
    CHECK((error != NULL) == (*status != BIRD_OK));
    return error;
}

#define ERROR_CALL(function, check)                                                                                    \
    PLAIN_CALL(function, 2) {                                                                                          \
        bird_status status;                                                                                            \
        bird_error *error = an_error(c, &status);                                                                      \
        CHECK(check);                                                                                                  \
        bird_error_free(error);                                                                                        \
        return BIRD_OK;                                                                                                \
    }

ERROR_CALL(bird_error_status, bird_error_status(error) == status)
ERROR_CALL(bird_error_area, bird_error_area(error) >= 0)
ERROR_CALL(bird_error_field, bird_error_field(error) != NULL)
ERROR_CALL(bird_error_message, bird_error_message(error) != NULL)
ERROR_CALL(bird_error_code, bird_error_code(error) == 0)
ERROR_CALL(bird_error_http_status, bird_error_http_status(error) == 0)
ERROR_CALL(bird_error_curl_code, bird_error_curl_code(error) == 0)
ERROR_CALL(bird_error_endpoint, *bird_error_endpoint(error) == '\0')
ERROR_CALL(bird_error_channel, *bird_error_channel(error) == '\0')
ERROR_CALL(bird_error_retriable, bird_error_retriable(error) <= 1)
ERROR_CALL(bird_error_free, bird_error_status(NULL) <= BIRD_OK)

/* ---------------------------------------------------------------------------------------------------- options ------ */

PLAIN_CALL(bird_options_count, 1) {
    (void)c;
    CHECK(bird_options_count() > 40);
    return BIRD_OK;
}

CALL(bird_options_describe, 4, MAY(ERR_ARGUMENT)) {
    bird_option option = {.struct_size = once_in(c, 8) ? (uint32_t)below(c, 64) : sizeof option};
    return bird_options_describe(below(c, bird_options_count() + 2), once_in(c, 16) ? NULL : &option);
}

CALL(bird_options_create, 4, MAY(ERR_ARGUMENT)) {
    if (once_in(c, 16)) {
        return bird_options_create(NULL);
    }
    bird_options *options = NULL;
    const bird_status status = bird_options_create(&options);
    if (status == BIRD_OK) {
        bird_options *before = atomic_exchange(slot_of(c, OPTIONS), options);
        bird_options_destroy(before);
        bury(OPTIONS, before);
    }
    return status;
}

PLAIN_CALL(bird_options_destroy, 2) {
    bird_options *options = atomic_exchange(slot_of(c, OPTIONS), NULL);
    bird_options_destroy(options);
    bury(OPTIONS, options);
    return BIRD_OK;
}

static const char *const settings[][2] = {
    {"app_key", "pk_torture"},
    {"region", "eu1"},
    {"ws_host", "localhost:1"},
    {"allow_insecure", "1"},
    {"delivery", "loop"},
    {"delivery", "queue"},
    {"overflow", "drop-oldest"},
    {"records", "262142"},
    {"records", "0"},
    {"ca_file", "/nowhere"},
    {"ca_file", ""},
    {"proxy", "socks5://localhost:1"},
    {"auth_endpoint", "x"},
    {"authorizer", "true"},
    {"message_bytes_max", "0"},
    {"tls_min_version", "1.3"},
    {"no_such_option", "1"},
    {"reconnect_stages", "1x5"},
    {"\xff", "1"},
    {"log_level", "\xff"},
};

CALL(bird_options_set, 20, OF_HANDLE | MAY(ERR_OPTION) | MAY(ERR_VALUE) | MAY(ERR_ARGUMENT)) {
    const char *const *setting = ONE_OF(c, settings);
    told t = tell(c);
    return heard(&t, bird_options_set(pick(c, OPTIONS), once_in(c, 64) ? NULL : setting[0],
                                      once_in(c, 64) ? NULL : setting[1], WANTED(t)));
}

CALL(bird_options_set_int, 20, OF_HANDLE | MAY(ERR_OPTION) | MAY(ERR_VALUE) | MAY(ERR_ARGUMENT)) {
    told t = tell(c);
    return heard(&t, bird_options_set_int(pick(c, OPTIONS), ONE_OF(c, settings)[0], (int64_t)(draw(c) >> below(c, 64)),
                                          WANTED(t)));
}

CALL(bird_options_set_auth_header, 10, OF_HANDLE | MAY(ERR_VALUE) | MAY(ERR_SIZE) | MAY(ERR_ARGUMENT)) {
    static const char *const names[] = {"X-A", "X-B", "", "bad name", "Host", "\xff", NULL};
    static const char *const values[] = {"1", "", "a\r\nb", "\xff", NULL};
    told t = tell(c);
    return heard(&t, bird_options_set_auth_header(pick(c, OPTIONS), ONE_OF(c, names), ONE_OF(c, values), WANTED(t)));
}

CALL(bird_options_set_queue, 4, OF_HANDLE) {
    return bird_options_set_queue(pick(c, OPTIONS), pick(c, QUEUES));
}

CALL(bird_options_set_loop, 4, OF_HANDLE) {
    return bird_options_set_loop(pick(c, OPTIONS), pick(c, LOOPS));
}

/* 0: of no client in the ledger. */
CALL(bird_options_set_tag, 4, OF_HANDLE) {
    return bird_options_set_tag(pick(c, OPTIONS), 0);
}

CALL(bird_options_set_log, 6, OF_HANDLE | MAY(ERR_ARGUMENT)) {
    void *ticket = ticket_new(draw(c));
    return bird_options_set_log(pick(c, OPTIONS), once_in(c, 16) ? NULL : on_log, ticket,
                                ticket != NULL ? ticket_destructor : NULL);
}

/* ------------------------------------------------------------------------------------------------------ queue ------ */

/* Beside one that is in use no other takes its place: somebody has to be able to empty it. */
CALL(bird_queue_create, 4, MAY(ERR_ARGUMENT)) {
    bird_queue *queue = NULL;
    const bird_status status = bird_queue_create(once_in(c, 16) ? NULL : &queue);
    void *none = NULL;
    if (queue != NULL && !atomic_compare_exchange_strong(slot_of(c, QUEUES), &none, queue)) {
        CHECK(bird_queue_destroy(queue) == BIRD_OK);
        bury(QUEUES, queue);
    }
    return status;
}

CALL(bird_queue_destroy, 4, OF_HANDLE | MAY(ERR_BUSY)) {
    _Atomic(void *) *slot = slot_of(c, QUEUES);
    void *queue = atomic_load(slot);
    const bird_status status = bird_queue_destroy(queue);
    if (status == BIRD_OK && queue != NULL) {
        bury(QUEUES, queue);
        atomic_compare_exchange_strong(slot, &queue, NULL);
    }
    return status;
}

CALL(bird_queue_fd, 4, OF_HANDLE | MAY(ERR_ARGUMENT)) {
    int32_t fd = -1;
    const bird_status status = bird_queue_fd(pick(c, QUEUES), once_in(c, 32) ? NULL : &fd);
    CHECK(status != BIRD_OK || fd >= 0);
    return status;
}

CALL(bird_queue_wait, 8, OF_HANDLE | MAY(ERR_TIMEOUT) | MAY(ERR_WOKEN)) {
    return bird_queue_wait(pick(c, QUEUES), (int64_t)below(c, 5));
}

CALL(bird_queue_wake, 10, OF_HANDLE) {
    return bird_queue_wake(pick(c, QUEUES));
}

static void release_batch(bird_batch *batch) {
    if (batch != NULL && bird_batch_release(batch) == BIRD_OK) {
        bury(BATCHES, batch);
    }
}

CALL(bird_queue_drain, 30, OF_HANDLE | MAY(ERR_BUSY) | MAY(ERR_ARGUMENT)) {
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count = 0, stride = 0;
    const bird_status status =
        bird_queue_drain(pick(c, QUEUES), &batch, once_in(c, 64) ? NULL : &records, &count, &stride);
    CHECK((batch != NULL) <= (status == BIRD_OK && count > 0 && stride >= sizeof *records));
    if (batch != NULL) {
        on_batch(records, count, stride);
        release_batch(atomic_exchange(slot_of(c, BATCHES), batch));
    }
    return status;
}

CALL(bird_batch_release, 30, OF_HANDLE) {
    bird_batch *batch = pick(c, BATCHES);
    const bird_status status = bird_batch_release(batch);
    if (status == BIRD_OK) {
        bury(BATCHES, batch);
    }
    return status;
}

CALL(bird_queue_dispatch, 60, OF_HANDLE | MAY(ERR_BUSY)) {
    size_t count = 0;
    return bird_queue_dispatch(pick(c, QUEUES), below(c, 100), once_in(c, 8) ? NULL : &count);
}

/* ------------------------------------------------------------------------------------------------------- loop ------ */

CALL(bird_loop_create, 4, MAY(ERR_ARGUMENT)) {
    bird_loop *loop = NULL;
    const bird_status status = bird_loop_create(once_in(c, 16) ? NULL : &loop);
    void *none = NULL;
    if (loop != NULL && !atomic_compare_exchange_strong(slot_of(c, LOOPS), &none, loop)) {
        CHECK(bird_loop_destroy(loop) == BIRD_OK);
        bury(LOOPS, loop);
    }
    return status;
}

CALL(bird_loop_destroy, 4, OF_HANDLE | MAY(ERR_BUSY)) {
    _Atomic(void *) *slot = slot_of(c, LOOPS);
    void *loop = atomic_load(slot);
    const bird_status status = bird_loop_destroy(loop);
    if (status == BIRD_OK && loop != NULL) {
        bury(LOOPS, loop);
        atomic_compare_exchange_strong(slot, &loop, NULL);
    }
    return status;
}

CALL(bird_loop_fd, 4, OF_HANDLE | MAY(ERR_ARGUMENT)) {
    int32_t fd = -1;
    const bird_status status = bird_loop_fd(pick(c, LOOPS), once_in(c, 32) ? NULL : &fd);
    CHECK(status != BIRD_OK || fd >= 0);
    return status;
}

CALL(bird_loop_deadline, 10, OF_HANDLE | MAY(ERR_ARGUMENT)) {
    int64_t deadline_ms = -2;
    const bird_status status = bird_loop_deadline(pick(c, LOOPS), once_in(c, 32) ? NULL : &deadline_ms);
    CHECK(status != BIRD_OK || deadline_ms == -2 || deadline_ms >= -1);
    return status;
}

CALL(bird_loop_run_once, 80, OF_HANDLE | MAY(ERR_BUSY)) {
    return bird_loop_run_once(pick(c, LOOPS), once_in(c, 8) ? (int64_t)below(c, 5) : 0);
}

CALL(bird_loop_wake, 10, OF_HANDLE) {
    return bird_loop_wake(pick(c, LOOPS));
}

/* --------------------------------------------------------------------------------------------------- requests ------ */

#define OF_REQUEST (OF_HANDLE | MAY(ERR_ANSWERED) | MAY(ERR_ARGUMENT))

static bird_status answered(bird_request *request, bird_status status) {
    if (status == BIRD_OK) {
        bury(REQUESTS, request);
    }
    return status;
}

CALL(bird_request_authorize, 10, OF_REQUEST) {
    static const char *const auths[] = {"key:signature", "key:signature", "", "\xff", NULL};
    static const char *const members[] = {"{\"member_id\":\"m_1\"}", "{\"member_id\":7}", "{", "", NULL};
    static const char *const secrets[] = {"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "short", "!", NULL};
    bird_request *request = pick(c, REQUESTS);
    told t = tell(c);
    return answered(request, heard(&t, bird_request_authorize(request, ONE_OF(c, auths), ONE_OF(c, members),
                                                              ONE_OF(c, secrets), WANTED(t))));
}

CALL(bird_request_headers, 10, OF_REQUEST | MAY(ERR_SIZE)) {
    static const bird_header good = {"X-Token", "open"}, bad = {"bad name", "1"}, empty = {NULL, NULL};
    static const bird_header *const headers[] = {&good, &good, &bad, &empty, NULL};
    bird_request *request = pick(c, REQUESTS);
    told t = tell(c);
    return answered(request, heard(&t, bird_request_headers(request, ONE_OF(c, headers),
                                                            once_in(c, 16) ? 65 + draw(c) : below(c, 2), WANTED(t))));
}

CALL(bird_request_proceed, 10, OF_REQUEST) {
    bird_request *request = pick(c, REQUESTS);
    told t = tell(c);
    return answered(request, heard(&t, bird_request_proceed(request, (int64_t)below(c, 60) - 5, WANTED(t))));
}

CALL(bird_request_fail, 10, OF_REQUEST) {
    static const char *const messages[] = {"no", "", NULL, "\xff"};
    bird_request *request = pick(c, REQUESTS);
    told t = tell(c);
    return answered(request,
                    heard(&t, bird_request_fail(request, (int32_t)below(c, 3), ONE_OF(c, messages), WANTED(t))));
}
