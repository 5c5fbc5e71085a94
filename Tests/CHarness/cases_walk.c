/*
 * A random walk over every function of the header, on two threads and in handlers, with good, stale, foreign and invented handles, extreme
 * numbers and texts of every kind. Only statuses come back: no crash, no hang, no leak, and every destructor runs once.
 *
 *   SEED=1 CALLS=1000000 build/c/harness walk_over_every_function HOST:PORT
 */
#include "harness.h"

#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ------------------------------------------------------------------------------------------------------ chance ------ */

typedef struct walker {
    uint64_t random;
    int depth; /* of handlers that this thread is in */
    bool is_child;
} walker;

static uint64_t seed;
static int calls_per_thread = 40000;

static uint64_t next_random(walker *w) {
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return w->random;
}

static uint64_t below(walker *w, uint64_t count) {
    return (next_random(w) >> 8) % count;
}

static bool one_in(walker *w, uint64_t count) {
    return below(w, count) == 0;
}

#define PICK(w, values) ((values)[below(w, sizeof(values) / sizeof *(values))])

static int64_t any_number(walker *w) {
    static const int64_t numbers[] = {0,
                                      1,
                                      -1,
                                      2,
                                      5,
                                      64,
                                      65,
                                      1000,
                                      INT32_MAX,
                                      INT32_MIN,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_C(1) << 31,
                                      -(INT64_C(1) << 31) - 1,
                                      86400000};
    return one_in(w, 4) ? (int64_t)next_random(w) : PICK(w, numbers);
}

static size_t any_size(walker *w) {
    static const size_t sizes[] = {0,
                                   1,
                                   2,
                                   100,
                                   10240,
                                   10241,
                                   SIZE_MAX - 1,
                                   SIZE_MAX / 2,
                                   SIZE_MAX / 2 + 1,
                                   (size_t)1 << 31,
                                   ((size_t)1 << 31) - 1};
    return PICK(w, sizes);
}

/* ------------------------------------------------------------------------------------------------------- texts ------ */

#define MIB ((size_t)1 << 20)
#define ONES_BYTES (2048 * MIB)

/* 2 GiB of the digit 1, the same memory again and again, and a NUL. */
static char *ones;

static void map_ones(void) {
    const int fd = memfd_create("ones", MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)MIB) == 0);
    char *one = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(one != MAP_FAILED);
    memset(one, '1', MIB);
    CHECK(munmap(one, MIB) == 0);
    ones = mmap(NULL, ONES_BYTES + MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(ones != MAP_FAILED);
    for (size_t at = 0; at < ONES_BYTES; at += MIB) {
        CHECK(mmap(ones + at, MIB, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    }
    close(fd);
}

/* Most are good for something. */
static const char *any_name(walker *w) {
    static const char *const names[] = {"orders",        "private-orders", "private-control",
                                        "presence-room", "presence-hall",  "private-encrypted-safe"};
    return PICK(w, names);
}

static const char *any_text(walker *w) {
    static const char *const texts[] = {NULL,
                                        "",
                                        "x",
                                        "orders",
                                        "private-orders",
                                        "presence-room",
                                        "private-encrypted-safe",
                                        "#server-to-user-m_1",
                                        "client-x",
                                        "tick",
                                        "bird:subscription_succeeded",
                                        "bird:member_added",
                                        "\xff\xfe",
                                        "\xc0\x80",
                                        "\xed\xa0\x80",
                                        "a\xf0\x9f\x98",
                                        "a b",
                                        "line\nfeed",
                                        "tab\there",
                                        "\x01",
                                        "\x7f",
                                        "-1",
                                        "0",
                                        "1",
                                        "true",
                                        "18446744073709551616",
                                        "5000",
                                        "{}",
                                        "[1,2,{\"a\":null}]",
                                        "{\"member_id\":\"m_1\"}",
                                        "\"text\"",
                                        "{",
                                        "null",
                                        "thread",
                                        "queue",
                                        "loop",
                                        "http://",
                                        "http://127.0.0.1:1/a",
                                        "://"};
    switch (below(w, 24)) {
    case 0:
        return ones; /* 2 GiB                       */
    case 1:
        return ones + ONES_BYTES - MIB; /* 1 MiB                       */
    case 2:
        return ones + ONES_BYTES - 65536; /* as long as a text may be    */
    case 3:
        return ones + ONES_BYTES - 65537;
    case 4:
        return ones + ONES_BYTES - 200; /* as long as a name may be    */
    case 5:
        return ones + ONES_BYTES - 201;
    default:
        return PICK(w, texts);
    }
}

/* Readable for every length that is not refused unread. */
static const void *any_data(walker *w, size_t *length) {
    static const char *const data[] = {"1", "{}", "", "\"\\ud800\"", "\xff", "[[[[", "{\"a\":1,\"a\":2}"};
    if (one_in(w, 3)) {
        *length = any_size(w);
        return one_in(w, 8) ? NULL : ones;
    }
    const char *text = PICK(w, data);
    *length = one_in(w, 2) ? BIRD_NUL : strlen(text);
    return text;
}

/* ----------------------------------------------------------------------------------------------------- handles ------ */

typedef enum kind { OPTIONS, CLIENT, CHANNEL, QUEUE, LOOP, BATCH, REQUEST, KINDS } kind;

#define SHELF_HANDLES 6
#define DEAD_HANDLES 64

static _Atomic(void *) shelf[KINDS][SHELF_HANDLES]; /* live, as far as the walk knows */
static _Atomic(void *) dead[DEAD_HANDLES];
static _Atomic(void *) busy[4096]; /* queues and loops that could not be destroyed when their turn came */
static atomic_uint dead_count, busy_count;

/* Everything but a live handle of any kind. */
static void *no_handle(walker *w) {
    switch (below(w, 5)) {
    case 0:
        return NULL;
    case 1:
        return (void *)(uintptr_t)next_random(w);
    case 2:
        return &shelf[below(w, KINDS)];
    case 3:
        return (void *)((uintptr_t)atomic_load(&shelf[below(w, KINDS)][0]) ^ UINT64_C(1) << (32 + below(w, 32)));
    default:
        return atomic_load(&dead[below(w, DEAD_HANDLES)]);
    }
}

static void *any(walker *w, kind wanted) {
    if (one_in(w, 6)) {
        return no_handle(w);
    }
    return atomic_load(&shelf[one_in(w, 12) ? below(w, KINDS) : wanted][below(w, SHELF_HANDLES)]);
}

static bird_status give_back(kind of, void *handle) {
    switch (of) {
    case OPTIONS:
        bird_options_destroy(handle);
        return BIRD_OK;
    case CLIENT:
        return bird_client_destroy(handle);
    case CHANNEL:
        bird_channel_release(handle);
        return BIRD_OK;
    case QUEUE:
        return bird_queue_destroy(handle);
    case LOOP:
        return bird_loop_destroy(handle);
    case BATCH:
        return bird_batch_release(handle);
    default:
        return BIRD_OK;
    }
}

static void bury(void *handle) {
    atomic_store(&dead[atomic_fetch_add(&dead_count, 1) % DEAD_HANDLES], handle);
}

/* The handle takes the place of an older one, which is given back. */
static void keep(walker *w, kind of, void *handle) {
    if (handle == NULL) {
        return;
    }
    void *old = atomic_exchange(&shelf[of][below(w, SHELF_HANDLES)], handle);
    if (give_back(of, old) == BIRD_ERR_BUSY) {
        const unsigned place = atomic_fetch_add(&busy_count, 1);
        CHECK(place < sizeof busy / sizeof *busy);
        atomic_store(&busy[place], old);
        return;
    }
    bury(old);
}

/* ---------------------------------------------------------------------------------------------------- user data ----- */

#define CELLS_MAX (1 << 20)

/* Each registration has a cell of its own, which counts its destructor's calls. */
static atomic_uchar cells[CELLS_MAX];
static atomic_int cell_count;

static void *new_cell(void) {
    const int place = atomic_fetch_add(&cell_count, 1);
    CHECK(place < CELLS_MAX);
    return &cells[place];
}

static void count_destructor(void *user_data) {
    atomic_fetch_add((atomic_uchar *)user_data, 1);
}

static void handle_record(const bird_record *record, void *user_data);

static bird_handler any_handler(walker *w) {
    return one_in(w, 16) ? NULL : handle_record;
}

/* ------------------------------------------------------------------------------------------------------- calls ------ */

typedef void (*walk_call)(walker *w);

static walk_call calls[128];
static int call_count;
static atomic_int succeeded, refused;

/* One for each function of the header, which test_harness.py checks. */
#define CALL(function)                                                                                                 \
    static void call_##function(walker *w);                                                                            \
    __attribute__((constructor)) static void add_##function(void) {                                                    \
        calls[call_count++] = call_##function;                                                                         \
    }                                                                                                                  \
    static void call_##function(walker *w)

static bird_status see(bird_status status) {
    if (status != BIRD_OK && strcmp(bird_status_name(status), bird_status_name(12345)) == 0) {
        harness_fail(__FILE__, __LINE__, "status %d is none", (int)status);
    }
    atomic_fetch_add(status == BIRD_OK ? &succeeded : &refused, 1);
    return status;
}

static void read_error(const bird_error *error) {
    see(bird_error_status(error));
    CHECK(bird_error_area(error) >= 0 && bird_error_retriable(error) >= 0 && bird_error_retriable(error) <= 1);
    CHECK(strlen(bird_error_field(error)) < MIB && strlen(bird_error_message(error)) < MIB);
    CHECK(strlen(bird_error_endpoint(error)) < MIB && bird_error_code(error) >= 0);
    CHECK(strlen(bird_error_channel(error)) < MIB);
    CHECK(bird_error_http_status(error) >= 0 && bird_error_curl_code(error) >= 0);
}

/* `call` names its error out-parameter `error`: a place for it, or NULL. */
#define SEE_ERROR(w, call)                                                                                             \
    do {                                                                                                               \
        bird_error *found = (bird_error *)1, **error = one_in(w, 2) ? &found : NULL;                                   \
        const bird_status status = see(call);                                                                          \
        if (error != NULL) {                                                                                           \
            CHECK((found != NULL) == (status != BIRD_OK));                                                             \
            CHECK_STATUS(bird_error_status(found), status);                                                            \
            read_error(found);                                                                                         \
            bird_error_free(found);                                                                                    \
        }                                                                                                              \
    } while (0)

#define VERSION_CALL(function, check)                                                                                  \
    CALL(function) {                                                                                                   \
        (void)w;                                                                                                       \
        CHECK(check);                                                                                                  \
    }

VERSION_CALL(bird_version_number, bird_version_number() == BIRD_VERSION_NUMBER)
VERSION_CALL(bird_version_string, bird_version_string() != NULL)
VERSION_CALL(bird_version_check, see(bird_version_check((int32_t)any_number(w))) <= BIRD_OK)
VERSION_CALL(bird_status_name, bird_status_name((bird_status)any_number(w)) != NULL)
VERSION_CALL(bird_status_message, bird_status_message((bird_status)any_number(w)) != NULL)
VERSION_CALL(bird_state_name, bird_state_name((int32_t)any_number(w)) != NULL)

/* Errors are no handles: of them there are good ones and NULL. */
VERSION_CALL(bird_error_status, bird_error_status(NULL) == BIRD_OK)
VERSION_CALL(bird_error_area, bird_error_area(NULL) == 0)
VERSION_CALL(bird_error_field, *bird_error_field(NULL) == '\0')
VERSION_CALL(bird_error_message, *bird_error_message(NULL) == '\0')
VERSION_CALL(bird_error_code, bird_error_code(NULL) == 0)
VERSION_CALL(bird_error_http_status, bird_error_http_status(NULL) == 0)
VERSION_CALL(bird_error_curl_code, bird_error_curl_code(NULL) == 0)
VERSION_CALL(bird_error_endpoint, *bird_error_endpoint(NULL) == '\0')
VERSION_CALL(bird_error_channel, *bird_error_channel(NULL) == '\0')
VERSION_CALL(bird_error_retriable, bird_error_retriable(NULL) == 0)
CALL(bird_error_free) {
    (void)w;
    bird_error_free(NULL);
}

static const char *any_key(walker *w) {
    static const char *const keys[] = {"app_key",
                                       "allow_insecure",
                                       "address",
                                       "auth_endpoint",
                                       "member_auth_endpoint",
                                       "authorizer",
                                       "member_authorizer",
                                       "header_provider",
                                       "may_reconnect",
                                       "proxy",
                                       "connect_timeout_ms",
                                       "auth_timeout_ms",
                                       "answer_timeout_ms",
                                       "message_timeout_ms",
                                       "activity_timeout_ms",
                                       "pong_timeout_ms",
                                       "pong_misses_max",
                                       "preset",
                                       "reconnect",
                                       "reconnect_delay_ms",
                                       "reconnect_stages",
                                       "reconnect_attempts_max",
                                       "backoff_base_ms",
                                       "backoff_max_ms",
                                       "flap_guard",
                                       "message_bytes_max",
                                       "client_event_bytes_max",
                                       "outbound_bytes_max",
                                       "queue_bytes_max",
                                       "queue_records_max",
                                       "delivery",
                                       "log_level",
                                       "log_areas",
                                       "records"};
    return one_in(w, 8) ? any_text(w) : PICK(w, keys);
}

/* Half of them lead to the edge of the case. */
CALL(bird_options_create) {
    bird_options *options = NULL;
    see(bird_options_create(one_in(w, 8) ? NULL : &options));
    if (options != NULL && !one_in(w, 4)) {
        static const char *const deliveries[] = {"thread", "loop", "thread", "queue"};
        set_option(options, "app_key", "pk_harness");
        set_option(options, "ws_host", harness_argument(0));
        set_option(options, "allow_insecure", "1");
        set_option(options, "authorizer", "1");
        set_option(options, "member_authorizer", "1");
        set_option(options, "backoff_base_ms", "10");
        set_option(options, "flap_guard", "0");
        set_option(options, "delivery", PICK(w, deliveries));
    }
    keep(w, OPTIONS, options);
}
CALL(bird_options_destroy) {
    if (one_in(w, 8)) {
        bird_options_destroy(any(w, OPTIONS));
    }
}
CALL(bird_options_set) {
    SEE_ERROR(w, bird_options_set(any(w, OPTIONS), any_key(w), any_text(w), error));
}
CALL(bird_options_set_int) {
    SEE_ERROR(w, bird_options_set_int(any(w, OPTIONS), any_key(w), any_number(w), error));
}
CALL(bird_options_set_auth_header) {
    SEE_ERROR(w, bird_options_set_auth_header(any(w, OPTIONS), any_text(w), any_text(w), error));
}
CALL(bird_options_count) {
    (void)w;
    see(bird_options_count() > 0 ? BIRD_OK : BIRD_ERR_SYSTEM);
}
CALL(bird_options_describe) {
    bird_option option = {.struct_size = one_in(w, 8) ? (uint32_t)below(w, sizeof option) : sizeof option};
    see(bird_options_describe((size_t)any_number(w), one_in(w, 8) ? NULL : &option));
}
CALL(bird_options_set_queue) {
    see(bird_options_set_queue(any(w, OPTIONS), any(w, QUEUE)));
}
CALL(bird_options_set_loop) {
    see(bird_options_set_loop(any(w, OPTIONS), any(w, LOOP)));
}
/* It may be called on several threads at once, and must not get anywhere with the library. */
static void handle_entry(const bird_log_entry *entry, void *user_data) {
    CHECK(entry->message[entry->message_length] == '\0' && entry->message_length <= 2100 && entry->client_number > 0);
    CHECK(atomic_load((atomic_uchar *)user_data) == 0);
    void *client = atomic_load(&shelf[CLIENT][0]);
    CHECK_STATUS(bird_client_destroy(client), client == NULL ? BIRD_OK : BIRD_ERR_CALLBACK);
}
CALL(bird_options_set_log) {
    if (one_in(w, 8)) {
        see(bird_options_set_log(any(w, OPTIONS), one_in(w, 16) ? NULL : handle_entry, new_cell(), count_destructor));
    }
}
VERSION_CALL(bird_log_level_name, bird_log_level_name((int32_t)any_number(w)) != NULL)
VERSION_CALL(bird_log_area_name, bird_log_area_name((int32_t)any_number(w)) != NULL)
CALL(bird_options_set_tag) {
    see(bird_options_set_tag(any(w, OPTIONS), next_random(w)));
}

CALL(bird_client_create) {
    if (!one_in(w, 4)) {
        return;
    }
    bird_client *client = NULL;
    SEE_ERROR(w, bird_client_create(any(w, OPTIONS), one_in(w, 8) ? NULL : &client, error));
    if (client != NULL && !w->is_child) {
        see(bird_client_observe(client, 1u << BIRD_RECORD_REQUEST, handle_record, new_cell(), count_destructor, NULL,
                                NULL));
        see(bird_client_connect(client, NULL));
    }
    keep(w, CLIENT, client);
}
CALL(bird_client_destroy) {
    if (one_in(w, 64)) {
        see(bird_client_destroy(any(w, CLIENT)));
    }
}
CALL(bird_client_connect) {
    SEE_ERROR(w, bird_client_connect(any(w, CLIENT), error));
}
CALL(bird_client_retry_now) {
    see(bird_client_retry_now(any(w, CLIENT)));
}
CALL(bird_client_set) {
    SEE_ERROR(w, bird_client_set(any(w, CLIENT), any_key(w), any_text(w), error));
}
CALL(bird_client_set_int) {
    SEE_ERROR(w, bird_client_set_int(any(w, CLIENT), any_key(w), any_number(w), error));
}
CALL(bird_client_disconnect) {
    if (one_in(w, 16)) {
        see(bird_client_disconnect(any(w, CLIENT)));
    }
}
CALL(bird_client_network_hint) {
    see(bird_client_network_hint(any(w, CLIENT), one_in(w, 4) ? (int32_t)any_number(w) : (int32_t)below(w, 5)));
}
/* What waits must not do so for ever; with no handle the time does not matter. */
static void *any_and_time(walker *w, kind wanted, int64_t *timeout_ms) {
    if (one_in(w, 4)) {
        *timeout_ms = any_number(w);
        static const uintptr_t never[] = {0, 1, UINTPTR_MAX};
        return (void *)PICK(w, never);
    }
    *timeout_ms = (int64_t)below(w, 2);
    return any(w, wanted);
}
CALL(bird_client_wait) {
    int64_t timeout_ms;
    bird_client *client = any_and_time(w, CLIENT, &timeout_ms);
    see(bird_client_wait(client, one_in(w, 4) ? (int32_t)any_number(w) : (int32_t)below(w, 7), timeout_ms));
}
CALL(bird_client_flush) {
    int64_t timeout_ms;
    bird_client *client = any_and_time(w, CLIENT, &timeout_ms);
    see(bird_client_flush(client, timeout_ms));
}
CALL(bird_client_close) {
    int64_t timeout_ms;
    bird_client *client = any_and_time(w, CLIENT, &timeout_ms);
    if (one_in(w, 64)) {
        see(bird_client_close(client, timeout_ms));
    }
}
CALL(bird_client_state) {
    int32_t state;
    see(bird_client_state(any(w, CLIENT), one_in(w, 8) ? NULL : &state));
}

typedef bird_status (*copy_out)(void *handle, char *buffer, size_t size, size_t *length);

static void see_text(walker *w, copy_out copy, void *handle) {
    char buffer[512];
    size_t length = 0;
    const size_t size = below(w, sizeof buffer);
    see(copy(handle, one_in(w, 8) ? NULL : buffer, size, one_in(w, 8) ? NULL : &length));
    CHECK(length < MIB);
}
/* As ctypes and friends call it: a handle is a void pointer. */
static bird_status connection_id(void *handle, char *buffer, size_t size, size_t *length) {
    return bird_client_connection_id(handle, buffer, size, length);
}
static bird_status member_id(void *handle, char *buffer, size_t size, size_t *length) {
    return bird_client_member_id(handle, buffer, size, length);
}
static bird_status channel_name(void *handle, char *buffer, size_t size, size_t *length) {
    return bird_channel_name(handle, buffer, size, length);
}
static bird_status my_id(void *handle, char *buffer, size_t size, size_t *length) {
    return bird_channel_my_id(handle, buffer, size, length);
}
CALL(bird_client_connection_id) {
    see_text(w, connection_id, any(w, CLIENT));
}
CALL(bird_client_member_id) {
    see_text(w, member_id, any(w, CLIENT));
}
CALL(bird_channel_name) {
    see_text(w, channel_name, any(w, CHANNEL));
}
CALL(bird_channel_my_id) {
    see_text(w, my_id, any(w, CHANNEL));
}

CALL(bird_client_subscribe) {
    bird_channel *channel = NULL;
    const uint64_t tag = one_in(w, 2) ? 0 : next_random(w);
    SEE_ERROR(w, bird_client_subscribe(any(w, CLIENT), one_in(w, 2) ? any_name(w) : any_text(w), tag,
                                       one_in(w, 16) ? NULL : &channel, error));
    keep(w, CHANNEL, channel);
}
CALL(bird_client_signin) {
    const uint32_t flags = one_in(w, 4) ? (uint32_t)any_number(w) : BIRD_SIGNIN_REFRESH;
    SEE_ERROR(w, bird_client_signin(any(w, CLIENT), flags, next_random(w), error));
}
CALL(bird_client_member_channel) {
    bird_channel *channel = NULL;
    see(bird_client_member_channel(any(w, CLIENT), one_in(w, 8) ? NULL : &channel));
    keep(w, CHANNEL, channel);
}
CALL(bird_client_bind) {
    uint64_t binding;
    SEE_ERROR(w, bird_client_bind(any(w, CLIENT), any_text(w), any_handler(w), new_cell(), count_destructor,
                                  one_in(w, 4) ? NULL : &binding, error));
}
CALL(bird_client_observe) {
    uint64_t binding;
    SEE_ERROR(w, bird_client_observe(any(w, CLIENT), next_random(w), any_handler(w), new_cell(), count_destructor,
                                     one_in(w, 4) ? NULL : &binding, error));
}
CALL(bird_channel_bind) {
    uint64_t binding;
    SEE_ERROR(w, bird_channel_bind(any(w, CHANNEL), any_text(w), any_handler(w), new_cell(), count_destructor,
                                   one_in(w, 4) ? NULL : &binding, error));
}
CALL(bird_client_unbind) {
    see(bird_client_unbind(any(w, CLIENT), one_in(w, 4) ? (uint64_t)any_number(w) : below(w, 500)));
}
CALL(bird_channel_unbind_event) {
    see(bird_channel_unbind_event(any(w, CHANNEL), any_text(w)));
}
CALL(bird_client_unbind_event) {
    see(bird_client_unbind_event(any(w, CLIENT), any_text(w)));
}
CALL(bird_channel_unbind_all) {
    see(bird_channel_unbind_all(any(w, CHANNEL)));
}
CALL(bird_client_unbind_all) {
    see(bird_client_unbind_all(any(w, CLIENT)));
}
CALL(bird_client_intern) {
    uint32_t id;
    SEE_ERROR(w, bird_client_intern(any(w, CLIENT), any_text(w), one_in(w, 8) ? NULL : &id, error));
}
CALL(bird_client_dump) {
    char text[16384];
    size_t length = 0;
    const size_t size = one_in(w, 2) ? sizeof text : below(w, sizeof text);
    const bird_status status = see(bird_client_dump(any(w, CLIENT), one_in(w, 8) ? NULL : text, size, &length));
    if (status == BIRD_OK) {
        CHECK_INT(strlen(text), length);
        CHECK_INT(bird_data_is_json(text, length), 1);
    }
}
CALL(bird_client_statistics) {
    struct {
        bird_statistics statistics;
        uint64_t behind[64];
    } s;
    memset(&s, 0x5a, sizeof s);
    s.statistics.struct_size = one_in(w, 2) ? sizeof s.statistics : one_in(w, 2) ? UINT32_MAX : (uint32_t)below(w, 300);
    if (see(bird_client_statistics(any(w, CLIENT), one_in(w, 8) ? NULL : &s.statistics)) == BIRD_OK &&
        s.statistics.struct_size >= sizeof s.statistics) {
        CHECK(s.statistics.queue_records < 1 << 30 && s.statistics.queue_bytes < UINT64_C(1) << 40);
        CHECK(s.statistics.client_events_lost < 1 << 30 && s.statistics.connects <= s.statistics.attempts);
    }
    CHECK(s.behind[0] == UINT64_C(0x5a5a5a5a5a5a5a5a)); /* nothing behind what this header knows */
}

CALL(bird_channel_release) {
    if (one_in(w, 16)) {
        bird_channel_release(any(w, CHANNEL));
    }
}
CALL(bird_channel_unsubscribe) {
    if (one_in(w, 16)) {
        see(bird_channel_unsubscribe(any(w, CHANNEL)));
    }
}
CALL(bird_channel_trigger) {
    size_t length;
    const void *data = any_data(w, &length);
    const char *event = one_in(w, 4) ? any_text(w) : "client-x";
    SEE_ERROR(w, bird_channel_trigger(any(w, CHANNEL), event, data, length, error));
}
CALL(bird_channel_state) {
    int32_t state;
    see(bird_channel_state(any(w, CHANNEL), one_in(w, 8) ? NULL : &state));
}
CALL(bird_channel_kind) {
    int32_t number;
    see(bird_channel_kind(any(w, CHANNEL), one_in(w, 8) ? NULL : &number));
}
CALL(bird_channel_set_tag) {
    see(bird_channel_set_tag(any(w, CHANNEL), next_random(w)));
}
CALL(bird_channel_member_count) {
    size_t count;
    see(bird_channel_member_count(any(w, CHANNEL), one_in(w, 8) ? NULL : &count));
}

/* Like errors, no handles. */
static void see_members(walker *w) {
    bird_members *members = NULL;
    see(bird_channel_members(any(w, CHANNEL), one_in(w, 8) ? NULL : &members));
    const size_t index = one_in(w, 2) ? 0 : any_size(w);
    CHECK(bird_members_count(members) < MIB);
    CHECK(strlen(bird_members_id(members, index)) < MIB && strlen(bird_members_info(members, index)) < MIB);
    CHECK(bird_members_id_length(members, index) >= strlen(bird_members_id(members, index)));
    bird_members_free(members);
}
#define MEMBERS_CALL(function)                                                                                         \
    CALL(function) {                                                                                                   \
        see_members(w);                                                                                                \
    }
MEMBERS_CALL(bird_channel_members)
MEMBERS_CALL(bird_members_count)
MEMBERS_CALL(bird_members_id)
MEMBERS_CALL(bird_members_id_length)
MEMBERS_CALL(bird_members_info)
MEMBERS_CALL(bird_members_free)

CALL(bird_data_is_json) {
    size_t length;
    const void *data = any_data(w, &length);
    /* Here every length is believed. */
    if (data != ones || length > SIZE_MAX / 2 || length <= MIB) {
        const int32_t is_json = bird_data_is_json(data, length);
        CHECK(is_json == 0 || is_json == 1);
    }
}

CALL(bird_request_authorize) {
    SEE_ERROR(w, bird_request_authorize(any(w, REQUEST), any_text(w), any_text(w), any_text(w), error));
}
CALL(bird_request_headers) {
    bird_header headers[65];
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        headers[i] = (bird_header){.name = any_text(w), .value = any_text(w)};
    }
    const size_t count = one_in(w, 2) ? below(w, 66) : 65 + any_size(w) / 2; /* more than 64 are not read */
    SEE_ERROR(w, bird_request_headers(any(w, REQUEST), one_in(w, 8) ? NULL : headers, count, error));
}
CALL(bird_request_proceed) {
    SEE_ERROR(w, bird_request_proceed(any(w, REQUEST), any_number(w), error));
}
CALL(bird_request_fail) {
    SEE_ERROR(w, bird_request_fail(any(w, REQUEST), one_in(w, 4) ? (int32_t)any_number(w) : 1, any_text(w), error));
}

CALL(bird_queue_create) {
    if (one_in(w, 16)) {
        bird_queue *queue = NULL;
        see(bird_queue_create(one_in(w, 8) ? NULL : &queue));
        keep(w, QUEUE, queue);
    }
}
CALL(bird_queue_destroy) {
    if (one_in(w, 16)) {
        see(bird_queue_destroy(any(w, QUEUE)));
    }
}
CALL(bird_queue_fd) {
    int32_t fd;
    see(bird_queue_fd(any(w, QUEUE), one_in(w, 8) ? NULL : &fd));
}
CALL(bird_queue_wait) {
    int64_t timeout_ms;
    bird_queue *queue = any_and_time(w, QUEUE, &timeout_ms);
    see(bird_queue_wait(queue, timeout_ms));
}
CALL(bird_queue_wake) {
    see(bird_queue_wake(any(w, QUEUE)));
}
CALL(bird_queue_drain) {
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count, stride;
    see(bird_queue_drain(any(w, QUEUE), one_in(w, 8) ? NULL : &batch, one_in(w, 8) ? NULL : &records,
                         one_in(w, 8) ? NULL : &count, one_in(w, 8) ? NULL : &stride));
    for (size_t i = 0; batch != NULL && i < count; i++) {
        const bird_record *record = (const void *)((const char *)records + i * stride);
        CHECK(record->data[record->data_length] == '\0' && record->event[record->event_length] == '\0');
    }
    keep(w, BATCH, batch);
}
CALL(bird_batch_release) {
    see(bird_batch_release(any(w, BATCH)));
}
CALL(bird_queue_dispatch) {
    size_t count;
    see(bird_queue_dispatch(any(w, QUEUE), one_in(w, 2) ? 0 : any_size(w), one_in(w, 8) ? NULL : &count));
}

CALL(bird_loop_create) {
    if (one_in(w, 16)) {
        bird_loop *loop = NULL;
        see(bird_loop_create(one_in(w, 8) ? NULL : &loop));
        keep(w, LOOP, loop);
    }
}
CALL(bird_loop_destroy) {
    if (one_in(w, 16)) {
        see(bird_loop_destroy(any(w, LOOP)));
    }
}
CALL(bird_loop_fd) {
    int32_t fd;
    see(bird_loop_fd(any(w, LOOP), one_in(w, 8) ? NULL : &fd));
}
CALL(bird_loop_deadline) {
    int64_t deadline_ms;
    see(bird_loop_deadline(any(w, LOOP), one_in(w, 8) ? NULL : &deadline_ms));
}
CALL(bird_loop_run_once) {
    int64_t timeout_ms;
    bird_loop *loop = any_and_time(w, LOOP, &timeout_ms);
    see(bird_loop_run_once(loop, timeout_ms));
}
CALL(bird_loop_wake) {
    see(bird_loop_wake(any(w, LOOP)));
}
CALL(bird_set_delivery_threads) {
    see(bird_set_delivery_threads(one_in(w, 2) ? 1 + (int32_t)below(w, 4) : (int32_t)any_number(w)));
}

/* -------------------------------------------------------------------------------------------------------- walk ------ */

static atomic_int walkers;
static _Thread_local walker this_walker;

static walker *current(void) {
    if (this_walker.random == 0) {
        this_walker.random = seed + UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(1 + atomic_fetch_add(&walkers, 1));
    }
    return &this_walker;
}

static void take_steps(walker *w, int count) {
    for (int i = 0; i < count; i++) {
        calls[below(w, (uint64_t)call_count)](w);
    }
}

static atomic_bool is_over;
static atomic_int handlers_running;

/* Handlers walk too, and make requests known. */
static void handle_record(const bird_record *record, void *user_data) {
    (void)user_data;
    walker *w = current();
    atomic_fetch_add(&handlers_running, 1);
    CHECK(record->data[record->data_length] == '\0' && record->event[record->event_length] == '\0');
    if (record->kind == BIRD_RECORD_REQUEST) {
        bird_request *request = ((const bird_question *)record->detail)->request;
        if (one_in(w, 2)) {
            SEE_ERROR(w,
                      bird_request_authorize(request, "pk_harness:signature", "{\"member_id\":\"m_1\"}", NULL, error));
        }
        keep(w, REQUEST, request);
    }
    if (w->depth < 3 && !atomic_load(&is_over)) {
        w->depth++;
        take_steps(w, 3);
        w->depth--;
    }
    atomic_fetch_sub(&handlers_running, 1);
}

static void *walk(void *unused) {
    (void)unused;
    take_steps(current(), calls_per_thread);
    return NULL;
}

static void until_every_destructor_ran(void) {
    const int64_t end = now_ms() + DEADLINE_MS;
    for (int i = 0; i < atomic_load(&cell_count); i++) {
        while (atomic_load(&cells[i]) == 0) {
            CHECK(now_ms() < end);
            usleep(1000);
        }
        CHECK_INT(atomic_load(&cells[i]), 1);
        atomic_store(&cells[i], 0);
    }
    atomic_store(&cell_count, 0);
}

/* Kinds in an order in which all can be given back. */
static void give_everything_back(void) {
    const kind order[] = {CLIENT, CHANNEL, BATCH, OPTIONS, REQUEST, QUEUE, LOOP};
    for (size_t k = 0; k < KINDS; k++) {
        for (int i = 0; i < SHELF_HANDLES; i++) {
            void *handle = atomic_exchange(&shelf[order[k]][i], NULL);
            const bird_status status = handle == NULL ? BIRD_OK : give_back(order[k], handle);
            CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE);
        }
    }
    for (unsigned i = 0; i < atomic_load(&busy_count); i++) {
        bird_status status = bird_queue_destroy(busy[i]);
        CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE);
        status = bird_loop_destroy(busy[i]);
        CHECK(status == BIRD_OK || status == BIRD_ERR_HANDLE);
    }
    atomic_store(&busy_count, 0);
}

static void walk_once(void) {
    pthread_t threads[2];
    atomic_store(&is_over, false);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, walk, NULL) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    atomic_store(&is_over, true);
    UNTIL(&(world){0}, atomic_load(&handlers_running) == 0);
}

/* With the handles of another process. */
static void walk_in_a_child(void) {
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(DEADLINE_MS / 1000);
        current()->is_child = true;
        atomic_store(&is_over, false);
        take_steps(current(), calls_per_thread / 4);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

EDGE_CASE(walk_over_every_function) {
    const char *text = getenv("SEED");
    seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)now_ms();
    text = getenv("CALLS");
    if (text != NULL) {
        calls_per_thread = atoi(text) / 2;
    }
    printf("SEED=%llu CALLS=%d\n", (unsigned long long)seed, 2 * calls_per_thread);
    fflush(stdout);
    map_ones();
    long memory = 0;
    const int fds = count_fds(), threads = count_threads();
    for (int round = 0; round < 3; round++) {
        memory = round == 1 ? resident_kib() : memory;
        walk_once();
        walk_in_a_child();
        give_everything_back();
        until_every_destructor_ran();
        UNTIL(&(world){0}, count_threads() == threads);
        UNTIL(&(world){0}, count_fds() == fds);
    }
    printf("%d calls succeeded, %d were refused; memory %+ld KiB\n", atomic_load(&succeeded), atomic_load(&refused),
           resident_kib() - memory);
    CHECK(atomic_load(&succeeded) > atomic_load(&refused) / 8);
    CHECK(resident_kib() - memory < 16 * 1024);
}

/* ------------------------------------------------------------------------------------------------ extreme waits ----- */

/* Where a wait has nothing to wait for, any time will do. */
CASE(extreme_times_are_no_harm) {
    const int64_t times[] = {INT64_MIN, -1, 0, 1, INT32_MAX, INT64_MAX - 1, INT64_MAX};
    bird_loop *loop = NULL;
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_loop_create(&loop), BIRD_OK);
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    set_option(options, "app_key", "pk_demo");
    set_option(options, "ws_host", "127.0.0.1:1");
    CHECK_STATUS(bird_options_set_loop(options, loop), BIRD_OK);
    bird_client *client = client_from(options, queue);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CHECK_STATUS(bird_queue_wake(queue), BIRD_OK);
        CHECK_STATUS(bird_queue_wait(queue, times[i]), BIRD_ERR_WOKEN);
        CHECK_STATUS(bird_loop_wake(loop), BIRD_OK);
        CHECK_STATUS(bird_loop_run_once(loop, times[i]), BIRD_OK);
        CHECK_STATUS(bird_client_wait(client, BIRD_STATE_INITIALIZED, times[i]), BIRD_OK);
        CHECK_STATUS(bird_client_flush(client, times[i]), BIRD_OK);
    }
    /* Longer than any clock runs: waits until it is true. */
    for (size_t i = 4; i < sizeof times / sizeof *times; i++) {
        CHECK_STATUS(bird_client_disconnect(client), BIRD_OK);
        CHECK_STATUS(bird_client_wait(client, BIRD_STATE_DISCONNECTED, times[i]), BIRD_OK);
        CHECK_STATUS(bird_client_connect(client, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_wait(client, BIRD_STATE_UNAVAILABLE, times[i]), BIRD_OK);
        CHECK_STATUS(bird_client_flush(client, times[i]), BIRD_OK);
    }
    CHECK_STATUS(bird_client_close(client, INT64_MAX), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    CHECK_STATUS(bird_loop_destroy(loop), BIRD_OK);
}

/* Two gibibytes are read where they have to be, and nowhere else. */
CASE(two_gibibytes_are_a_length) {
    map_ones();
    CHECK_INT(bird_data_is_json(ones, ONES_BYTES), 1);
    CHECK_INT(bird_data_is_json(ones, SIZE_MAX - 1), 0);
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    CHECK_STATUS(bird_options_set(options, ones, "1", NULL), BIRD_ERR_OPTION);
    CHECK_STATUS(bird_options_set(options, "app_key", ones, NULL), BIRD_ERR_VALUE);
    bird_options_destroy(options);
}
