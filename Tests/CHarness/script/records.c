/* How each record is printed. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json_line.h"

static const char *const kinds[] = {
    "",
    "event",
    "subscribed",
    "subscription_error",
    "member_added",
    "member_removed",
    "connection_count",
    "state",
    "error",
    "signin_error",
    "completion",
    "request",
    "signed_in",
    "connection_lost",
    "connecting_in",
    "decryption_error",
    [BIRD_RECORD_WATCHLIST] = "watchlist",
    [BIRD_RECORD_LOG] = "log",
};
static const char *const request_kinds[] = {"", "channel", "member", "headers", "reconnect"};
static const char *const data_kinds[] = {"none", "string", "value"};

static void print_state(const bird_state_change *change) {
    json_string("previous", bird_state_name(change->previous));
    json_string("current", bird_state_name(change->current));
    json_number("close_code", change->close_code);
    json_number("attempt", change->attempt);
    json_string("reason", bird_status_name(change->reason));
    json_string("reason_text", change->reason_text);
    json_number("delay_ms", change->delay_ms);
    json_string("connection_id", change->connection_id);
    json_string("policy", change->policy);
}

void print_roster(const bird_members *members) {
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    for (size_t i = 0; i < bird_members_count(members); i++) {
        fwrite(bird_members_id(members, i), 1, bird_members_id_length(members, i), stream);
        fprintf(stream, "\x1f%s\x1e", bird_members_info(members, i));
    }
    fclose(stream);
    json_text("roster", text, length);
    free(text);
}

static void print_members_now(bird_channel *channel) {
    size_t count = 0;
    if (bird_channel_member_count(channel, &count) == BIRD_OK) {
        json_unsigned("members_now", count);
    }
}

static void print_subscription(const bird_subscription *subscription) {
    json_number("is_resubscribe", subscription->is_resubscribe);
    json_number("interrupted_ms", subscription->interrupted_ms);
    json_number("will_retry", subscription->will_retry);
    json_number("member_count", subscription->member_count);
    json_text("my_id", subscription->my_id, subscription->my_id_length);
    print_roster(subscription->members);
    print_error(subscription->error);
}

static void print_member(const bird_member *member) {
    json_text("member_id", member->id, member->id_length);
}

static void print_watchlist(const bird_watchlist *watchlist) {
    if (watchlist->id_count > 0) {
        json_text("first_id", watchlist->ids[0], watchlist->id_lengths[0]);
    }
}

static void print_question(const bird_question *question) {
    json_unsigned("request", keep_request(question->request));
    json_string("asks", request_kinds[question->request_kind]);
    json_number("deadline_ms", question->deadline_ms);
    json_string("connection_id", question->connection_id);
    json_string("channel_name", question->channel_name);
    json_string("headers_for", question->endpoint);
    json_number("attempt", question->attempt);
    print_error(question->cause);
}

static void print_completion(const bird_record *record, const bird_completion *completion) {
    json_unsigned("tag", record->operation_tag);
    json_string("operation", completion->operation == BIRD_OPERATION_SIGNIN ? "signin" : "subscribe");
    json_string("status", bird_status_name(completion->status));
    print_error(completion->error);
}

static const char *kind_name(uint32_t kind) {
    return kind < sizeof kinds / sizeof *kinds && kinds[kind] != NULL ? kinds[kind] : "unknown";
}

static void print_entry(const bird_log_entry *entry) {
    json_string("level", bird_log_level_name(entry->level));
    json_string("area", bird_log_area_name(entry->area));
    json_string("status", bird_status_name(entry->status));
    json_string("message", entry->message);
    json_string("about", entry->channel_name);
    json_number("time_ms", entry->time_ms);
}

void print_record(const bird_record *record) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    json_begin();
    json_string("record", kind_name(record->kind));
    json_number("at_us", now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000);
    json_text("channel", record->channel_name, record->channel_name_length);
    json_text("event", record->event, record->event_length);
    json_string("data_kind", data_kinds[record->data_kind]);
    json_text("data", record->data, record->data_length);
    json_text("sender", record->sender, record->sender_length);
    switch (record->kind) {
    case BIRD_RECORD_SUBSCRIBED:
    case BIRD_RECORD_SUBSCRIPTION_ERROR:
        print_subscription(record->detail);
        print_members_now(record->channel);
        break;
    case BIRD_RECORD_MEMBER_ADDED:
    case BIRD_RECORD_MEMBER_REMOVED:
        print_members_now(record->channel);
        print_member(record->detail);
        break;
    case BIRD_RECORD_SIGNED_IN:
        print_member(record->detail);
        break;
    case BIRD_RECORD_WATCHLIST:
        print_watchlist(record->detail);
        break;
    case BIRD_RECORD_STATE:
    case BIRD_RECORD_CONNECTING_IN:
        print_state(record->detail);
        break;
    case BIRD_RECORD_ERROR:
    case BIRD_RECORD_SIGNIN_ERROR:
    case BIRD_RECORD_DECRYPTION_ERROR:
        print_error(((const bird_failure *)record->detail)->error);
        break;
    case BIRD_RECORD_COMPLETION:
        print_completion(record, record->detail);
        break;
    case BIRD_RECORD_REQUEST:
        print_question(record->detail);
        break;
    case BIRD_RECORD_LOG:
        print_entry(record->detail);
        break;
    }
    json_end();
}

void print_error(const bird_error *error) {
    if (error == NULL) {
        return;
    }
    json_string("error", bird_status_name(bird_error_status(error)));
    json_number("area", bird_error_area(error));
    json_string("field", bird_error_field(error));
    json_string("message", bird_error_message(error));
    json_number("code", bird_error_code(error));
    json_number("http_status", bird_error_http_status(error));
    json_number("curl_code", bird_error_curl_code(error));
    json_string("endpoint", bird_error_endpoint(error));
    json_string("error_channel", bird_error_channel(error));
    json_number("retriable", bird_error_retriable(error));
}
