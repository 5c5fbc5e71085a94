/* Encrypted channels: BIRD_RECORD_DECRYPTION_ERROR and what the header says about them. */
#include "harness.h"

#define VAULT "private-encrypted-vault"
#define ENVELOPE(box) "{\"nonce\":\"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f\",\"ciphertext\":\"" box "\"}"
#define STRING_ENVELOPE(box)                                                                                           \
    "\"{\\\"nonce\\\":\\\"yMnKy8zNzs/Q0dLT1NXW19jZ2tvc3d7f\\\",\\\"ciphertext\\\":\\\"" box "\\\"}\""

static const char first_secret[] = "wp8Orjt2S4H4n8dDP7pa2A9reduRTTedbaiVnjqomsc=";
static const char rotated_secret[] = "GRd8Z7MAb5GXpWOt24pQPXo5lmNZs/jBud4TmCJvsdg=";
static const char balance_box[] =
    STRING_ENVELOPE("XntGV2KmKfmsSQAuTdnkyZc18i0MClVcqMbx66aDHSJKL6IwnehADljpNf9iyNRcWw==");
static const char hello_box[] = ENVELOPE("ZsVrf2IwwZ7hid4OFUsRts5/9SAMBBk=");
static const char null_box[] = STRING_ENVELOPE("ctRw9YkeC1zzhNnyQuzotYJi/CA=");
static const char empty_box[] = ENVELOPE("5zP5gKKUroRfoyxFGIbFew==");
static const char rotated_balance_box[] =
    STRING_ENVELOPE("t9JPWLvBvJdV5MXD0cQlJc86YIDHSPHHi7l3zPd1oRez80aSl9dr0YX2hVXsOKaY9w==");

/* What the authorizer gives for the vault. */
static _Atomic(const char *) secret;

static void authorize(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    const bool is_vault = strcmp(question->channel_name, VAULT) == 0;
    CHECK_STATUS(bird_request_authorize(question->request, "pk_harness:signature", NULL,
                                        is_vault ? atomic_load(&secret) : NULL, NULL),
                 BIRD_OK);
}

static void see_event(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_INT(record->kind, BIRD_RECORD_EVENT);
    CHECK_INT(record->data_kind, BIRD_DATA_STRING);
    CHECK(record->data[record->data_length] == '\0');
    CHECK(strlen(record->data) == record->data_length);
    journal_add("%s[%s]", record->event, record->data);
}

static void see_failure(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_INT(record->kind, BIRD_RECORD_DECRYPTION_ERROR);
    CHECK_INT(record->data_kind, BIRD_DATA_VALUE);
    CHECK_TEXT(record->channel_name, VAULT);
    const bird_failure *failure = record->detail;
    CHECK(failure->struct_size >= sizeof *failure);
    CHECK_INT(bird_error_area(failure->error), BIRD_AREA_CHANNEL);
    journal_add("%s%s", bird_status_name(bird_error_status(failure->error)), record->data);
}

static world open_vault(int32_t mode, const char *records) {
    bird_options *options = world_options(mode);
    if (records != NULL) {
        set_option(options, "records", records);
    }
    atomic_store(&secret, first_secret);
    world w = world_open_with(mode, options);
    uint64_t binding;
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_REQUEST, authorize, NULL, NULL, &binding, NULL),
                 BIRD_OK);
    world_connect(&w);
    bird_channel *vault = world_join(&w, VAULT);
    CHECK_STATUS(bird_channel_bind(vault, "e", see_event, NULL, NULL, &binding, NULL), BIRD_OK);
    CHECK_STATUS(bird_channel_bind(vault, "bird:decryption_error", see_failure, NULL, NULL, &binding, NULL), BIRD_OK);
    bird_channel_release(vault);
    return w;
}

static bird_statistics statistics_of(bird_client *client) {
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(client, &s), BIRD_OK);
    return s;
}

MODE_CASE(encrypted_events_are_opened) {
    world w = open_vault(harness_mode(), NULL);
    const char *const sent[] = {balance_box, hello_box, null_box, empty_box};
    const char *const seen[] = {"e[{\"balance\":1250,\"currency\":\"EUR\"}]", "e[\"hello\"]", "e[null]", "e[]"};
    for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
        world_emit_event(&w, VAULT, "e", sent[i]);
    }
    UNTIL(&w, journal_count() == 4);
    for (int i = 0; i < 4; i++) {
        CHECK_TEXT(journal_entry(i), seen[i]);
    }
    const bird_statistics s = statistics_of(w.client);
    CHECK(s.key_refreshes == 0 && s.decryption_failures == 0);
    world_close(&w);
}

MODE_CASE(encrypted_channel_takes_a_rotated_key_once) {
    world w = open_vault(harness_mode(), NULL);
    atomic_store(&secret, rotated_secret);
    for (int i = 0; i < 3; i++) {
        world_emit_event(&w, VAULT, "e", rotated_balance_box);
    }
    /* Sealed with the key of before; and what no key opens. */
    world_emit_event(&w, VAULT, "e", hello_box);
    world_emit_event(&w, VAULT, "e", "{\"sku\":\"A-19\"}");
    world_emit_event(&w, VAULT, "e", rotated_balance_box);
    UNTIL(&w, journal_count() == 6);
    static const char opened[] = "e[{\"balance\":1250,\"currency\":\"EUR\"}]";
    static const char lost[] = "BIRD_ERR_DECRYPTION{\"channel\":\"" VAULT "\",\"event\":\"e\"}";
    for (int i = 0; i < 6; i++) {
        CHECK_TEXT(journal_entry(i), i == 3 || i == 4 ? lost : opened);
    }
    const bird_statistics s = statistics_of(w.client);
    CHECK_INT(s.key_refreshes, 1);
    CHECK_INT(s.decryption_failures, 2);
    world_close(&w);
}

/* A program that wants no events still learns that some were lost. */
EDGE_CASE(encrypted_channel_without_event_records) {
    char mask[32];
    snprintf(mask, sizeof mask, "%u", 0xFFFFu & ~(1u << BIRD_RECORD_EVENT));
    world w = open_vault(BIRD_DELIVERY_LOOP, mask);
    world_emit_event(&w, VAULT, "e", hello_box);
    world_emit_event(&w, VAULT, "e", "{}");
    UNTIL(&w, journal_count() == 1);
    CHECK_TEXT(journal_entry(0), "BIRD_ERR_DECRYPTION{\"channel\":\"" VAULT "\",\"event\":\"e\"}");
    world_close(&w);
}
