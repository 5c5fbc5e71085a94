/* Section options of the header, and what bird_client_create() makes of them. */
#include "harness.h"

static bird_options *new_options(void) {
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    CHECK(options != NULL);
    return options;
}

static bool is_named(bird_error *error, const char *field) {
    const bool result = error != NULL && strcmp(bird_error_field(error), field) == 0 &&
                        bird_error_status(error) == BIRD_ERR_VALUE && strlen(bird_error_message(error)) > 0;
    bird_error_free(error);
    return result;
}

/* Good values of the texts that have no default. */
static const char *const good_texts[][2] = {
    {"app_key", "pk_demo"},
    {"region", "eu1"},
    {"ws_host", "localhost:8080"},
    {"address", "192.0.2.1"},
    {"auth_endpoint", "https://example.com/bird/auth"},
    {"member_auth_endpoint", "https://example.com/bird/auth/member"},
    {"ca_file", "/etc/ssl/certs/ca-certificates.crt"},
    {"ca_path", "/etc/ssl/certs"},
    {"client_cert_file", "/etc/ssl/client.pem"},
    {"client_key_file", "/etc/ssl/client.key"},
    {"tls_min_version", "1.3"},
    {"tls_verify_name", "edge.example.com"},
    {"proxy", "http://proxy.example.com:3128"},
    {"log_level", "verbose"},
    {"log_file", "/tmp/bird.log"},
};

static const char *good_text(const bird_option *option) {
    for (size_t i = 0; i < sizeof good_texts / sizeof *good_texts; i++) {
        if (strcmp(good_texts[i][0], option->key) == 0) {
            return good_texts[i][1];
        }
    }
    if (*option->default_text == '\0') {
        harness_fail(__FILE__, __LINE__, "good_texts lacks %s", option->key);
    }
    return option->default_text;
}

static void refuse_text(bird_options *options, const char *key, const char *value) {
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set(options, key, value, &error), BIRD_ERR_VALUE);
    CHECK(is_named(error, key));
    CHECK_STATUS(bird_options_set(options, key, value, NULL), BIRD_ERR_VALUE);
}

static void refuse_int(bird_options *options, const char *key, int64_t value) {
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set_int(options, key, value, &error), BIRD_ERR_VALUE);
    CHECK(is_named(error, key));
}

/* As a number and as text. */
static void accept_int(bird_options *options, const char *key, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    CHECK_STATUS(bird_options_set_int(options, key, value, NULL), BIRD_OK);
    CHECK_STATUS(bird_options_set(options, key, text, NULL), BIRD_OK);
}

static void try_text(bird_options *options, const bird_option *option) {
    CHECK(*option->accepts != '\0');
    CHECK_STATUS(bird_options_set(options, option->key, good_text(option), NULL), BIRD_OK);
    refuse_int(options, option->key, 1);
    refuse_text(options, option->key, "\x01");
    refuse_text(options, option->key, "two\nlines");
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set(options, option->key, "\x7f", &error), BIRD_ERR_VALUE);
    CHECK(strstr(bird_error_message(error), option->accepts) != NULL);
    bird_error_free(error);
}

static void try_flag(bird_options *options, const bird_option *option) {
    static const char *const good[] = {"0", "1", "false", "true"};
    static const char *const bad[] = {"", "2", "10", "-1", "yes", "True", " 1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK_STATUS(bird_options_set(options, option->key, good[i], NULL), BIRD_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuse_text(options, option->key, bad[i]);
    }
    CHECK_INT(option->minimum, 0);
    CHECK_INT(option->maximum, 1);
    accept_int(options, option->key, 0);
    accept_int(options, option->key, 1);
    refuse_int(options, option->key, 2);
    refuse_int(options, option->key, -1);
}

static void try_number(bird_options *options, const bird_option *option) {
    static const char *const bad[] = {"", "1.5", "0x10", "1500 ", "two minutes", "99999999999999999999", "\xd9\xa3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuse_text(options, option->key, bad[i]);
    }
    CHECK(*option->unit != '\0');
    CHECK(option->minimum < option->maximum);
    accept_int(options, option->key, option->minimum);
    accept_int(options, option->key, option->maximum);
    refuse_int(options, option->key, option->minimum - 1);
    refuse_int(options, option->key, INT64_MIN);
    if (option->maximum < INT64_MAX) {
        refuse_int(options, option->key, option->maximum + 1);
        refuse_int(options, option->key, INT64_MAX);
    }
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_set_int(options, option->key, option->minimum - 1, &error), BIRD_ERR_VALUE);
    char range[64];
    snprintf(range, sizeof range, "from %lld to %lld", (long long)option->minimum, (long long)option->maximum);
    CHECK(strstr(bird_error_message(error), range) != NULL);
    bird_error_free(error);
}

CASE(options_accept_what_the_table_says_and_nothing_beyond) {
    bird_options *options = new_options();
    CHECK(bird_options_count() > 30);
    for (size_t i = 0; i < bird_options_count(); i++) {
        bird_option option = {.struct_size = sizeof option};
        CHECK_STATUS(bird_options_describe(i, &option), BIRD_OK);
        CHECK(*option.key != '\0' && *option.purpose != '\0');
        CHECK(option.group >= BIRD_GROUP_EDGE && option.group <= BIRD_GROUP_OBSERVABILITY);
        CHECK(option.is_live == 0 || option.is_live == 1);
        if (*option.default_text != '\0') {
            CHECK_STATUS(bird_options_set(options, option.key, option.default_text, NULL), BIRD_OK);
        }
        switch (option.type) {
        case BIRD_OPTION_TEXT:
            try_text(options, &option);
            break;
        case BIRD_OPTION_BOOL:
            try_flag(options, &option);
            break;
        default:
            CHECK_INT(option.type, BIRD_OPTION_INT);
            try_number(options, &option);
        }
    }
    bird_options_destroy(options);
}

CASE(options_describe_fills_what_the_struct_has_room_for) {
    bird_option option = {.struct_size = sizeof option};
    CHECK_STATUS(bird_options_describe(bird_options_count(), &option), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_describe(SIZE_MAX, &option), BIRD_ERR_ARGUMENT);
    CHECK_STATUS(bird_options_describe(0, NULL), BIRD_ERR_ARGUMENT);
    CHECK(option.key == NULL);
    option.struct_size = 0;
    CHECK_STATUS(bird_options_describe(0, &option), BIRD_ERR_ARGUMENT);
    option.struct_size = offsetof(bird_option, unit); /* a program of an older header */
    option.unit = "untouched";
    CHECK_STATUS(bird_options_describe(0, &option), BIRD_OK);
    CHECK_TEXT(option.key, "app_key");
    CHECK_TEXT(option.unit, "untouched");
    CHECK_INT(option.struct_size, offsetof(bird_option, unit));
    option.struct_size = sizeof option + 64; /* of a newer one: what this library does not know stays as it is */
    struct {
        bird_option known;
        char later[64];
    } newer = {.known = option, .later = "later"};
    CHECK_STATUS(bird_options_describe(0, &newer.known), BIRD_OK);
    CHECK_TEXT(newer.known.unit, "");
    CHECK_TEXT(newer.later, "later");
}

CASE(options_refuse_unknown_keys) {
    bird_options *options = new_options();
    const char *unknown[] = {"", "App_Key", "app_key ", "ping", "\xff\xfe"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        bird_error *error = NULL;
        CHECK_STATUS(bird_options_set(options, unknown[i], "1", &error), BIRD_ERR_OPTION);
        CHECK_STATUS(bird_error_status(error), BIRD_ERR_OPTION);
        bird_error_free(error);
        CHECK_STATUS(bird_options_set_int(options, unknown[i], 1, NULL), BIRD_ERR_OPTION);
    }
    bird_options_destroy(options);
}

CASE(options_refuse_invalid_utf8) {
    bird_options *options = new_options();
    refuse_text(options, "app_key", "pk_\xc3");
    bird_options_destroy(options);
}

CASE(options_headers_are_checked_and_kept_secret) {
    bird_options *options = new_options();
    CHECK_STATUS(bird_options_set_auth_header(options, "X-Token", "abc", NULL), BIRD_OK);
    CHECK_STATUS(bird_options_set_auth_header(options, "x-token", "def", NULL), BIRD_OK);
    CHECK_STATUS(bird_options_set_auth_header(options, "X-Empty", "", NULL), BIRD_OK);
    const struct {
        const char *name, *value;
    } bad[] = {
        {"", "hush"},
        {"X Token", "hush"},
        {"X:Token", "hush"},
        {"X-Token\r\nEvil", "hush"},
        {"X-Token", "hush\r\nEvil: 1"},
        {"X-Token", "hush\n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bird_error *error = NULL;
        const bird_status status = bird_options_set_auth_header(options, bad[i].name, bad[i].value, &error);
        CHECK(status == BIRD_ERR_VALUE || status == BIRD_ERR_ARGUMENT);
        CHECK_STATUS(bird_error_status(error), status);
        CHECK(strlen(bird_error_message(error)) > 0);
        CHECK(strstr(bird_error_message(error), "hush") == NULL);
        bird_error_free(error);
    }
    bird_options_destroy(options);
}

CASE(options_are_copied_by_create) {
    bird_options *options = new_options();
    set_option(options, "app_key", "pk_demo");
    set_option(options, "region", "eu1");
    bird_client *first = NULL, *second = NULL;
    CHECK_STATUS(bird_client_create(options, &first, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_create(options, &second, NULL), BIRD_OK);
    CHECK(first != second);
    set_option(options, "region", "us1");
    bird_options_destroy(options);
    CHECK_INT(client_state(first), BIRD_STATE_INITIALIZED);
    CHECK_INT(client_state(second), BIRD_STATE_INITIALIZED);
    CHECK_STATUS(bird_client_destroy(first), BIRD_OK);
    CHECK_STATUS(bird_client_destroy(second), BIRD_OK);
}

CASE(create_names_the_option_that_is_missing) {
    bird_client *client = NULL;
    bird_error *error = NULL;

    bird_options *options = new_options();
    set_option(options, "region", "eu1");
    CHECK_STATUS(bird_client_create(options, &client, &error), BIRD_ERR_VALUE);
    CHECK(is_named(error, "app_key"));
    CHECK(client == NULL);
    bird_options_destroy(options);

    options = new_options();
    set_option(options, "app_key", "pk_demo");
    error = NULL;
    CHECK_STATUS(bird_client_create(options, &client, &error), BIRD_ERR_VALUE);
    CHECK_INT(bird_error_area(error), BIRD_AREA_ARGUMENT);
    CHECK(strstr(bird_error_message(error), "region") != NULL);
    CHECK(strstr(bird_error_message(error), "ws_host") != NULL);
    CHECK(strcmp(bird_error_field(error), "region") == 0 || strcmp(bird_error_field(error), "ws_host") == 0);
    bird_error_free(error);
    CHECK(client == NULL);
    CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_ERR_VALUE);
    bird_options_destroy(options);
}

/* Either the setter or create may be the one that refuses; both must name the option. */
static void refuse_by_create(const char *key, const char *value) {
    bird_options *options = new_options();
    set_option(options, "app_key", "pk_demo");
    if (strcmp(key, "region") != 0) {
        set_option(options, "ws_host", "localhost:1");
    }
    bird_client *client = NULL;
    bird_error *error = NULL;
    bird_status status = bird_options_set(options, key, value, &error);
    if (status == BIRD_OK) {
        status = bird_client_create(options, &client, &error);
    }
    if (status != BIRD_ERR_VALUE || strcmp(bird_error_field(error), key) != 0) {
        harness_fail(__FILE__, __LINE__, "%s=\"%s\" gave %s, field \"%s\"", key, value, bird_status_name(status),
                     bird_error_field(error));
    }
    bird_error_free(error);
    bird_options_destroy(options);
}

CASE(create_names_the_option_that_is_wrong) {
    refuse_by_create("app_key", "");
    refuse_by_create("region", "");
    refuse_by_create("region", "mars1");
    refuse_by_create("region", "eu1.evil.example");
    refuse_by_create("ws_host", "");
    refuse_by_create("ws_host", "two words");
    refuse_by_create("ws_host", "wss://example.com");
    refuse_by_create("ws_host", "example.com/path");
    refuse_by_create("ws_host", "example.com:");
    refuse_by_create("ws_host", "example.com:0");
    refuse_by_create("ws_host", "example.com:65536");
    refuse_by_create("ws_host", "example.com:http");
    refuse_by_create("ws_host", "me@example.com");
    refuse_by_create("ws_host", "example.com\r\nX-Evil: 1");
    refuse_by_create("ws_host", "[::1");
    refuse_by_create("address", "example.com");
    refuse_by_create("address", "300.1.2.3");
    refuse_by_create("auth_endpoint", "/bird/auth");
    refuse_by_create("auth_endpoint", "ftp://example.com/auth");
    refuse_by_create("auth_endpoint", "http://example.com/bird/auth");
    refuse_by_create("auth_endpoint", "http://127.0.0.1/bird/auth"); /* allow_insecure is off */
    refuse_by_create("member_auth_endpoint", "http://example.com/bird/auth/member");
    refuse_by_create("ca_file", "/nowhere/ca.pem");
    refuse_by_create("ca_path", "/dev/null");
    refuse_by_create("client_cert_file", "/");
    refuse_by_create("client_key_file", "/dev/null"); /* without client_cert_file */
    refuse_by_create("tls_min_version", "1.0");
    refuse_by_create("tls_verify_name", "https://example.com");
    refuse_by_create("proxy", "gopher://example.com");
    refuse_by_create("delivery", "queue"); /* without bird_options_set_queue() */
}

/* A question that nobody hears would never be answered. */
CASE(create_refuses_questions_without_request_records) {
    const char *asking[] = {"authorizer", "member_authorizer", "header_provider", "may_reconnect"};
    for (int i = 0; i < 4; i++) {
        bird_options *options = new_options();
        set_option(options, "app_key", "pk_demo");
        set_option(options, "region", "us1");
        set_option(options, asking[i], "1");
        CHECK_STATUS(bird_options_set_int(options, "records", 1 << BIRD_RECORD_EVENT, NULL), BIRD_OK);
        bird_client *client = NULL;
        bird_error *error = NULL;
        CHECK_STATUS(bird_client_create(options, &client, &error), BIRD_ERR_VALUE);
        CHECK(is_named(error, "records"));
        const int64_t both = 1 << BIRD_RECORD_EVENT | 1 << BIRD_RECORD_REQUEST;
        CHECK_STATUS(bird_options_set_int(options, "records", both, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
        bird_options_destroy(options);
    }
}

CASE(create_accepts_plaintext_endpoints_only_on_loopback) {
    const char *good[] = {"http://localhost:1/a", "http://127.0.0.1/a", "http://[::1]:9000/a", "https://example.com/a"};
    const char *bad[] = {"http://127.0.0.2/a", "http://LOCALHOST/a", "http://localhost.evil.test/a",
                         "http://0.0.0.0/a"};
    for (int i = 0; i < 4; i++) {
        bird_options *options = new_options();
        set_option(options, "app_key", "pk_demo");
        set_option(options, "region", "us1");
        set_option(options, "allow_insecure", "1");
        set_option(options, "auth_endpoint", good[i]);
        bird_client *client = NULL;
        CHECK_STATUS(bird_client_create(options, &client, NULL), BIRD_OK);
        CHECK_STATUS(bird_client_destroy(client), BIRD_OK);

        bird_error *error = NULL;
        bird_status status = bird_options_set(options, "auth_endpoint", bad[i], &error);
        if (status == BIRD_OK) {
            status = bird_client_create(options, &client, &error);
        }
        CHECK_STATUS(status, BIRD_ERR_VALUE);
        CHECK(is_named(error, "auth_endpoint"));
        bird_options_destroy(options);
    }
}

static void see_client_tag(const bird_record *record, void *user_data) {
    (void)user_data;
    journal_add("%llu", (unsigned long long)record->client_tag);
}

EDGE_CASE(options_tag_is_on_every_record) {
    bird_options *options = world_options(BIRD_DELIVERY_LOOP);
    CHECK_STATUS(bird_options_set_tag(options, UINT64_MAX), BIRD_OK);
    world w = world_open_with(BIRD_DELIVERY_LOOP, options);
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, UINT64_MAX, see_client_tag, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    UNTIL(&w, client_state(w.client) == BIRD_STATE_CONNECTED && journal_count() >= 2);
    world_close(&w);
    for (int i = 0; i < journal_count(); i++) {
        CHECK_TEXT(journal_entry(i), "18446744073709551615");
    }
}

EDGE_CASE(options_queue_outlives_clients) {
    bird_queue *queue = NULL;
    CHECK_STATUS(bird_queue_create(&queue), BIRD_OK);
    bird_client *client = client_from(world_options(BIRD_DELIVERY_QUEUE), queue);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_ERR_BUSY);
    CHECK_STATUS(bird_client_destroy(client), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_OK);
    CHECK_STATUS(bird_queue_destroy(queue), BIRD_ERR_HANDLE);

    bird_options *options = world_options(BIRD_DELIVERY_QUEUE);
    CHECK_STATUS(bird_options_set_queue(options, queue), BIRD_ERR_HANDLE);
    bird_options_destroy(options);
}

/* An error names the thing itself: many programs have no header. */
CASE(options_suggest_the_key_that_was_meant) {
    static const char *const wrong[][2] = {{"ws-host", "Did you mean \"ws_host\"?"},
                                           {"pong_timeout", "Did you mean \"pong_timeout_ms\"?"},
                                           {"appkey", "Did you mean \"app_key\"?"},
                                           {"nothing_of_the_kind", ""}};
    bird_options *options = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bird_error *error = NULL;
        char wanted[128];
        CHECK_STATUS(bird_options_set(options, wrong[i][0], "1", &error), BIRD_ERR_OPTION);
        snprintf(wanted, sizeof wanted, "There is no option \"%s\".%s%s", wrong[i][0], *wrong[i][1] != '\0' ? " " : "",
                 wrong[i][1]);
        CHECK_TEXT(bird_error_message(error), wanted);
        bird_error_free(error);
    }
    bird_options_destroy(options);
}
