/* Clients: made, used by everybody, and ended at any time. */
#include "torture.h"

#define OF_HANDLE MAY(ERR_HANDLE)
#define OF_CLIENT (MAY(ERR_HANDLE) | MAY(ERR_CLOSED))

char log_directory[64];

static void set(bird_options *options, const char *key, const char *value) {
    bird_error *error = NULL;
    const bird_status status = bird_options_set(options, key, value, &error);
    if (status != BIRD_OK && place != PLACE_LOG) {
        FAIL("option %s=%s: %s", key, value, bird_error_message(error));
    }
    bird_error_free(error);
}

static void set_number(bird_options *options, const char *key, uint64_t number) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    set(options, key, text);
}

/* Everything short, so that what depends on time happens too. */
static void set_times(chance *c, bird_options *options) {
    static const char *const policies[] = {"jitter", "jitter", "fixed", "staged"};
    set_number(options, "backoff_base_ms", 1 + below(c, 50));
    set_number(options, "backoff_max_ms", 50 + below(c, 50));
    set(options, "reconnect", ONE_OF(c, policies));
    set_number(options, "reconnect_delay_ms", 1 + below(c, 50));
    set(options, "reconnect_stages", "2x5,1x50");
    set_number(options, "reconnect_attempts_max", once_in(c, 8) ? 1 + below(c, 3) : 0);
    set(options, "flap_guard", once_in(c, 8) ? "1" : "0");
    set_number(options, "connect_timeout_ms", 100 + below(c, 1000));
    set_number(options, "auth_timeout_ms", 20 + below(c, 500));
    set_number(options, "answer_timeout_ms", 20 + below(c, 500));
    set_number(options, "message_timeout_ms", 20 + below(c, 500));
    set_number(options, "activity_timeout_ms", 20 + below(c, 2000));
    set_number(options, "pong_timeout_ms", 20 + below(c, 500));
    set_number(options, "pong_misses_max", 1 + below(c, 3));
}

static void set_authorizers(chance *c, bird_options *options) {
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/auth", edge_port());
    if (once_in(c, 3)) {
        set(options, "auth_endpoint", url);
    } else {
        set(options, "authorizer", "1");
    }
    if (once_in(c, 3)) {
        set(options, "member_auth_endpoint", url);
    } else if (!once_in(c, 8)) {
        set(options, "member_authorizer", "1");
    }
    set(options, "header_provider", once_in(c, 4) ? "1" : "0");
    set(options, "may_reconnect", once_in(c, 4) ? "1" : "0");
}

static void set_log(chance *c, bird_options *options) {
    static const char *const levels[] = {"off", "warn", "info", "verbose"};
    set(options, "log_level", ONE_OF(c, levels));
    if (once_in(c, 2)) {
        void *ticket = ticket_new(draw(c));
        const bird_status status =
            bird_options_set_log(options, on_log, ticket, ticket != NULL ? ticket_destructor : NULL);
        CHECK(status == BIRD_OK || place == PLACE_LOG);
    }
    if (once_in(c, 8)) {
        char path[128];
        snprintf(path, sizeof path, "%s/%llu.log", log_directory, (unsigned long long)below(c, 3));
        set(options, "log_file", path);
        set(options, "log_file_level", "verbose");
        set_number(options, "log_file_bytes_max", 4096 + below(c, 65536));
    }
}

/* The delivery mode; the client may get another queue or loop than the one that is on the shelf now, or none. */
static int32_t set_delivery(chance *c, bird_options *options) {
    static const char *const overflows[] = {"pause", "pause", "drop-oldest", "drop-newest"};
    set(options, "overflow", ONE_OF(c, overflows));
    set_number(options, "queue_records_max", 1 + below(c, 200));
    set_number(options, "queue_bytes_max", 1024 + below(c, 65536));
    if (once_in(c, 4)) {
        bird_options_set_loop(options, pick(c, LOOPS));
    }
    switch (below(c, 3)) {
    case 0:
        set(options, "delivery", "loop");
        return BIRD_DELIVERY_LOOP;
    case 1:
        return bird_options_set_queue(options, pick(c, QUEUES)) == BIRD_OK ? BIRD_DELIVERY_QUEUE : BIRD_DELIVERY_THREAD;
    default:
        return BIRD_DELIVERY_THREAD;
    }
}

static bird_client *client_from(chance *c, bird_options *options, subject *s, bird_status *status) {
    bird_client *client = NULL;
    told t = tell(c);
    *status = heard(&t, bird_client_create(options, &client, WANTED(t)));
    CHECK((client != NULL) == (*status == BIRD_OK));
    subject_begin(s, client);
    /* Sees everything; a client that has it may be used by all. */
    if (client != NULL) {
        void *ticket = ticket_new(draw(c));
        CHECK(bird_client_observe(client, UINT64_MAX, on_any_record, ticket, ticket != NULL ? ticket_destructor : NULL,
                                  NULL, NULL) == BIRD_OK);
    }
    return client;
}

bird_status make_client(chance *c) {
    _Atomic(void *) *slot = slot_of(c, CLIENTS);
    bird_options *options = NULL;
    if (bird_options_create(&options) != BIRD_OK) {
        CHECK(place == PLACE_LOG);
        return BIRD_ERR_CALLBACK;
    }
    char host[32];
    snprintf(host, sizeof host, "127.0.0.1:%d", edge_port());
    set(options, "app_key", "pk_torture");
    set(options, "ws_host", host);
    set(options, "allow_insecure", "1");
    set(options, "network_watch", once_in(c, 4) ? "1" : "0");
    set_number(options, "outbound_bytes_max", 16384 + below(c, 65536));
    set_times(c, options);
    set_authorizers(c, options);
    set_log(c, options);
    const int32_t delivery = set_delivery(c, options);
    subject *s = subject_new(delivery);
    bird_options_set_tag(options, subject_tag(s));
    bird_status status;
    bird_client *client = client_from(c, options, s, &status);
    bird_options_destroy(options);
    if (client != NULL) {
        destroy_client(atomic_exchange(slot, client));
    }
    return status;
}

void destroy_client(bird_client *client) {
    subject *s = subject_of(client);
    if (s != NULL) {
        subject_ends(s);
    }
    const bird_status status = bird_client_destroy(client);
    CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE);
    if (status == BIRD_OK && s != NULL) {
        subject_ended(s);
        bury(CLIENTS, client);
    }
}

/* BIRD_ERR_HANDLE: the queue or the loop of the options has ended since; _VALUE: they have become so. */
CALL(bird_client_create, 6, MAY(ERR_HANDLE) | MAY(ERR_VALUE) | MAY(ERR_ARGUMENT)) {
    if (!once_in(c, 8)) {
        return make_client(c);
    }
    /* From options that everybody changes: a client that is nobody's. */
    bird_client *client = NULL;
    told t = tell(c);
    const bird_status status =
        heard(&t, bird_client_create(pick(c, OPTIONS), once_in(c, 8) ? NULL : &client, WANTED(t)));
    if (client != NULL) {
        CHECK(bird_client_destroy(client) == BIRD_OK);
        bury(CLIENTS, client);
    }
    return status;
}

CALL(bird_client_destroy, 3, OF_HANDLE) {
    bird_client *client = pick(c, CLIENTS);
    subject *s = place == PLACE_LOG ? NULL : subject_of(client);
    if (s != NULL) {
        subject_ends(s);
    }
    const bird_status status = bird_client_destroy(client);
    if (status == BIRD_OK && s != NULL) {
        subject_ended(s);
        bury(CLIENTS, client);
    }
    return status;
}

CALL(bird_client_connect, 60, OF_CLIENT | MAY(ERR_FULL)) {
    bird_client *client = pick(c, CLIENTS);
    subject *s = subject_of(client);
    told t = tell(c);
    const bird_status status = heard(&t, bird_client_connect(client, WANTED(t)));
    if (status == BIRD_OK && s != NULL) {
        subject_connects(s);
    }
    return status;
}

CALL(bird_client_disconnect, 4, OF_CLIENT) {
    return bird_client_disconnect(pick(c, CLIENTS));
}

CALL(bird_client_retry_now, 20, OF_CLIENT | MAY(ERR_FULL)) {
    return bird_client_retry_now(pick(c, CLIENTS));
}

static const char *const live_options[][2] = {
    {"preset", "staged"},
    {"preset", "default"},
    {"activity_timeout_ms", "40"},
    {"pong_timeout_ms", "30"},
    {"pong_misses_max", "2"},
    {"reconnect", "staged"},
    {"reconnect", "jitter"},
    {"backoff_base_ms", "7"},
    {"backoff_max_ms", "70"},
    {"log_level", "verbose"},
    {"log_level", "off"},
    {"log_areas", "wire,channel"},
    {"reconnect_stages", "1x1"},
    {"log_areas", "nonsense"},
    {"flap_guard", "0"},
    {"reconnect_delay_ms", "9"},
    {"flap_guard", "perhaps"},
    {"app_key", "fixed"},
    {"no_such_option", "1"},
    {"pong_timeout_ms", "-5"},
    {"log_console", "off"},
    {"\xff", "\xff"},
    {"reconnect_attempts_max", "0"},
};

CALL(bird_client_set, 20,
     OF_CLIENT | MAY(ERR_FULL) | MAY(ERR_OPTION) | MAY(ERR_VALUE) | MAY(ERR_STATE) | MAY(ERR_ARGUMENT)) {
    const char *const *option = ONE_OF(c, live_options);
    told t = tell(c);
    return heard(&t, bird_client_set(pick(c, CLIENTS), once_in(c, 64) ? NULL : option[0],
                                     once_in(c, 64) ? NULL : option[1], WANTED(t)));
}

CALL(bird_client_set_int, 20,
     OF_CLIENT | MAY(ERR_FULL) | MAY(ERR_OPTION) | MAY(ERR_VALUE) | MAY(ERR_STATE) | MAY(ERR_ARGUMENT)) {
    const char *const *option = ONE_OF(c, live_options);
    const int64_t values[] = {0, 1, 10, 50, -1, INT64_MAX, INT64_MIN};
    told t = tell(c);
    return heard(
        &t, bird_client_set_int(pick(c, CLIENTS), once_in(c, 64) ? NULL : option[0], ONE_OF(c, values), WANTED(t)));
}

CALL(bird_client_network_hint, 20, OF_CLIENT | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    return bird_client_network_hint(pick(c, CLIENTS), (int32_t)below(c, 5));
}

/* Any time in a handler, where it does not wait. */
static int64_t some_time(chance *c, uint64_t bound) {
    return place == PLACE_HANDLER && once_in(c, 2) ? -1 : (int64_t)below(c, bound);
}

WAITING_CALL(bird_client_wait, 4,
             OF_CLIENT | MAY(ERR_TIMEOUT) | MAY(ERR_REFUSED) | MAY(ERR_GAVE_UP) | MAY(ERR_ARGUMENT)) {
    return bird_client_wait(pick(c, CLIENTS), (int32_t)below(c, 7), some_time(c, 20));
}

WAITING_CALL(bird_client_flush, 4, OF_CLIENT | MAY(ERR_TIMEOUT)) {
    return bird_client_flush(pick(c, CLIENTS), some_time(c, 10));
}

WAITING_CALL(bird_client_close, 1, OF_CLIENT | MAY(ERR_TIMEOUT)) {
    return bird_client_close(pick(c, CLIENTS), some_time(c, 10));
}

CALL(bird_client_state, 20, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    int32_t state = -1;
    const bird_status status = bird_client_state(pick(c, CLIENTS), once_in(c, 32) ? NULL : &state);
    CHECK(status != BIRD_OK || (state >= BIRD_STATE_INITIALIZED && state <= BIRD_STATE_FAILED));
    return status;
}

PLAIN_CALL(bird_state_name, 2) {
    CHECK(*bird_state_name((int32_t)draw(c)) != '\0' && *bird_state_name((int32_t)below(c, 6)) != '\0');
    return BIRD_OK;
}

typedef bird_status (*copy_out)(bird_client *, char *, size_t, size_t *);

static bird_status copied(chance *c, copy_out function, void *handle) {
    char text[256];
    size_t length = 0;
    const size_t sizes[] = {0, 1, 16, sizeof text};
    const size_t size = ONE_OF(c, sizes);
    const bird_status status = function(handle, text, size, once_in(c, 4) ? NULL : &length);
    CHECK(status != BIRD_OK || (size > 0 && memchr(text, '\0', size) != NULL));
    return status;
}

CALL(bird_client_connection_id, 20, OF_CLIENT | MAY(ERR_SPACE)) {
    return copied(c, bird_client_connection_id, pick(c, CLIENTS));
}

CALL(bird_client_member_id, 20, OF_CLIENT | MAY(ERR_SPACE)) {
    return copied(c, bird_client_member_id, pick(c, CLIENTS));
}

CALL(bird_client_dump, 4, OF_HANDLE | MAY(ERR_SPACE)) {
    char text[32768];
    size_t length = 0;
    const bird_status status = bird_client_dump(pick(c, CLIENTS), text, sizeof text, &length);
    CHECK(status != BIRD_OK || bird_data_is_json(text, length) == 1);
    return status;
}

CALL(bird_client_statistics, 20, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    bird_statistics statistics = {.struct_size = once_in(c, 16) ? (uint32_t)below(c, 64) : sizeof statistics};
    return bird_client_statistics(pick(c, CLIENTS), once_in(c, 32) ? NULL : &statistics);
}

static void put_channel(chance *c, bird_channel *channel) {
    bird_channel_release(atomic_exchange(slot_of(c, CHANNELS), channel));
}

CALL(bird_client_subscribe, 40, OF_CLIENT | MAY(ERR_NAME) | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    bird_client *client = pick(c, CLIENTS);
    bird_channel *channel = NULL;
    const uint64_t tag = once_in(c, 2) ? operation_new(subject_of(client)) : 0;
    told t = tell(c);
    const bird_status status = heard(&t, bird_client_subscribe(client, once_in(c, 64) ? NULL : any_name(c), tag,
                                                               once_in(c, 64) ? NULL : &channel, WANTED(t)));
    operation_asked(tag, status == BIRD_OK);
    if (channel != NULL) {
        put_channel(c, channel);
    }
    return status;
}

CALL(bird_client_member_channel, 10, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    bird_channel *channel = NULL;
    const bird_status status = bird_client_member_channel(pick(c, CLIENTS), once_in(c, 64) ? NULL : &channel);
    CHECK((channel != NULL) == (status == BIRD_OK));
    if (channel != NULL) {
        put_channel(c, channel);
    }
    return status;
}

/* BIRD_ERR_VALUE: the client has no authorizer for members. */
CALL(bird_client_signin, 20, OF_CLIENT | MAY(ERR_STATE) | MAY(ERR_FULL) | MAY(ERR_VALUE) | MAY(ERR_ARGUMENT)) {
    bird_client *client = pick(c, CLIENTS);
    const uint64_t tag = once_in(c, 2) ? operation_new(subject_of(client)) : 0;
    told t = tell(c);
    const bird_status status =
        heard(&t, bird_client_signin(client, once_in(c, 16) ? 6 : (uint32_t)below(c, 2), tag, WANTED(t)));
    operation_asked(tag, status == BIRD_OK);
    return status;
}
