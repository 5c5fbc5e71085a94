/* Sections version, status and error of the header. */
#include "harness.h"

CASE(version_is_the_headers) {
    CHECK_INT(bird_version_number(), BIRD_VERSION_NUMBER);
    CHECK_TEXT(bird_version_string(), BIRD_VERSION_STRING);
    CHECK(BIRD_VERSION_AT_LEAST(BIRD_VERSION_MAJOR, BIRD_VERSION_MINOR, BIRD_VERSION_PATCH));
    CHECK(!BIRD_VERSION_AT_LEAST(BIRD_VERSION_MAJOR, BIRD_VERSION_MINOR, BIRD_VERSION_PATCH + 1));
}

CASE(version_of_header_and_library_are_compared) {
    CHECK_STATUS(BIRD_VERSION_CHECK(), BIRD_OK);
    CHECK_STATUS(bird_version_check(BIRD_VERSION_NUMBER + 1), BIRD_ERR_UNSUPPORTED);       /* a newer patch  */
    CHECK_STATUS(bird_version_check(BIRD_VERSION_NUMBER + 1000), BIRD_ERR_UNSUPPORTED);    /* another minor  */
    CHECK_STATUS(bird_version_check(BIRD_VERSION_NUMBER - 1000), BIRD_ERR_UNSUPPORTED);    /* another minor  */
    CHECK_STATUS(bird_version_check(BIRD_VERSION_NUMBER + 1000000), BIRD_ERR_UNSUPPORTED); /* another major  */
    CHECK_STATUS(bird_version_check(INT32_MIN), BIRD_ERR_UNSUPPORTED);
    CHECK_STATUS(bird_version_check(INT32_MAX), BIRD_ERR_UNSUPPORTED);
}

#define STATUS(name) {name, #name}

static const struct {
    bird_status status;
    const char *name;
} statuses[] = {
    STATUS(BIRD_OK),
    STATUS(BIRD_ERR_ARGUMENT),
    STATUS(BIRD_ERR_HANDLE),
    STATUS(BIRD_ERR_CLOSED),
    STATUS(BIRD_ERR_OPTION),
    STATUS(BIRD_ERR_VALUE),
    STATUS(BIRD_ERR_STATE),
    STATUS(BIRD_ERR_NAME),
    STATUS(BIRD_ERR_NOT_SUBSCRIBED),
    STATUS(BIRD_ERR_UNSUBSCRIBED),
    STATUS(BIRD_ERR_PAYLOAD),
    STATUS(BIRD_ERR_SIZE),
    STATUS(BIRD_ERR_FULL),
    STATUS(BIRD_ERR_BUSY),
    STATUS(BIRD_ERR_CALLBACK),
    STATUS(BIRD_ERR_TIMEOUT),
    STATUS(BIRD_ERR_FORKED),
    STATUS(BIRD_ERR_SPACE),
    STATUS(BIRD_ERR_ANSWERED),
    STATUS(BIRD_ERR_UNSUPPORTED),
    STATUS(BIRD_ERR_SYSTEM),
    STATUS(BIRD_ERR_WOKEN),
    STATUS(BIRD_ERR_DENIED),
    STATUS(BIRD_ERR_AUTH),
    STATUS(BIRD_ERR_REFUSED),
    STATUS(BIRD_ERR_LOST),
    STATUS(BIRD_ERR_RESOLVE),
    STATUS(BIRD_ERR_CONNECT),
    STATUS(BIRD_ERR_TLS),
    STATUS(BIRD_ERR_PROXY),
    STATUS(BIRD_ERR_UPGRADE),
    STATUS(BIRD_ERR_PROTOCOL),
    STATUS(BIRD_ERR_SERVER),
    STATUS(BIRD_ERR_DECRYPTION),
    STATUS(BIRD_ERR_GAVE_UP),
    STATUS(BIRD_ERR_IDENTITY),
    STATUS(BIRD_ERR_MALFORMED),
};
enum { STATUS_COUNT = sizeof statuses / sizeof *statuses };

CASE(statuses_have_names_and_messages) {
    for (int i = 0; i < STATUS_COUNT; i++) {
        CHECK_TEXT(bird_status_name(statuses[i].status), statuses[i].name);
        CHECK(strlen(bird_status_message(statuses[i].status)) > 0);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(bird_status_message(statuses[i].status), bird_status_message(statuses[j].status)) != 0);
        }
    }
}

CASE(unknown_statuses_have_a_text) {
    const bird_status unknown[] = {1, 7, -29, -500, -1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK(bird_status_name(unknown[i]) != NULL);
        CHECK(bird_status_message(unknown[i]) != NULL);
        for (int known = 0; known < STATUS_COUNT; known++) {
            CHECK(strcmp(bird_status_name(unknown[i]), statuses[known].name) != 0);
        }
    }
}

CASE(state_names_are_the_words_of_the_protocol) {
    CHECK_TEXT(bird_state_name(BIRD_STATE_INITIALIZED), "initialized");
    CHECK_TEXT(bird_state_name(BIRD_STATE_CONNECTING), "connecting");
    CHECK_TEXT(bird_state_name(BIRD_STATE_CONNECTED), "connected");
    CHECK_TEXT(bird_state_name(BIRD_STATE_UNAVAILABLE), "unavailable");
    CHECK_TEXT(bird_state_name(BIRD_STATE_DISCONNECTED), "disconnected");
    CHECK_TEXT(bird_state_name(BIRD_STATE_FAILED), "failed");
    CHECK(bird_state_name(-1) != NULL);
    CHECK(bird_state_name(6) != NULL);
    CHECK(bird_state_name(INT32_MAX) != NULL);
}

CASE(error_accessors_accept_null) {
    CHECK_STATUS(bird_error_status(NULL), BIRD_OK);
    CHECK_INT(bird_error_area(NULL), 0);
    CHECK_TEXT(bird_error_field(NULL), "");
    CHECK(bird_error_message(NULL) != NULL);
    CHECK_INT(bird_error_code(NULL), 0);
    CHECK_INT(bird_error_http_status(NULL), 0);
    CHECK_INT(bird_error_curl_code(NULL), 0);
    CHECK_TEXT(bird_error_endpoint(NULL), "");
    CHECK_TEXT(bird_error_channel(NULL), "");
    CHECK_INT(bird_error_retriable(NULL), 0);
    bird_error_free(NULL);
}

CASE(error_of_a_refused_call_says_what_and_where) {
    bird_options *options = NULL;
    bird_error *error = NULL;
    CHECK_STATUS(bird_options_create(&options), BIRD_OK);
    CHECK_STATUS(bird_options_set(options, "pong_timeout_ms", "soon", &error), BIRD_ERR_VALUE);
    CHECK(error != NULL);
    CHECK_STATUS(bird_error_status(error), BIRD_ERR_VALUE);
    CHECK_INT(bird_error_area(error), BIRD_AREA_ARGUMENT);
    CHECK_TEXT(bird_error_field(error), "pong_timeout_ms");
    CHECK(strlen(bird_error_message(error)) > 10);
    CHECK_INT(bird_error_code(error), 0);
    CHECK_INT(bird_error_http_status(error), 0);
    CHECK_INT(bird_error_curl_code(error), 0);
    CHECK_TEXT(bird_error_endpoint(error), "");
    CHECK_TEXT(bird_error_channel(error), "");
    CHECK_INT(bird_error_retriable(error), 0);
    bird_error_free(error);
    bird_options_destroy(options);
}
