/*
 * The thread table of the header, row by row: on which thread a callback runs, that signals are blocked on the library's own, that no
 * lock is held there, and what every function of the API gives when it is called there.
 */
#include "harness.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ----------------------------------------------------------------------------------------------------- threads ------ */

static pid_t test_thread;

static void read_task(const char *file, char *line, int size, const char *prefix) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", (int)gettid(), file);
    FILE *stream = fopen(path, "r");
    CHECK(stream != NULL);
    do {
        CHECK(fgets(line, size, stream) != NULL);
    } while (strncmp(line, prefix, strlen(prefix)) != 0);
    fclose(stream);
    line[strcspn(line, "\n")] = '\0';
}

static void check_is_library_thread(const char *name) {
    char line[128];
    CHECK(gettid() != test_thread);
    read_task("comm", line, sizeof line, "");
    CHECK_TEXT(line, name);
    read_task("status", line, sizeof line, "SigBlk:");
    CHECK_INT(strtoull(line + strlen("SigBlk:"), NULL, 16), 0); /* as on the thread that connected */
}

static void check_is_delivery_context(const world *w) {
    if (w->delivery == BIRD_DELIVERY_THREAD) {
        check_is_library_thread("bird-delivery");
    } else if (w->delivery == BIRD_DELIVERY_LOOP) {
        check_is_library_thread("bird-reactor");
    } else {
        CHECK_INT(gettid(), test_thread); /* it dispatches, or runs the loop */
    }
}

/* ---------------------------------------------------------------------------------------------- every function ------ */

/* Where a callback finds itself, and so what the calls with a story of their own give there. */
typedef struct place {
    world *w;
    bird_client *client;
    bird_channel *channel;
    bird_request *request;  /* NULL but in a request record                       */
    bird_client *other;     /* made by the callback, never connected              */
    bird_status of_client;  /* calls on the client                                */
    bird_status of_channel; /* calls on its channels                              */
    bird_status waiting;    /* bird_client_wait, _flush and _close                */
    bird_status consuming;  /* bird_queue_drain and _dispatch, bird_loop_run_once */
    int answers;
} place;

typedef void (*place_call)(place *p);

#define CALLS_MAX 128
static place_call calls[CALLS_MAX];
static int call_count;

/* One for each function of the header, which test_harness.py checks. */
#define CALL(function)                                                                                                 \
    static void call_##function(place *p);                                                                             \
    __attribute__((constructor)) static void add_##function(void) {                                                    \
        CHECK(call_count < CALLS_MAX);                                                                                 \
        calls[call_count++] = call_##function;                                                                         \
    }                                                                                                                  \
    static void call_##function(place *p)

static void nothing(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

static char buffer[256];
static size_t length;
static int32_t number;

CALL(bird_version_number) {
    (void)p;
    CHECK_INT(bird_version_number(), BIRD_VERSION_NUMBER);
}
CALL(bird_version_string) {
    (void)p;
    CHECK_TEXT(bird_version_string(), BIRD_VERSION_STRING);
}
CALL(bird_version_check) {
    (void)p;
    CHECK_STATUS(BIRD_VERSION_CHECK(), BIRD_OK);
}
CALL(bird_options_count) {
    (void)p;
    CHECK(bird_options_count() > 0);
}
CALL(bird_options_describe) {
    (void)p;
    bird_option option = {.struct_size = sizeof option};
    CHECK_STATUS(bird_options_describe(0, &option), BIRD_OK);
    CHECK_TEXT(option.key, "app_key");
}
CALL(bird_status_name) {
    (void)p;
    CHECK_TEXT(bird_status_name(BIRD_OK), "BIRD_OK");
}
CALL(bird_status_message) {
    (void)p;
    CHECK(bird_status_message(BIRD_OK) != NULL);
}

static bird_error *new_error(void) {
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set(NULL, "app_key", "x", &error), BIRD_ERR_HANDLE);
    return error;
}

#define ERROR_CALL(function, check)                                                                                    \
    CALL(function) {                                                                                                   \
        (void)p;                                                                                                       \
        bird_error *error = new_error();                                                                               \
        check;                                                                                                         \
        bird_error_free(error);                                                                                        \
    }

ERROR_CALL(bird_error_status, CHECK_STATUS(bird_error_status(error), BIRD_ERR_HANDLE))
ERROR_CALL(bird_error_area, CHECK_INT(bird_error_area(error), BIRD_AREA_ARGUMENT))
ERROR_CALL(bird_error_field, CHECK_TEXT(bird_error_field(error), "options"))
ERROR_CALL(bird_error_message, CHECK(*bird_error_message(error) != '\0'))
ERROR_CALL(bird_error_code, CHECK_INT(bird_error_code(error), 0))
ERROR_CALL(bird_error_http_status, CHECK_INT(bird_error_http_status(error), 0))
ERROR_CALL(bird_error_curl_code, CHECK_INT(bird_error_curl_code(error), 0))
ERROR_CALL(bird_error_endpoint, CHECK_TEXT(bird_error_endpoint(error), ""))
ERROR_CALL(bird_error_channel, CHECK_TEXT(bird_error_channel(error), ""))
ERROR_CALL(bird_error_retriable, CHECK_INT(bird_error_retriable(error), 0))
ERROR_CALL(bird_error_free, (void)error)

static bird_options *new_options(void) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    return options;
}

#define OPTIONS_CALL(function, check)                                                                                  \
    CALL(function) {                                                                                                   \
        (void)p;                                                                                                       \
        bird_options *options = new_options();                                                                         \
        check;                                                                                                         \
        bird_options_destroy(options);                                                                                 \
    }

OPTIONS_CALL(bird_options_create, CHECK(options != NULL))
OPTIONS_CALL(bird_options_destroy, CHECK(options != NULL))
OPTIONS_CALL(bird_options_set, set_option(options, "app_key", "pk_inside"))
OPTIONS_CALL(bird_options_set_int, CHECK_STATUS(bird_options_set_int(options, "pong_timeout_ms", 5, NULL), BIRD_OK))
OPTIONS_CALL(bird_options_set_auth_header,
             CHECK_STATUS(bird_options_set_auth_header(options, "X-A", "b", NULL), BIRD_OK))
OPTIONS_CALL(bird_options_set_tag, CHECK_STATUS(bird_options_set_tag(options, 1), BIRD_OK))
OPTIONS_CALL(bird_options_set_queue, CHECK_STATUS(bird_options_set_queue(options, p->w->queue),
                                                  p->w->queue != NULL ? BIRD_OK : BIRD_ERR_HANDLE))
OPTIONS_CALL(bird_options_set_loop,
             CHECK_STATUS(bird_options_set_loop(options, p->w->loop), p->w->loop != NULL ? BIRD_OK : BIRD_ERR_HANDLE))

static void no_entry(const bird_log_entry *entry, void *user_data) {
    (void)entry;
    (void)user_data;
}

OPTIONS_CALL(bird_options_set_log, CHECK_STATUS(bird_options_set_log(options, no_entry, NULL, NULL), BIRD_OK))
CALL(bird_log_level_name) {
    (void)p;
    CHECK_TEXT(bird_log_level_name(BIRD_LOG_WARN), "warn");
}
CALL(bird_log_area_name) {
    (void)p;
    CHECK_TEXT(bird_log_area_name(BIRD_LOG_AREA_WIRE), "wire");
}

static bird_client *new_client(place *p) {
    bird_options *options = new_options();
    set_option(options, "app_key", "pk_inside");
    set_option(options, "region", "eu1");
    if (p->w->loop != NULL) {
        CHECK_STATUS(bird_options_set_loop(options, p->w->loop), BIRD_OK);
    }
    if (p->w->delivery == BIRD_DELIVERY_LOOP || p->w->delivery == DELIVERY_HOST) {
        set_option(options, "delivery", "loop");
    }
    return client_from(options, p->w->queue);
}

CALL(bird_client_create) {
    CHECK_STATUS(bird_client_destroy(new_client(p)), BIRD_OK);
}
/* The client's own is a case of its own. */
CALL(bird_client_destroy) {
    bird_client *client = new_client(p);
    CHECK_STATUS(bird_client_disconnect(client), BIRD_OK); /* known to the reactor */
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_ERR_HANDLE);
    if (p->of_client != BIRD_OK) {
        CHECK_STATUS(bird_client_destroy(p->client), p->of_client);
    }
}
CALL(bird_client_connect) {
    CHECK_STATUS(bird_client_connect(p->client, NULL), p->of_client);
}
CALL(bird_client_disconnect) {
    bird_client *client = new_client(p);
    CHECK_STATUS(bird_client_disconnect(client), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}
CALL(bird_client_retry_now) {
    CHECK_STATUS(bird_client_retry_now(p->client), p->of_client);
}
CALL(bird_client_set) {
    CHECK_STATUS(bird_client_set(p->client, "preset", "default", NULL), p->of_client);
}
CALL(bird_client_set_int) {
    CHECK_STATUS(bird_client_set_int(p->client, "pong_misses_max", 1, NULL), p->of_client);
}
CALL(bird_client_network_hint) {
    CHECK_STATUS(bird_client_network_hint(p->client, BIRD_NETWORK_UP), p->of_client);
}
CALL(bird_client_wait) {
    CHECK_STATUS(bird_client_wait(p->other, BIRD_STATE_INITIALIZED, -1), p->waiting);
    CHECK_STATUS(bird_client_wait(p->client, BIRD_STATE_CONNECTED, -1),
                 p->of_client != BIRD_OK ? p->of_client : p->waiting);
}
CALL(bird_client_flush) {
    CHECK_STATUS(bird_client_flush(p->other, -1), p->waiting);
    CHECK_STATUS(bird_client_flush(p->client, DEADLINE_MS), p->of_client != BIRD_OK ? p->of_client : p->waiting);
}
CALL(bird_client_close) {
    bird_client *client = new_client(p);
    CHECK_STATUS(bird_client_close(client, -1), p->waiting);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}
CALL(bird_client_state) {
    CHECK_STATUS(bird_client_state(p->client, &number), p->of_client);
}
CALL(bird_state_name) {
    (void)p;
    CHECK_TEXT(bird_state_name(BIRD_STATE_CONNECTED), "connected");
}
CALL(bird_client_connection_id) {
    CHECK_STATUS(bird_client_connection_id(p->client, buffer, sizeof buffer, &length), p->of_client);
}
CALL(bird_client_subscribe) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(p->client, "made-inside", 3, &channel, NULL), p->of_client);
    bird_channel_release(channel);
}
CALL(bird_client_signin) {
    CHECK_STATUS(bird_client_signin(p->client, 0, 0, NULL), p->of_client);
}
CALL(bird_client_member_id) {
    CHECK_STATUS(bird_client_member_id(p->client, buffer, sizeof buffer, &length), p->of_client);
}
CALL(bird_client_member_channel) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_member_channel(p->client, &channel), p->of_client);
    bird_channel_release(channel);
}
CALL(bird_client_bind) {
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(p->client, "x", nothing, NULL, NULL, &binding, NULL), p->of_client);
}
CALL(bird_client_observe) {
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(p->client, 1, nothing, NULL, NULL, &binding, NULL), p->of_client);
}
CALL(bird_client_unbind) {
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(p->client, "x", nothing, NULL, NULL, &binding, NULL), p->of_client);
    CHECK_STATUS(bird_client_unbind(p->client, binding), p->of_client);
}
CALL(bird_client_unbind_event) {
    CHECK_STATUS(bird_client_unbind_event(p->client, "x"), p->of_client);
}
/* A live client's own handlers are those of the case. */
CALL(bird_client_unbind_all) {
    CHECK_STATUS(bird_client_unbind_all(p->of_client == BIRD_OK ? p->other : p->client), p->of_client);
}
CALL(bird_client_intern) {
    uint32_t id;
    CHECK_STATUS(bird_client_intern(p->client, "inside", &id, NULL), p->of_client);
}
CALL(bird_client_statistics) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    CHECK_STATUS(bird_client_statistics(p->client, &statistics), p->of_client);
}

CALL(bird_client_dump) {
    CHECK_STATUS(bird_client_dump(p->client, buffer, 1, &length),
                 p->of_client == BIRD_ERR_HANDLE ? BIRD_ERR_HANDLE : BIRD_ERR_SPACE);
}

CALL(bird_channel_release) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_member_channel(p->other, &channel), BIRD_OK);
    bird_channel_release(channel);
}
CALL(bird_channel_unsubscribe) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(p->other, "left-inside", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_unsubscribe(channel), BIRD_OK);
    bird_channel_release(channel);
}
CALL(bird_channel_trigger) {
    CHECK_STATUS(bird_channel_trigger(p->channel, "client-noted", "1", 1, NULL), p->of_channel);
}
CALL(bird_channel_state) {
    CHECK_STATUS(bird_channel_state(p->channel, &number), p->of_channel);
}
CALL(bird_channel_kind) {
    CHECK_STATUS(bird_channel_kind(p->channel, &number), p->of_channel);
}
CALL(bird_channel_name) {
    CHECK_STATUS(bird_channel_name(p->channel, buffer, sizeof buffer, &length), p->of_channel);
}
CALL(bird_channel_set_tag) {
    CHECK_STATUS(bird_channel_set_tag(p->channel, 9), p->of_channel);
}
CALL(bird_channel_my_id) {
    CHECK_STATUS(bird_channel_my_id(p->channel, buffer, sizeof buffer, &length), p->of_channel);
}
CALL(bird_channel_member_count) {
    CHECK_STATUS(bird_channel_member_count(p->channel, &length), p->of_channel);
}
CALL(bird_channel_bind) {
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(p->channel, "x", nothing, NULL, NULL, &binding, NULL), p->of_channel);
}

CALL(bird_channel_unbind_event) {
    CHECK_STATUS(bird_channel_unbind_event(p->channel, "x"), p->of_channel);
}
CALL(bird_channel_unbind_all) {
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(p->other, "unbound-inside", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(channel, "x", nothing, NULL, NULL, NULL, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_unbind_all(channel), BIRD_OK);
    bird_channel_release(channel);
}

static bird_members *new_members(place *p) {
    bird_members *members = NULL;
    CHECK_STATUS(bird_channel_members(p->channel, &members), p->of_channel);
    CHECK((members != NULL) == (p->of_channel == BIRD_OK));
    return members;
}

#define MEMBERS_CALL(function, check)                                                                                  \
    CALL(function) {                                                                                                   \
        bird_members *members = new_members(p);                                                                        \
        check;                                                                                                         \
        bird_members_free(members);                                                                                    \
    }

MEMBERS_CALL(bird_channel_members, (void)members)
MEMBERS_CALL(bird_members_count, CHECK_INT(bird_members_count(members), members != NULL))
MEMBERS_CALL(bird_members_id, CHECK_TEXT(bird_members_id(members, 0), members != NULL ? "m_1" : ""))
MEMBERS_CALL(bird_members_id_length, CHECK_INT(bird_members_id_length(members, 0), members != NULL ? 3 : 0))
MEMBERS_CALL(bird_members_info, CHECK(bird_members_info(members, 0) != NULL))
MEMBERS_CALL(bird_members_free, (void)members)

CALL(bird_data_is_json) {
    (void)p;
    CHECK_INT(bird_data_is_json("[1]", 3), 1);
}

/* A request can be answered once, by whichever of the two comes first. */
static void check_answer(place *p, bird_status status) {
    if (p->request == NULL) {
        CHECK_STATUS(status, BIRD_ERR_HANDLE);
    } else if (status == BIRD_OK) {
        p->answers++;
    } else {
        CHECK_STATUS(status, BIRD_ERR_ANSWERED);
        CHECK_INT(p->answers, 1);
    }
}

static void check_wrong_answer(place *p, bird_status status) {
    const bird_status of_request = p->answers == 0 ? BIRD_ERR_ARGUMENT : BIRD_ERR_ANSWERED;
    CHECK_STATUS(status, p->request == NULL ? BIRD_ERR_HANDLE : of_request);
}

CALL(bird_request_authorize) {
    const char *member = "{\"member_id\":\"m_1\"}";
    check_answer(p, bird_request_authorize(p->request, "pk_harness:signature", member, NULL, NULL));
}
CALL(bird_request_headers) {
    check_wrong_answer(p, bird_request_headers(p->request, NULL, 0, NULL));
}
CALL(bird_request_proceed) {
    check_wrong_answer(p, bird_request_proceed(p->request, 0, NULL));
}
CALL(bird_request_fail) {
    check_answer(p, bird_request_fail(p->request, 0, "no", NULL));
}

static bird_queue *new_queue(void) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    return queue;
}

/* On a queue made here, and in QUEUE mode on the client's own. */
#define QUEUE_CALL(function, call, of_own)                                                                             \
    CALL(function) {                                                                                                   \
        bird_queue *queue = new_queue();                                                                               \
        CHECK_STATUS(call, BIRD_OK);                                                                                   \
        CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);                                                              \
        queue = p->w->queue;                                                                                           \
        if (queue != NULL) {                                                                                           \
            CHECK_STATUS(call, of_own);                                                                                \
        }                                                                                                              \
    }

static bird_status drain_and_release(bird_queue *queue) {
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t stride;
    const bird_status status = bird_queue_drain(queue, &batch, &records, &length, &stride);
    CHECK_STATUS(bird_batch_release(batch), batch == NULL ? BIRD_ERR_HANDLE : BIRD_OK);
    return status;
}

static bird_status wait_after_wake(bird_queue *queue) {
    CHECK_STATUS(bird_queue_wake(queue), BIRD_OK);
    const bird_status status = bird_queue_wait(queue, -1);
    return status == BIRD_ERR_WOKEN ? BIRD_OK : status;
}

QUEUE_CALL(bird_queue_create, bird_queue_fd(queue, &number), BIRD_OK)
QUEUE_CALL(bird_queue_destroy, queue == p->w->queue ? bird_queue_destroy(queue) : BIRD_OK, BIRD_ERR_BUSY)
QUEUE_CALL(bird_queue_fd, bird_queue_fd(queue, &number), BIRD_OK)
QUEUE_CALL(bird_queue_wait, wait_after_wake(queue), BIRD_OK)
QUEUE_CALL(bird_queue_wake, bird_queue_wake(queue), BIRD_OK)
QUEUE_CALL(bird_queue_drain, drain_and_release(queue), p->consuming)
QUEUE_CALL(bird_batch_release, drain_and_release(queue), p->consuming)
QUEUE_CALL(bird_queue_dispatch, bird_queue_dispatch(queue, 0, &length), p->consuming)

static bird_loop *new_loop(void) {
    bird_loop *loop = NULL;
    CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
    return loop;
}

#define LOOP_CALL(function, call, of_own)                                                                              \
    CALL(function) {                                                                                                   \
        bird_loop *loop = new_loop();                                                                                  \
        CHECK_STATUS(call, BIRD_OK);                                                                                   \
        CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);                                                                \
        loop = p->w->loop;                                                                                             \
        if (loop != NULL) {                                                                                            \
            CHECK_STATUS(call, of_own);                                                                                \
        }                                                                                                              \
    }

static int64_t deadline_ms;

LOOP_CALL(bird_loop_create, bird_loop_fd(loop, &number), BIRD_OK)
LOOP_CALL(bird_loop_destroy, loop == p->w->loop ? bird_loop_destroy(loop) : BIRD_OK, BIRD_ERR_BUSY)
LOOP_CALL(bird_loop_fd, bird_loop_fd(loop, &number), BIRD_OK)
LOOP_CALL(bird_loop_deadline, bird_loop_deadline(loop, &deadline_ms), BIRD_OK)
LOOP_CALL(bird_loop_run_once, bird_loop_run_once(loop, 0), p->consuming)
LOOP_CALL(bird_loop_wake, bird_loop_wake(loop), BIRD_OK)

CALL(bird_set_delivery_threads) {
    CHECK_STATUS(bird_set_delivery_threads(4), p->w->delivery == BIRD_DELIVERY_THREAD ? BIRD_ERR_STATE : BIRD_OK);
}

/* Each place calls them in the one order and then in the other. */
static void call_everything(place *p) {
    p->other = new_client(p);
    for (int i = 0; i < call_count; i++) {
        calls[i](p);
    }
    CHECK_STATUS(bird_client_destroy(p->other), BIRD_OK);
    p->other = new_client(p);
    for (int i = call_count - 1; i >= 0; i--) {
        calls[i](p);
    }
    CHECK_STATUS(bird_client_destroy(p->other), BIRD_OK);
    CHECK_INT(p->answers, p->request != NULL);
}

/* -------------------------------------------------------------------------------------------------------- rows ------ */

/* The case of this process, for callbacks; room is a presence channel. */
static world subject;
static bird_channel *room;

static place delivery_place(void) {
    return (place){
        .w = &subject,
        .client = subject.client,
        .channel = room,
        .of_client = BIRD_OK,
        .of_channel = BIRD_OK,
        .waiting = BIRD_ERR_CALLBACK,
        .consuming = BIRD_ERR_BUSY,
    };
}

/* The destroyed client's; its channel's reference is still held. */
static place after_the_end(place p) {
    p.of_client = BIRD_ERR_HANDLE;
    p.of_channel = BIRD_ERR_CLOSED;
    return p;
}

/* A thread of the program's outside every callback. */
static place plain_place(void) {
    place p = delivery_place();
    p.waiting = BIRD_OK;
    p.consuming = BIRD_OK;
    return p;
}

static void open_subject(void) {
    test_thread = gettid();
    subject = world_open(harness_mode());
    world_connect(&subject);
    room = world_join(&subject, "presence-room");
    world_settle(&subject);
}

static void tick(void) {
    world_emit_event(&subject, "presence-room", "tick", "1");
}

static void until_noted(const char *text) {
    UNTIL(&subject, journal_count() > 0);
    world_settle(&subject);
    CHECK_TEXT(journal_text(), text);
}

static void *another_thread(void *place) {
    call_everything(place);
    return NULL;
}

static void handler_calls(const bird_record *record, void *user_data) {
    check_is_delivery_context(&subject);
    CHECK(record->client == subject.client && record->channel == room);
    place p = delivery_place();
    call_everything(&p);
    journal_add("%s", (const char *)user_data);
}

MODE_CASE(thread_of_channel_handlers) {
    open_subject();
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(room, "tick", handler_calls, "channel", NULL, &binding, NULL), BIRD_OK);
    tick();
    until_noted("channel");
    world_close(&subject);
}

MODE_CASE(thread_of_client_handlers) {
    open_subject();
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(subject.client, "tick", handler_calls, "client", NULL, &binding, NULL), BIRD_OK);
    tick();
    until_noted("client");
    world_close(&subject);
}

static void observer_calls(const bird_record *record, void *user_data) {
    if (record->channel == room) {
        handler_calls(record, user_data);
    }
}

MODE_CASE(thread_of_observers) {
    open_subject();
    uint64_t binding;
    CHECK_STATUS(
        bird_client_observe(subject.client, 1u << BIRD_RECORD_EVENT, observer_calls, "observer", NULL, &binding, NULL),
        BIRD_OK);
    tick();
    until_noted("observer");
    world_close(&subject);
}

/* Grants what the case needs to begin; then calls everything, twice, the second time refusing. */
static void request_calls(const bird_record *record, void *user_data) {
    (void)user_data;
    check_is_delivery_context(&subject);
    const bird_question *question = record->detail;
    place p = delivery_place();
    p.request = question->request;
    if (strcmp(question->channel_name, "presence-asked") == 0) {
        call_everything(&p);
        journal_add("request");
    } else {
        call_bird_request_authorize(&p);
    }
}

MODE_CASE(thread_of_requests) {
    test_thread = gettid();
    subject = world_open_with(harness_mode(), world_options(harness_mode()));
    uint64_t binding;
    CHECK_STATUS(
        bird_client_observe(subject.client, 1u << BIRD_RECORD_REQUEST, request_calls, NULL, NULL, &binding, NULL),
        BIRD_OK);
    world_connect(&subject);
    room = world_join(&subject, "presence-room");
    world_join(&subject, "presence-asked");
    until_noted("request");
    world_close(&subject);
}

/* ------------------------------------------------------------------------------------------------- destructors ------ */

static void delivery_destructor_calls(void *user_data) {
    check_is_delivery_context(&subject);
    place p = delivery_place();
    call_everything(&p);
    journal_add("~%s", (const char *)user_data);
}

/* An unbind of each kind, from outside and from a handler. */
static void unbind_from_handler(const bird_record *record, void *user_data) {
    (void)record;
    const uint64_t *bindings = user_data;
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(bird_client_unbind(subject.client, bindings[i]), BIRD_OK);
    }
    CHECK_INT(journal_count(), 0);
}

static void bind_three(uint64_t *bindings, bird_destructor destructor) {
    CHECK_STATUS(bird_channel_bind(room, "x", nothing, "x", destructor, &bindings[0], NULL), BIRD_OK);
    CHECK_STATUS(bird_client_bind(subject.client, NULL, nothing, "x", destructor, &bindings[1], NULL), BIRD_OK);
    CHECK_STATUS(bird_client_observe(subject.client, 1, nothing, "x", destructor, &bindings[2], NULL), BIRD_OK);
}

MODE_CASE(thread_of_destructors_after_unbind) {
    open_subject();
    uint64_t bindings[3], handler;
    bind_three(bindings, delivery_destructor_calls);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(bird_client_unbind(subject.client, bindings[i]), BIRD_OK);
    }
    UNTIL(&subject, journal_count() == 3);
    journal_clear();
    bind_three(bindings, delivery_destructor_calls);
    CHECK_STATUS(bird_channel_bind(room, "tick", unbind_from_handler, bindings, NULL, &handler, NULL), BIRD_OK);
    tick();
    UNTIL(&subject, journal_count() == 3);
    CHECK_TEXT(journal_text(), "~x ~x ~x");
    world_close(&subject);
    CHECK_INT(journal_count(), 3);
}

/* Who only drains is the delivery context. */
EDGE_CASE(thread_of_destructors_after_unbind_when_draining) {
    test_thread = gettid();
    subject = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&subject);
    room = world_join(&subject, "presence-room");
    uint64_t bindings[3];
    bind_three(bindings, delivery_destructor_calls);
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(bird_client_unbind(subject.client, bindings[i]), BIRD_OK);
    }
    while (journal_count() < 3) {
        CHECK_STATUS(bird_queue_wait(subject.queue, DEADLINE_MS), BIRD_OK);
        CHECK_STATUS(drain_and_release(subject.queue), BIRD_OK);
    }
    world_close(&subject);
    CHECK_TEXT(journal_text(), "~x ~x ~x");
}

/* Before the first connect nothing is delivered, and so there is no context but the caller; a queue has its consumer all the same. */
static void unconnected_destructor_calls(void *user_data) {
    CHECK_INT(gettid(), test_thread);
    journal_add("~%s", (const char *)user_data);
}

MODE_CASE(thread_of_destructors_after_unbind_before_connect) {
    test_thread = gettid();
    subject = world_open(harness_mode());
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(subject.client, "x", nothing, "x", unconnected_destructor_calls, &binding, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_unbind(subject.client, binding), BIRD_OK);
    CHECK_INT(journal_count(), subject.queue == NULL);
    UNTIL(&subject, journal_count() == 1);
    world_close(&subject);
    CHECK_INT(journal_count(), 1);
}

typedef struct registration {
    place where;
    pid_t thread;
} registration;

static void failed_destructor_calls(void *user_data) {
    registration *r = user_data;
    CHECK_INT(gettid(), r->thread);
    call_everything(&r->where);
    journal_add("~failed");
}

/* Each way to register, each refused. */
static void register_in_vain(place where) {
    registration r = {.where = where, .thread = gettid()};
    const int before = journal_count();
    uint64_t binding = 1;
    CHECK_STATUS(bird_channel_bind(room, "", nothing, &r, failed_destructor_calls, &binding, NULL), BIRD_ERR_NAME);
    CHECK_INT(binding, 0);
    CHECK_STATUS(bird_client_bind(subject.client, "", nothing, &r, failed_destructor_calls, &binding, NULL),
                 BIRD_ERR_NAME);
    CHECK_STATUS(bird_client_observe(NULL, 1, nothing, &r, failed_destructor_calls, &binding, NULL), BIRD_ERR_HANDLE);
    CHECK_STATUS(bird_client_observe(subject.client, 1, NULL, &r, failed_destructor_calls, &binding, NULL),
                 BIRD_ERR_ARGUMENT);
    CHECK_INT(journal_count(), before + 4);
}

static void handler_registers_in_vain(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    register_in_vain(delivery_place());
}

MODE_CASE(thread_of_destructors_of_failed_registrations) {
    open_subject();
    register_in_vain(plain_place());
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(room, "tick", handler_registers_in_vain, NULL, NULL, &binding, NULL), BIRD_OK);
    tick();
    UNTIL(&subject, journal_count() == 8);
    world_close(&subject);
    CHECK_INT(journal_count(), 8);
}

static void end_destructor_calls(void *user_data) {
    registration *r = user_data;
    if (r->thread != 0) {
        CHECK_INT(gettid(), r->thread);
    } else {
        check_is_delivery_context(&subject);
    }
    call_everything(&r->where);
    journal_add("~end");
}

static void bind_three_for_the_end(registration *r) {
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(room, "x", nothing, r, end_destructor_calls, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_bind(subject.client, "x", nothing, r, end_destructor_calls, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_observe(subject.client, 1, nothing, r, end_destructor_calls, &binding, NULL), BIRD_OK);
}

static void give_back_subject(void) {
    bird_channel_release(room);
    if (subject.queue != NULL) {
        CHECK_STATUS(bird_queue_destroy(subject.queue), BIRD_OK);
    }
    if (subject.loop != NULL) {
        CHECK_STATUS(bird_loop_destroy(subject.loop), BIRD_OK);
    }
}

MODE_CASE(thread_of_destructors_at_destroy) {
    open_subject();
    registration r = {.where = after_the_end(plain_place()), .thread = test_thread};
    bind_three_for_the_end(&r);
    CHECK_STATUS(bird_client_destroy(subject.client), BIRD_OK);
    CHECK_TEXT(journal_text(), "~end ~end ~end");
    give_back_subject();
}

static void destroy_subject(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    CHECK_STATUS(bird_client_destroy(subject.client), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(subject.client), BIRD_ERR_HANDLE);
    place p = after_the_end(delivery_place());
    call_everything(&p);
    journal_add("end");
}

MODE_CASE(thread_of_destructors_at_destroy_by_the_own_handler) {
    open_subject();
    registration r = {.where = after_the_end(delivery_place())};
    bind_three_for_the_end(&r);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(room, "tick", destroy_subject, NULL, NULL, &binding, NULL), BIRD_OK);
    tick();
    UNTIL(&subject, journal_count() == 4);
    CHECK_TEXT(journal_text(), "end ~end ~end ~end");
    UNTIL(&subject, subject.queue == NULL || bird_queue_destroy(subject.queue) == BIRD_OK);
    subject.queue = NULL;
    give_back_subject();
}

/* The handler of one client ends another. */
static void destroy_subject_elsewhere(const bird_record *record, void *user_data) {
    CHECK(record->client != subject.client);
    registration *r = user_data;
    r->thread = gettid();
    CHECK_STATUS(bird_client_destroy(subject.client), BIRD_OK);
    CHECK_INT(journal_count(), 3);
    journal_add("end");
}

MODE_CASE(thread_of_destructors_at_destroy_by_a_handler_of_another_client) {
    open_subject();
    world other = world_open(subject.delivery);
    world_connect(&other);
    registration r = {.where = after_the_end(delivery_place())};
    r.where.consuming = BIRD_OK; /* of the subject's queue and loop, which nobody is consuming */
    bind_three_for_the_end(&r);
    uint64_t binding;
    CHECK_STATUS(bird_channel_bind(other.control, "tick", destroy_subject_elsewhere, &r, NULL, &binding, NULL),
                 BIRD_OK);
    world_emit_event(&other, "private-control", "tick", "1");
    UNTIL(&other, journal_count() == 4);
    CHECK_TEXT(journal_text(), "~end ~end ~end end");
    world_close(&other);
    give_back_subject();
}

/* --------------------------------------------------------------------------------------- destroys in a circle ------- */

/* Two handlers that run at the same time, each of which destroys the other's client. */
static world pair[2];
static pthread_barrier_t both_inside;
static atomic_int gone;

static void count_gone(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&gone, 1);
}

static void destroy_the_other(const bird_record *record, void *user_data) {
    (void)record;
    pthread_barrier_wait(&both_inside);
    CHECK_STATUS(bird_client_destroy(pair[(intptr_t)user_data].client), BIRD_OK);
}

static void *serve(void *w) {
    UNTIL((world *)w, atomic_load(&gone) == 2);
    return NULL;
}

/* Of two LOOP clients on the one reactor only one handler runs at a time. */
static void destroy_each_other(int32_t delivery) {
    atomic_store(&gone, 0);
    CHECK(pthread_barrier_init(&both_inside, NULL, 2) == 0);
    for (intptr_t i = 0; i < 2; i++) {
        pair[i] = world_open(delivery);
        world_connect(&pair[i]);
        uint64_t binding;
        CHECK_STATUS(
            bird_channel_bind(pair[i].control, "tick", destroy_the_other, (void *)(1 - i), count_gone, &binding, NULL),
            BIRD_OK);
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        world_emit_event(&pair[i], "private-control", "tick", "1");
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, serve, &pair[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        pair[i].client = NULL;
        world_close(&pair[i]);
    }
    pthread_barrier_destroy(&both_inside);
}

EDGE_CASE(handlers_destroy_each_others_clients) {
    destroy_each_other(BIRD_DELIVERY_THREAD);
    destroy_each_other(BIRD_DELIVERY_QUEUE);
    destroy_each_other(DELIVERY_HOST);
}

/* The same for a look at each other's loop. */
static void ask_the_other(const bird_record *record, void *user_data) {
    (void)record;
    pthread_barrier_wait(&both_inside);
    int64_t deadline;
    CHECK_STATUS(bird_loop_deadline(pair[(intptr_t)user_data].loop, &deadline), BIRD_OK);
    atomic_fetch_add(&gone, 1);
}

EDGE_CASE(handlers_ask_each_others_loops) {
    CHECK(pthread_barrier_init(&both_inside, NULL, 2) == 0);
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++) {
        pair[i] = world_open(DELIVERY_HOST);
        world_connect(&pair[i]);
        uint64_t binding;
        CHECK_STATUS(bird_channel_bind(pair[i].control, "tick", ask_the_other, (void *)(1 - i), NULL, &binding, NULL),
                     BIRD_OK);
        world_emit_event(&pair[i], "private-control", "tick", "1");
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, serve, &pair[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        world_close(&pair[i]);
    }
}

/* ------------------------------------------------------------------------------------------------- no lock held ----- */

/* While a handler runs, other threads can do everything but what is that handler's alone. */
static void let_another_thread_call(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    place p = delivery_place();
    p.waiting = BIRD_OK;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, another_thread, &p) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    journal_add("called");
}

/* In LOOP mode the reactor stands still for as long, which destroys wait for. */
EDGE_CASE(no_lock_is_held_while_a_handler_runs) {
    const int32_t modes[] = {BIRD_DELIVERY_THREAD, BIRD_DELIVERY_QUEUE};
    for (int i = 0; i < 2; i++) {
        test_thread = gettid();
        subject = world_open(modes[i]);
        world_connect(&subject);
        room = world_join(&subject, "presence-room");
        uint64_t binding;
        CHECK_STATUS(bird_channel_bind(room, "tick", let_another_thread_call, NULL, NULL, &binding, NULL), BIRD_OK);
        tick();
        UNTIL(&subject, journal_count() == i + 1);
        world_close(&subject);
    }
}
