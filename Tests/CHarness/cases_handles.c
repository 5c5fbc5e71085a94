/* Section handles of the header: what every function makes of a value that is no handle of its kind, or no longer one. */
#include "harness.h"

#include <pthread.h>

static void nothing(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

/* Calls every function that takes a client; each must give one of the two statuses. */
#define EXPECT(call)                                                                                                   \
    do {                                                                                                               \
        const bird_status expect_status = (call);                                                                      \
        if (expect_status != wanted && expect_status != or_wanted) {                                                   \
            harness_fail(__FILE__, __LINE__, "%s gave %s for %p", #call, bird_status_name(expect_status), value);      \
        }                                                                                                              \
    } while (0)

static void all_client_calls(void *value, bird_status wanted, bird_status or_wanted) {
    bird_client *client = value;
    bird_channel *channel = NULL;
    int32_t state = 0;
    uint64_t binding = 0;
    uint32_t event_id = 0;
    char buffer[16];
    size_t length = 0;
    bird_statistics statistics = {.struct_size = sizeof statistics};
    EXPECT(bird_client_connect(client, NULL));
    EXPECT(bird_client_disconnect(client));
    EXPECT(bird_client_network_hint(client, BIRD_NETWORK_UP));
    EXPECT(bird_client_wait(client, BIRD_STATE_CONNECTED, 0));
    EXPECT(bird_client_flush(client, 0));
    EXPECT(bird_client_close(client, 0));
    EXPECT(bird_client_state(client, &state));
    EXPECT(bird_client_connection_id(client, buffer, sizeof buffer, &length));
    EXPECT(bird_client_subscribe(client, "orders", 0, &channel, NULL));
    EXPECT(bird_client_signin(client, 0, 0, NULL));
    EXPECT(bird_client_member_id(client, buffer, sizeof buffer, &length));
    EXPECT(bird_client_member_channel(client, &channel));
    EXPECT(bird_client_bind(client, "tick", nothing, NULL, NULL, &binding, NULL));
    EXPECT(bird_client_observe(client, 1, nothing, NULL, NULL, &binding, NULL));
    EXPECT(bird_client_unbind(client, 1));
    EXPECT(bird_client_unbind_event(client, "tick"));
    EXPECT(bird_client_unbind_all(client));
    EXPECT(bird_client_intern(client, "tick", &event_id, NULL));
    EXPECT(bird_client_statistics(client, &statistics));
}

static void all_channel_calls(void *value, bird_status wanted, bird_status or_wanted) {
    bird_channel *channel = value;
    int32_t number = 0;
    uint64_t binding = 0;
    size_t count = 0;
    char buffer[16];
    bird_members *members = NULL;
    EXPECT(bird_channel_unsubscribe(channel));
    EXPECT(bird_channel_trigger(channel, "client-tick", "1", 1, NULL));
    EXPECT(bird_channel_state(channel, &number));
    EXPECT(bird_channel_kind(channel, &number));
    EXPECT(bird_channel_name(channel, buffer, sizeof buffer, &count));
    EXPECT(bird_channel_set_tag(channel, 1));
    EXPECT(bird_channel_my_id(channel, buffer, sizeof buffer, &count));
    EXPECT(bird_channel_member_count(channel, &count));
    EXPECT(bird_channel_members(channel, &members));
    EXPECT(bird_channel_bind(channel, "tick", nothing, NULL, NULL, &binding, NULL));
    EXPECT(bird_channel_unbind_event(channel, "tick"));
    EXPECT(bird_channel_unbind_all(channel));
    bird_channel_release(channel);
}

static void all_options_calls(void *value, bird_status wanted, bird_status or_wanted) {
    bird_options *options = value;
    bird_client *client = NULL;
    EXPECT(bird_options_set(options, "app_key", "pk_demo", NULL));
    EXPECT(bird_options_set_int(options, "pong_timeout_ms", 1, NULL));
    EXPECT(bird_options_set_auth_header(options, "X-Token", "abc", NULL));
    EXPECT(bird_options_set_tag(options, 1));
    EXPECT(bird_client_create(options, &client, NULL));
    CHECK(client == NULL);
}

static void all_queue_calls(void *value, bird_status wanted, bird_status or_wanted) {
    bird_queue *queue = value;
    int32_t fd = -1;
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count = 0, stride = 0;
    EXPECT(bird_queue_fd(queue, &fd));
    EXPECT(bird_queue_wait(queue, 0));
    EXPECT(bird_queue_wake(queue));
    EXPECT(bird_queue_drain(queue, &batch, &records, &count, &stride));
    EXPECT(bird_queue_dispatch(queue, 0, &count));
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    EXPECT(bird_options_set_queue(options, queue));
    bird_options_destroy(options);
}

static void all_request_calls(void *value, bird_status wanted, bird_status or_wanted) {
    bird_request *request = value;
    EXPECT(bird_request_authorize(request, "key:signature", NULL, NULL, NULL));
    EXPECT(bird_request_headers(request, &(bird_header){"a", "b"}, 1, NULL));
    EXPECT(bird_request_proceed(request, 0, NULL));
    EXPECT(bird_request_fail(request, 0, "no", NULL));
}

static void all_batch_calls(void *value, bird_status wanted, bird_status or_wanted) {
    EXPECT(bird_batch_release(value));
}

/* A batch and a request have no other call that would tell; the destroying calls come last. */
static void all_calls(void *value, bird_status wanted) {
    const bird_status or_wanted = wanted;
    all_client_calls(value, wanted, wanted);
    all_channel_calls(value, wanted, wanted);
    all_options_calls(value, wanted, wanted);
    all_queue_calls(value, wanted, wanted);
    all_request_calls(value, wanted, wanted);
    all_batch_calls(value, wanted, wanted);
    if (value != NULL) {
        EXPECT(bird_client_destroy(value));
        EXPECT(bird_queue_destroy(value));
    }
    bird_options_destroy(value);
}

CASE(null_is_a_status_everywhere) {
    all_calls(NULL, BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_destroy(NULL), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(NULL), BIRD_OK);
    bird_members_free(NULL);
    CHECK_INT(bird_members_count(NULL), 0);
    CHECK_TEXT(bird_members_id(NULL, 0), "");
    CHECK_TEXT(bird_members_info(NULL, 0), "");
    CHECK_INT(bird_members_id_length(NULL, 0), 0);
    CHECK_INT(bird_data_is_json(NULL, 0), 0);
    CHECK_INT(bird_data_is_json(NULL, BIRD_NUL), 0);
    CHECK_INT(bird_data_is_json(NULL, 100), 0);
}

/* With a good handle and NULL where a value or a place for one is needed. */
CASE(null_arguments_are_refused) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = NULL;
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);
    bird_channel *channel = NULL, *none = NULL;
    CHECK_STATUS(bird_client_subscribe(client, "presence-room", 0, &channel, NULL), BIRD_OK);
    bird_error *error = NULL;
    uint64_t binding = 0;
    size_t size = 0;
    bird_batch *batch;
    const bird_record *records;

    CHECK_STATUS(bird_options_create(NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_set(options, NULL, "1", &error), BIRD_ERR_ARGUMENT);
    CHECK_TEXT(bird_error_field(error), "key");
    bird_error_free(error);
    CHECK_STATUS(bird_options_set(options, "app_key", NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_set_int(options, NULL, 1, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_set_auth_header(options, NULL, "a", NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_set_auth_header(options, "a", NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_create(options, NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_state(client, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_connection_id(client, NULL, 8, &size), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_member_channel(client, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_subscribe(client, "orders", 0, NULL, NULL), BIRD_ERR_ARGUMENT);
    error = NULL;
    CHECK_STATUS(bird_client_subscribe(client, NULL, 0, &none, &error), BIRD_ERR_ARGUMENT);
    CHECK_TEXT(bird_error_field(error), "name");
    bird_error_free(error);
    CHECK_STATUS(bird_client_bind(client, "tick", NULL, NULL, NULL, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_observe(client, 1, NULL, NULL, NULL, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_intern(client, "tick", NULL, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_client_statistics(client, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_trigger(channel, NULL, "1", 1, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_state(channel, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_kind(channel, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_member_count(channel, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_members(channel, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_bind(channel, "tick", NULL, NULL, NULL, &binding, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_create(NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_fd(queue, NULL), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_drain(queue, NULL, &records, &size, &size), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_drain(queue, &batch, NULL, &size, &size), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_drain(queue, &batch, &records, NULL, &size), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_queue_drain(queue, &batch, &records, &size, NULL), BIRD_ERR_ARGUMENT);

    bird_options_destroy(options);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

CASE(wild_values_are_no_handles) {
    /* A live object of each kind, so that there is something to mistake a wild value for. */
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = NULL;
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);

    for (uintptr_t small = 1; small <= 1024; small++) {
        all_calls((void *)small, BIRD_ERR_HANDLE);
    }
    uint64_t state = 88172645463325252u;
    for (int i = 0; i < 1024; i++) {
        all_calls((void *)(uintptr_t)next_random(&state), BIRD_ERR_HANDLE);
    }
    for (int bit = 0; bit < 64; bit++) {
        all_calls((void *)(uintptr_t)(UINT64_C(1) << bit), BIRD_ERR_HANDLE);
    }
    all_calls((void *)UINTPTR_MAX, BIRD_ERR_HANDLE);
    all_calls(&state, BIRD_ERR_HANDLE);

    CHECK_INT(client_state(client), BIRD_STATE_INITIALIZED);
    bird_options_destroy(options);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

CASE(handles_of_another_kind_are_refused) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *client = NULL;
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);

    const bird_status wrong = BIRD_ERR_HANDLE;
    void *of_no_client[] = {queue, options, channel};
    void *of_no_channel[] = {queue, options, client};
    void *of_no_options[] = {queue, channel, client};
    void *of_no_queue[] = {options, channel, client};
    for (int i = 0; i < 3; i++) {
        all_client_calls(of_no_client[i], wrong, wrong);
        CHECK_STATUS(bird_client_destroy(of_no_client[i]), wrong);
        all_channel_calls(of_no_channel[i], wrong, wrong);
        all_options_calls(of_no_options[i], wrong, wrong);
        bird_options_destroy(of_no_options[i]);
        all_queue_calls(of_no_queue[i], wrong, wrong);
        CHECK_STATUS(bird_queue_destroy(of_no_queue[i]), wrong);
    }
    void *all[] = {queue, options, channel, client};
    for (int i = 0; i < 4; i++) {
        all_request_calls(all[i], wrong, wrong);
        all_batch_calls(all[i], wrong, wrong);
    }

    CHECK_INT(channel_state(channel), BIRD_CHANNEL_IDLE);
    bird_options_destroy(options);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
}

static bird_client *new_client(void) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    return client_from(options, NULL);
}

CASE(destroyed_handles_stay_dead) {
    bird_client *client = new_client();
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(client, "presence-room", 0, &channel, NULL), BIRD_OK);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    bird_options_destroy(options);

    /* Their places are taken by others many times over; the old values never come to life again. */
    for (int round = 0; round < 2000; round++) {
        bird_client *other = new_client();
        bird_channel *other_channel = NULL;
        bird_queue *other_queue = NULL;
        CHECK_STATUS(bird_client_subscribe(other, "presence-room", 0, &other_channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_queue_create(&other_queue), BIRD_OK);
        CHECK(other != client && other_channel != channel && other_queue != queue);
        CHECK_STATUS(bird_client_destroy(other), BIRD_OK);
        CHECK_STATUS(bird_queue_destroy(other_queue), BIRD_OK);
    }
    all_client_calls(client, BIRD_ERR_HANDLE, BIRD_ERR_CLOSED);
    all_channel_calls(channel, BIRD_ERR_HANDLE, BIRD_ERR_CLOSED);
    all_options_calls(options, BIRD_ERR_HANDLE, BIRD_ERR_HANDLE);
    all_queue_calls(queue, BIRD_ERR_HANDLE, BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_destroy(client), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_ERR_HANDLE);
    bird_options_destroy(options);
}

CASE(closed_client_says_so) {
    bird_client *client = new_client();
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(client, "presence-room", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_close(client, 1000), BIRD_OK);
    all_client_calls(client, BIRD_ERR_CLOSED, BIRD_ERR_CLOSED);
    all_channel_calls(channel, BIRD_ERR_CLOSED, BIRD_ERR_CLOSED);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}

typedef struct race {
    bird_client *client;
    atomic_int destroyed;
} race;

static void *destroy_too(void *argument) {
    race *r = argument;
    const bird_status status = bird_client_destroy(r->client);
    CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE || status == BIRD_ERR_CLOSED);
    if (status == BIRD_OK) {
        atomic_fetch_add(&r->destroyed, 1);
    }
    return NULL;
}

CASE(one_of_many_destroys_wins) {
    for (int round = 0; round < 200; round++) {
        race r = {.client = new_client()};
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_create(&threads[i], NULL, destroy_too, &r) == 0);
        }
        for (int i = 0; i < 4; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
        }
        CHECK_INT(atomic_load(&r.destroyed), 1);
    }
}

CASE(copy_out_tells_the_length_and_never_cuts) {
    bird_client *client = new_client();
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(client, "orders", 0, &channel, NULL), BIRD_OK);
    char buffer[16];
    size_t length = 99;

    memset(buffer, '?', sizeof buffer);
    CHECK_STATUS(bird_channel_name(channel, buffer, 7, &length), BIRD_OK);
    CHECK_TEXT(buffer, "orders");
    CHECK_INT(length, 6);
    CHECK(buffer[7] == '?');

    memset(buffer, '?', sizeof buffer);
    for (size_t size = 0; size < 7; size++) {
        length = 99;
        CHECK_STATUS(bird_channel_name(channel, buffer, size, &length), BIRD_ERR_SPACE);
        CHECK_INT(length, 6);
        CHECK(buffer[0] == '?');
    }
    length = 99;
    CHECK_STATUS(bird_channel_name(channel, NULL, 0, &length), BIRD_ERR_SPACE);
    CHECK_STATUS(bird_channel_name(channel, NULL, 100, &length), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_channel_name(channel, buffer, 7, NULL), BIRD_OK); /* nobody asks for the length */
    CHECK_INT(length, 6);

    length = 99;
    CHECK_STATUS(bird_client_connection_id(client, buffer, 0, &length), BIRD_ERR_SPACE);
    CHECK_INT(length, 0);
    CHECK_STATUS(bird_client_connection_id(client, buffer, 1, &length), BIRD_OK);
    CHECK_TEXT(buffer, "");
    CHECK_STATUS(bird_client_member_id(client, buffer, 1, &length), BIRD_OK);
    CHECK_INT(length, 0);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}
