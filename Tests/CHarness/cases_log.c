/* Section log of the header, records of the log, and bird_client_dump(). Files and consoles are Tests/integration/test_log.py's. */
#include "harness.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* ---------------------------------------------------------------------------------------------------- entries ------ */

#define TOLD_BYTES_MAX 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[TOLD_BYTES_MAX]; /* "level area message\n" of every entry so far */
static size_t told_length;

static void note(const bird_log_entry *entry) {
    CHECK(entry->struct_size >= sizeof *entry && entry->level > BIRD_LOG_OFF && entry->level <= BIRD_LOG_VERBOSE);
    CHECK_INT(entry->message_length, strlen(entry->message));
    CHECK_INT(entry->client_tag, 77);
    CHECK(entry->client_number > 0 && strchr(entry->message, '\n') == NULL);
    const int64_t now = (int64_t)time(NULL) * 1000;
    CHECK(entry->time_ms > now - 60000 && entry->time_ms < now + 60000);
    pthread_mutex_lock(&lock);
    const int length = snprintf(told + told_length, sizeof told - told_length, "%s %s %s\n",
                                bird_log_level_name(entry->level), bird_log_area_name(entry->area), entry->message);
    CHECK(length > 0 && told_length + (size_t)length < sizeof told);
    told_length += (size_t)length;
    pthread_mutex_unlock(&lock);
}

static bool has_told(const char *text) {
    pthread_mutex_lock(&lock);
    const bool result = strstr(told, text) != NULL;
    pthread_mutex_unlock(&lock);
    return result;
}

static void take_entry(const bird_log_entry *entry, void *user_data) {
    (void)user_data;
    note(entry);
}

static void take_record(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_log_entry *entry = record->detail;
    CHECK_INT(record->data_kind, BIRD_DATA_STRING);
    CHECK_TEXT(record->data, entry->message);
    CHECK(record->channel == NULL);
    note(entry);
}

static bird_options *logging_options(int32_t delivery, const char *level) {
    bird_options *options = world_options(delivery);
    CHECK_STATUS(bird_options_set_tag(options, 77), BIRD_OK);
    set_option(options, "log_level", level);
    return options;
}

static bird_statistics statistics_of(bird_client *client) {
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(client, &s), BIRD_OK);
    return s;
}

/* Through a life with a loss in it. */
static void live(world *w) {
    world_grant_requests(w->client);
    world_connect(w);
    bird_channel *room = world_join(w, "presence-room");
    world_drop(w);
    UNTIL(w, statistics_of(w->client).reconnects == 1 && channel_state(room) == BIRD_CHANNEL_SUBSCRIBED);
    CHECK_STATUS(bird_channel_unsubscribe(room), BIRD_OK);
    bird_channel_release(room);
    CHECK_STATUS(bird_client_disconnect(w->client), BIRD_OK);
    UNTIL(w, client_state(w->client) == BIRD_STATE_DISCONNECTED);
}

static void check_life_was_told(void) {
    CHECK(has_told("info connection connecting, attempt 1: connect was called\n"));
    CHECK(has_told("info connection connected, connection "));
    CHECK(has_told("info channel subscribed to presence-room, with 1 members\n"));
    CHECK(has_told("warn connection unavailable: "));
    CHECK(has_told("info channel subscribed to presence-room again, after "));
    CHECK(has_told("info channel unsubscribed from presence-room\n"));
    CHECK(has_told("info connection disconnected: disconnect was called\n"));
    CHECK(!has_told("verbose "));
}

MODE_CASE(log_handler_is_told) {
    bird_options *options = logging_options(harness_mode(), "info");
    CHECK_STATUS(bird_options_set_log(options, take_entry, NULL, NULL), BIRD_OK);
    world w = world_open_with(harness_mode(), options);
    live(&w);
    world_close(&w);
    check_life_was_told();
}

MODE_CASE(log_records_without_a_handler) {
    world w = world_open_with(harness_mode(), logging_options(harness_mode(), "info"));
    CHECK_STATUS(bird_client_observe(w.client, UINT64_C(1) << BIRD_RECORD_LOG, take_record, NULL, NULL, NULL, NULL),
                 BIRD_OK);
    live(&w);
    UNTIL(&w, has_told("disconnected: disconnect was called\n"));
    world_close(&w);
    check_life_was_told();
}

/* With a handler there are no records; without a level of its own its level is info. */
EDGE_CASE(log_handler_takes_the_place_of_records) {
    bird_options *options = world_options(BIRD_DELIVERY_THREAD);
    CHECK_STATUS(bird_options_set_tag(options, 77), BIRD_OK);
    CHECK_STATUS(bird_options_set_log(options, take_entry, NULL, NULL), BIRD_OK);
    world w = world_open_with(BIRD_DELIVERY_THREAD, options);
    CHECK_STATUS(
        bird_client_observe(w.client, UINT64_C(1) << BIRD_RECORD_LOG, note_handler, "record", NULL, NULL, NULL),
        BIRD_OK);
    live(&w);
    world_close(&w);
    check_life_was_told();
    CHECK_INT(journal_count(), 0);
}

EDGE_CASE(log_is_off_by_default) {
    world w = world_open_with(BIRD_DELIVERY_THREAD, world_options(BIRD_DELIVERY_THREAD));
    CHECK_STATUS(
        bird_client_observe(w.client, UINT64_C(1) << BIRD_RECORD_LOG, note_handler, "record", NULL, NULL, NULL),
        BIRD_OK);
    live(&w);
    world_close(&w);
    CHECK_INT(journal_count(), 0);
}

EDGE_CASE(log_levels_and_areas_choose) {
    bird_options *options = logging_options(BIRD_DELIVERY_THREAD, "verbose");
    set_option(options, "log_areas", "channel,wire");
    CHECK_STATUS(bird_options_set_log(options, take_entry, NULL, NULL), BIRD_OK);
    world w = world_open_with(BIRD_DELIVERY_THREAD, options);
    live(&w);
    world_close(&w);
    CHECK(has_told("info channel subscribed to presence-room"));
    CHECK(has_told("verbose channel presence-room is pending\n"));
    CHECK(has_told("verbose wire sends bird:subscribe, "));
    CHECK(has_told("verbose wire received bird:connection_established, "));
    CHECK(!has_told(" connection connect") && !has_told(" authorization "));
}

MODE_CASE(log_changes_on_a_living_client) {
    bird_options *options = logging_options(harness_mode(), "off");
    CHECK_STATUS(bird_options_set_log(options, take_entry, NULL, NULL), BIRD_OK);
    world w = world_open_with(harness_mode(), options);
    world_grant_requests(w.client);
    world_connect(&w);
    CHECK_INT(told_length, 0);
    CHECK_STATUS(bird_client_set(w.client, "log_level", "verbose", NULL), BIRD_OK);
    CHECK_STATUS(bird_client_set(w.client, "log_areas", "channel", NULL), BIRD_OK);
    world_join(&w, "presence-room");
    /* The reactor tells its log after the state. */
    UNTIL(&w, has_told("info channel subscribed to presence-room, with 1 members\n"));
    CHECK(!has_told(" wire "));
    CHECK_STATUS(bird_client_set(w.client, "log_file", "/tmp/x", NULL), BIRD_ERR_STATE);
    size_t length;
    char dump[65536];
    CHECK_STATUS(bird_client_dump(w.client, dump, sizeof dump, &length), BIRD_OK);
    CHECK(strstr(dump, "\"log_areas\":\"channel\"") != NULL && strstr(dump, "\"log_level\":\"verbose\"") != NULL);
    CHECK_STATUS(bird_client_set(w.client, "log_level", "off", NULL), BIRD_OK);
    const size_t before = told_length;
    world_join(&w, "presence-other");
    CHECK_INT(told_length, before);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------- the handler ------ */

static struct {
    bird_client *client;
    bird_options *options;
    bird_queue *queue;
    atomic_int calls, destructors;
} inside;

static void note_record(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

static void count_inside(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&inside.destructors, 1);
}

/* Calls on handles are refused, in whatever the library is in the middle of; what needs none works. */
static void call_from_entry(const bird_log_entry *entry, void *user_data) {
    (void)user_data;
    int32_t state;
    size_t length;
    char text[64];
    bird_client *client = inside.client, *created = NULL;
    bird_channel *channel = NULL;
    bird_queue *queue = NULL;
    bird_error *error = NULL;
    if (client == NULL) {
        return;
    }
    CHECK_STATUS(bird_client_state(client, &state), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_connect(client, &error), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_error_status(error), BIRD_ERR_CALLBACK);
    CHECK_TEXT(bird_error_field(error), "log");
    bird_error_free(error);
    CHECK_STATUS(bird_client_disconnect(client), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_close(client, -1), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_flush(client, -1), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_wait(client, BIRD_STATE_FAILED, -1), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_subscribe(client, "x", 0, &channel, NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_dump(client, text, sizeof text, &length), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_create(inside.options, &created, NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_options_set(inside.options, "log_level", "off", NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_queue_create(&queue), BIRD_ERR_CALLBACK);
    /* A registration that is refused lets go of its user data. */
    const int before = atomic_load(&inside.destructors);
    uint64_t binding;
    CHECK_STATUS(bird_client_bind(client, "x", note_record, NULL, count_inside, &binding, NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_client_observe(client, 2, note_record, NULL, count_inside, NULL, NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_channel_bind(NULL, "x", note_record, NULL, count_inside, NULL, NULL), BIRD_ERR_CALLBACK);
    CHECK_STATUS(bird_options_set_log(inside.options, call_from_entry, NULL, count_inside), BIRD_ERR_CALLBACK);
    CHECK(atomic_load(&inside.destructors) >= before + 4); /* other threads may be here too */
    CHECK_TEXT(bird_status_name(BIRD_ERR_CALLBACK), "BIRD_ERR_CALLBACK");
    CHECK(*bird_log_level_name(entry->level) != '\0' && *bird_log_area_name(entry->area) != '\0');
    CHECK_INT(bird_data_is_json("1", 1), 1);
    atomic_fetch_add(&inside.calls, 1);
}

MODE_CASE(log_handler_may_not_call) {
    CHECK_STATUS(bird_options_create(&inside.options), BIRD_OK);
    bird_options *options = logging_options(harness_mode(), "verbose");
    CHECK_STATUS(bird_options_set_log(options, call_from_entry, NULL, NULL), BIRD_OK);
    world w = world_open_with(harness_mode(), options);
    inside.client = w.client;
    live(&w);
    CHECK(atomic_load(&inside.calls) > 20);
    CHECK_INT(client_state(w.client), BIRD_STATE_DISCONNECTED); /* outside it goes on as before */
    world_close(&w);
    bird_options_destroy(inside.options);
}

/* It ends with the last of the options and clients that have it. */
CASE(log_destructor_runs_once) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "ws_host", "127.0.0.1:1");
    CHECK_STATUS(bird_options_set_log(options, take_entry, "replaced", note_destructor), BIRD_OK);
    CHECK_STATUS(bird_options_set_log(options, take_entry, "kept", note_destructor), BIRD_OK);
    CHECK_TEXT(journal_text(), "~replaced");
    bird_client *first = NULL, *second = NULL;
    CHECK_STATUS(bird_client_create(options, &first, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_create(options, &second, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(first), BIRD_OK);
    bird_options_destroy(options);
    CHECK_INT(journal_count(), 1);
    CHECK_STATUS(bird_client_destroy(second), BIRD_OK);
    CHECK_TEXT(journal_text(), "~replaced ~kept");
}

CASE(log_destructor_runs_when_nothing_was_set) {
    CHECK_STATUS(bird_options_set_log(NULL, take_entry, "no options", note_destructor), BIRD_ERR_HANDLE);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    CHECK_STATUS(bird_options_set_log(options, NULL, "no handler", note_destructor), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_set_log(options, take_entry, "no client", note_destructor), BIRD_OK);
    CHECK_TEXT(journal_text(), "~no options ~no handler");
    bird_client *client = NULL;
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_ERR_VALUE); /* without app_key */
    CHECK_INT(journal_count(), 2);
    bird_options_destroy(options);
    CHECK_TEXT(journal_text(), "~no options ~no handler ~no client");
}

/* A handle that outlives the client does not keep the handler. */
EDGE_CASE(log_destructor_does_not_wait_for_held_batches) {
    bird_options *options = logging_options(BIRD_DELIVERY_QUEUE, "info");
    CHECK_STATUS(bird_options_set_log(options, take_entry, "end", note_destructor), BIRD_OK);
    world w = world_open_with(BIRD_DELIVERY_QUEUE, options);
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "orders", 0, &channel, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    bird_batch *batch = NULL;
    const bird_record *records;
    size_t count, stride;
    CHECK_STATUS(bird_queue_wait(w.queue, DEADLINE_MS), BIRD_OK);
    CHECK_STATUS(bird_queue_drain(w.queue, &batch, &records, &count, &stride), BIRD_OK);
    CHECK(batch != NULL);
    CHECK_STATUS(bird_client_destroy(w.client), BIRD_OK);
    CHECK_TEXT(journal_text(), "~end");
    CHECK_STATUS(bird_batch_release(batch), BIRD_OK);
    bird_channel_release(channel);
    CHECK_STATUS(bird_queue_destroy(w.queue), BIRD_OK);
}

/* ----------------------------------------------------------------------------------------------------- threads ------ */

/* The writer's thread comes with the first connect, if a sink wants something, and goes with the last client. */
EDGE_CASE(log_thread_lives_between_connect_and_destroy) {
    char path[] = "/tmp/bird-log-XXXXXX";
    close(mkstemp(path));
    const int threads = count_threads(), fds = count_fds();
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    set_option(options, "log_file", path);
    set_option(options, "log_file_level", "verbose");
    world w = world_open_with(BIRD_DELIVERY_LOOP, options);
    CHECK_INT(count_threads(), threads);
    CHECK_INT(count_fds(), fds + 1);
    world_grant_requests(w.client);
    world_connect(&w);
    CHECK_INT(count_threads(), threads + 2); /* bird-reactor, bird-log */
    world_close(&w);
    UNTIL(&w, count_threads() == threads);
    UNTIL(&w, count_fds() == fds);
    FILE *file = fopen(path, "r");
    char last[512] = "", line[512];
    while (fgets(line, sizeof line, file) != NULL) {
        strcpy(last, line);
    }
    fclose(file);
    unlink(path);
    CHECK(strchr(last, '\n') != NULL);
}

/* -------------------------------------------------------------------------------------------------------- dump ------ */

static _Thread_local char dump[65536];

static const char *dump_of(bird_client *client) {
    size_t length = 0, needed = 0;
    CHECK_STATUS(bird_client_dump(client, dump, 10, &needed), BIRD_ERR_SPACE);
    CHECK_STATUS(bird_client_dump(client, dump, sizeof dump, &length), BIRD_OK);
    CHECK_INT(length, strlen(dump));
    CHECK_INT(bird_data_is_json(dump, length), 1);
    return dump;
}

static void dump_inside(const bird_record *record, void *user_data) {
    size_t length = 0;
    const bird_status status = bird_client_dump(record->client, dump, sizeof dump, &length);
    if (status == BIRD_ERR_HANDLE) {
        return; /* the client is being destroyed, which waits for this call */
    }
    CHECK_STATUS(status, BIRD_OK);
    CHECK_INT(bird_data_is_json(dump, length), 1);
    atomic_fetch_add((atomic_int *)user_data, 1);
}

MODE_CASE(dump_in_every_state) {
    world w = world_open_with(harness_mode(), world_options(harness_mode()));
    world_grant_requests(w.client);
    CHECK(strstr(dump_of(w.client), "\"state\":\"initialized\"") != NULL);
    atomic_int dumps = 0;
    CHECK_STATUS(bird_client_observe(w.client, UINT64_MAX, dump_inside, &dumps, NULL, NULL, NULL), BIRD_OK);
    world_connect(&w);
    bird_channel *room = world_join(&w, "presence-room");
    world_settle(&w);
    const char *text = dump_of(w.client);
    CHECK(strstr(text, "\"state\":\"connected\"") != NULL);
    CHECK(strstr(text, "{\"name\":\"presence-room\",\"state\":\"subscribed\",\"members\":1}") != NULL);
    CHECK(strstr(text, "\"app_key\":\"pk_harness\"") != NULL);
    /* The reactor counts at the end of a turn. */
    UNTIL(&w, strstr(dump_of(w.client), "\"events_delivered\":1") != NULL);
    world_drop(&w);
    dump_of(w.client); /* unavailable, connecting or connected again */
    UNTIL(&w, statistics_of(w.client).reconnects == 1 && channel_state(room) == BIRD_CHANNEL_SUBSCRIBED);
    CHECK(strstr(dump_of(w.client), "\"current\":\"unavailable\"") != NULL);
    CHECK_STATUS(bird_client_disconnect(w.client), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_DISCONNECTED);
    CHECK(strstr(dump_of(w.client), "\"state\":\"disconnected\"") != NULL);
    CHECK_STATUS(bird_client_close(w.client, DEADLINE_MS), BIRD_OK);
    CHECK(strstr(dump_of(w.client), "\"is_closed\":true") != NULL);
    CHECK(atomic_load(&dumps) > 5);
    bird_client *client = w.client;
    bird_channel_release(room);
    world_close(&w);
    CHECK_STATUS(bird_client_dump(client, dump, sizeof dump, NULL), BIRD_ERR_HANDLE);
}

EDGE_CASE(dump_of_a_refused_client) {
    world w = world_open(BIRD_DELIVERY_THREAD);
    world_connect(&w);
    CHECK_STATUS(bird_channel_trigger(w.control, "client-close", "4001", BIRD_NUL, NULL), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_FAILED);
    const char *text = dump_of(w.client);
    CHECK(strstr(text, "\"state\":\"failed\"") != NULL && strstr(text, "\"close_code\":4001") != NULL);
    world_close(&w);
}

CASE(dump_leaves_channels_out) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "us1");
    bird_client *client = client_from(options, NULL);
    for (int i = 0; i < 130; i++) {
        char name[32];
        bird_channel *channel = NULL;
        snprintf(name, sizeof name, "channel-%03d", i);
        CHECK_STATUS(bird_client_subscribe(client, name, 0, &channel, NULL), BIRD_OK);
        bird_channel_release(channel);
    }
    const char *text = dump_of(client);
    CHECK(strstr(text, "\"channel-099\"") != NULL && strstr(text, "\"channel-100\"") == NULL);
    CHECK(strstr(text, "\"channels_left_out\":30") != NULL);
    CHECK_INT(statistics_of(client).channels, 130);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
}

/* -------------------------------------------------------------------------------------------------- many lines ------ */

/* HOST:PORT FILE BYTES_MAX COUNT NAME: the wire's log of COUNT client events "client-NAME-<number>" goes to the file. */
LOAD_CASE(log_numbered_lines) {
    bird_options *options = world_options(BIRD_DELIVERY_THREAD);
    set_option(options, "log_file", harness_argument(1));
    set_option(options, "log_file_level", "verbose");
    set_option(options, "log_file_bytes_max", harness_argument(2));
    set_option(options, "log_files_kept", "1000");
    world w = world_open_with(BIRD_DELIVERY_THREAD, options);
    world_grant_requests(w.client);
    world_connect(&w);
    const int count = atoi(harness_argument(3));
    for (int i = 0; i < count; i++) {
        char event[64];
        snprintf(event, sizeof event, "client-%s-%d", harness_argument(4), i);
        CHECK_STATUS(bird_channel_trigger(w.control, event, NULL, 0, NULL), BIRD_OK);
        if (i % 1000 == 999) {
            CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
        }
    }
    CHECK_STATUS(bird_client_flush(w.client, DEADLINE_MS), BIRD_OK);
    CHECK_INT(statistics_of(w.client).log_entries_dropped, 0);
    world_close(&w);
}
