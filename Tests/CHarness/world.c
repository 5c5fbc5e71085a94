#include "harness.h"

#include <time.h>

static const struct {
    const char *name;
    int32_t delivery;
} modes[] = {
    {"thread", BIRD_DELIVERY_THREAD},
    {"queue", BIRD_DELIVERY_QUEUE},
    {"loop", BIRD_DELIVERY_LOOP},
    {"host", DELIVERY_HOST},
};

int32_t harness_mode(void) {
    const char *name = harness_argument(1);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            return modes[i].delivery;
        }
    }
    harness_fail(__FILE__, __LINE__, "%s is no delivery mode", name);
}

void set_option(bird_options *options, const char *key, const char *value) {
    bird_error *error = NULL;
    const bird_status status = bird_options_set(options, key, value, &error);
    if (status != BIRD_OK) {
        harness_fail(__FILE__, __LINE__, "option %s=%s: %s", key, value, bird_error_message(error));
    }
}

bird_options *world_options(int32_t delivery) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_harness");
    set_option(options, "ws_host", harness_argument(0));
    set_option(options, "allow_insecure", "1");
    set_option(options, "authorizer", "1");
    set_option(options, "member_authorizer", "1");
    set_option(options, "backoff_base_ms", "10");
    set_option(options, "flap_guard", "0");
    if (delivery == BIRD_DELIVERY_LOOP || delivery == DELIVERY_HOST) {
        set_option(options, "delivery", "loop");
    }
    harness_set_options(options);
    return options;
}

bird_client *client_from(bird_options *options, bird_queue *queue) {
    if (queue != NULL) {
        CHECK_STATUS(bird_options_set_queue(options, queue), BIRD_OK);
    }
    bird_client *client = NULL;
    bird_error *error = NULL;
    const bird_status status = bird_client_create(options, &client, &error);
    if (status != BIRD_OK) {
        harness_fail(__FILE__, __LINE__, "no client: %s", bird_error_message(error));
    }
    bird_options_destroy(options);
    return client;
}

world world_open_with(int32_t delivery, bird_options *options) {
    world w = {.delivery = delivery};
    if (delivery == BIRD_DELIVERY_QUEUE) {
        CHECK_STATUS(bird_queue_create(&w.queue), BIRD_OK);
    }
    if (delivery == DELIVERY_HOST) {
        CHECK_STATUS(bird_loop_create(&w.loop), BIRD_OK);
        CHECK_STATUS(bird_options_set_loop(options, w.loop), BIRD_OK);
    }
    w.client = client_from(options, w.queue);
    return w;
}

static void grant(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    const bool is_presence = strncmp(question->channel_name, "presence-", 9) == 0;
    const bool is_signin = question->request_kind == BIRD_REQUEST_AUTHORIZE_MEMBER;
    const char *member = "{\"member_id\":\"m_1\",\"member_info\":{\"name\":\"Noor\"}}";
    CHECK_STATUS(bird_request_authorize(question->request, "pk_harness:signature",
                                        is_presence || is_signin ? member : NULL, NULL, NULL),
                 BIRD_OK);
}

void world_grant_requests(bird_client *client) {
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(client, 1u << BIRD_RECORD_REQUEST, grant, NULL, NULL, &binding, NULL), BIRD_OK);
}

world world_open(int32_t delivery) {
    world w = world_open_with(delivery, world_options(delivery));
    world_grant_requests(w.client);
    return w;
}

int32_t client_state(bird_client *client) {
    int32_t state = -1;
    CHECK_STATUS(bird_client_state(client, &state), BIRD_OK);
    return state;
}

int32_t channel_state(bird_channel *channel) {
    int32_t state = -1;
    CHECK_STATUS(bird_channel_state(channel, &state), BIRD_OK);
    return state;
}

void world_turn(world *w) {
    if (w->loop != NULL) {
        CHECK_STATUS(bird_loop_run_once(w->loop, 5), BIRD_OK);
        return;
    }
    if (w->queue == NULL) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return;
    }
    const bird_status status = bird_queue_wait(w->queue, 5);
    CHECK(status == BIRD_OK || status == BIRD_ERR_TIMEOUT);
    size_t count;
    CHECK_STATUS(bird_queue_dispatch(w->queue, 0, &count), BIRD_OK);
}

bird_channel *world_join(world *w, const char *name) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w->client, name, 0, &channel, NULL), BIRD_OK);
    UNTIL(w, channel_state(channel) == BIRD_CHANNEL_SUBSCRIBED);
    return channel;
}

void world_connect(world *w) {
    CHECK_STATUS(bird_client_connect(w->client, NULL), BIRD_OK);
    UNTIL(w, client_state(w->client) == BIRD_STATE_CONNECTED);
    w->control = world_join(w, "private-control");
}

void world_close(world *w) {
    CHECK_STATUS(bird_client_destroy(w->client), BIRD_OK);
    if (w->queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(w->queue), BIRD_OK);
        w->queue = NULL; /* UNTIL goes on without it */
    }
    if (w->loop != NULL) {
        CHECK_STATUS(bird_loop_destroy(w->loop), BIRD_OK);
        w->loop = NULL;
    }
}

void world_emit(world *w, const char *frame) {
    char json[2048];
    size_t length = 0;
    json[length++] = '"';
    for (const char *at = frame; *at != '\0'; at++) {
        CHECK(length + 4 < sizeof json);
        if (*at == '"' || *at == '\\') {
            json[length++] = '\\';
        }
        json[length++] = *at;
    }
    json[length++] = '"';
    CHECK_STATUS(bird_channel_trigger(w->control, "client-emit", json, length, NULL), BIRD_OK);
}

void world_emit_event(world *w, const char *channel, const char *event, const char *data) {
    char frame[1024];
    const int length =
        snprintf(frame, sizeof frame, "{\"event\":\"%s\",\"channel\":\"%s\",\"data\":%s}", event, channel, data);
    CHECK(length > 0 && (size_t)length < sizeof frame);
    world_emit(w, frame);
}

void world_drop(world *w) {
    CHECK_STATUS(bird_channel_trigger(w->control, "client-drop", NULL, 0, NULL), BIRD_OK);
}

static void count_call(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

void world_settle(world *w) {
    atomic_int calls = 0;
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(w->control, "settled", count_call, &calls, NULL, &binding, NULL), BIRD_OK);
    world_emit_event(w, "private-control", "settled", "1");
    UNTIL(w, atomic_load(&calls) > 0);
    CHECK_STATUS(bird_client_unbind(w->client, binding), BIRD_OK);
}

static struct {
    atomic_llong received, total;
    uint64_t connects;
} stream;

static void take_number(const bird_record *record, void *user_data) {
    (void)user_data;
    const int64_t number = strtoll(record->data, NULL, 10), wanted = atomic_fetch_add(&stream.received, 1);
    if (number != wanted) {
        harness_fail(__FILE__, __LINE__, "event %lld of the stream came in place of %lld", (long long)number,
                     (long long)wanted);
    }
}

static void take_total(const bird_record *record, void *user_data) {
    (void)user_data;
    atomic_store(&stream.total, strtoll(record->data, NULL, 10));
}

static uint64_t connects(bird_client *client) {
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(client, &s), BIRD_OK);
    return s.connects;
}

void world_stream(world *w) {
    uint64_t binding;
    atomic_store(&stream.received, 0);
    atomic_store(&stream.total, -1);
    stream.connects = connects(w->client);
    CHECK_STATUS(bird_channel_bind(w->control, "number", take_number, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(w->control, "total", take_total, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_trigger(w->control, "client-stream", NULL, 0, NULL), BIRD_OK);
    UNTIL(w, world_streamed() > 0);
}

int64_t world_streamed(void) {
    return atomic_load(&stream.received);
}

void world_end_stream(world *w) {
    CHECK_STATUS(bird_channel_trigger(w->control, "client-stream-end", NULL, 0, NULL), BIRD_OK);
    UNTIL(w, atomic_load(&stream.total) >= 0);
    CHECK_INT(world_streamed(), atomic_load(&stream.total));
    CHECK_INT(connects(w->client), stream.connects);
}
