/* What the library calls: handlers that check, and call the library in their turn. */
#include "torture.h"

#include <time.h>

atomic_bool callbacks_are_good;
atomic_ullong records_handled, records_drained, log_entries, requests_seen;

static void loiter(chance *c) {
    if (once_in(c, 64)) {
        const struct timespec pause = {.tv_nsec = (long)below(c, 500000)};
        nanosleep(&pause, NULL);
    }
}

static void answer(chance *c, bird_request *request, int32_t kind, const char *channel) {
    switch (kind) {
    case BIRD_REQUEST_AUTHORIZE_CHANNEL:
    case BIRD_REQUEST_AUTHORIZE_MEMBER: {
        const char *secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
        const bool is_encrypted = strncmp(channel, "private-encrypted-", 18) == 0;
        bird_request_authorize(request, "key:signature", "{\"member_id\":\"m_1\"}", is_encrypted ? secret : NULL, NULL);
        break;
    }
    case BIRD_REQUEST_HEADERS: {
        const bird_header header = {"X-Token", once_in(c, 2) ? "open" : "bad\r\nvalue"};
        bird_request_headers(request, &header, below(c, 2), NULL);
        break;
    }
    default:
        bird_request_proceed(request, (int64_t)below(c, 50), NULL);
    }
}

/* Answered here, or left to whoever picks it from the shelf, or to nobody. */
static void take_request(chance *c, const bird_record *record) {
    const bird_question *question = record->detail;
    CHECK(question != NULL && question->request != NULL);
    atomic_fetch_add(&requests_seen, 1);
    const bool is_good = atomic_load(&callbacks_are_good);
    if (once_in(c, 3) && !is_good) {
        atomic_store(slot_at(REQUESTS, below(c, 8)), question->request);
    } else if (is_good || !once_in(c, 16)) {
        answer(c, question->request, question->request_kind, question->channel_name);
        bury(REQUESTS, question->request);
    }
}

static void handle(const bird_record *record, void *user_data, bool observes) {
    subject_check(record, true);
    atomic_fetch_add_explicit(&records_handled, 1, memory_order_relaxed);
    chance c = {user_data != NULL ? ticket_enter(user_data) : mix((uint64_t)(uintptr_t)record->client)};
    const enum place outer = place;
    place = PLACE_HANDLER;
    depth++;
    if (observes) {
        subject_observe(record);
        if (record->kind == BIRD_RECORD_REQUEST) {
            take_request(&c, record);
        }
    } else if (depth < 3 && once_in(&c, 8) && !atomic_load(&callbacks_are_good)) {
        call_random(draw(&c));
    }
    loiter(&c);
    depth--;
    place = outer;
    if (user_data != NULL) {
        ticket_leave(user_data);
    }
}

void on_record(const bird_record *record, void *user_data) {
    handle(record, user_data, false);
}

void on_any_record(const bird_record *record, void *user_data) {
    handle(record, user_data, true);
}

void on_batch(const bird_record *records, size_t count, size_t stride) {
    for (size_t i = 0; i < count; i++) {
        const bird_record *record = (const bird_record *)((const char *)records + i * stride);
        subject_check(record, false);
        subject_observe(record);
        atomic_fetch_add_explicit(&records_drained, 1, memory_order_relaxed);
        if (record->kind == BIRD_RECORD_REQUEST) {
            chance c = {mix((uint64_t)(uintptr_t)record->client + i)};
            take_request(&c, record);
        }
    }
}

void on_log(const bird_log_entry *entry, void *user_data) {
    CHECK(entry->struct_size >= sizeof *entry && entry->message[entry->message_length] == '\0');
    atomic_fetch_add_explicit(&log_entries, 1, memory_order_relaxed);
    chance c = {user_data != NULL ? ticket_enter(user_data) : 1};
    const enum place outer = place;
    place = PLACE_LOG;
    depth++;
    if (depth < 4 && once_in(&c, 4) && !atomic_load(&callbacks_are_good)) {
        call_random(draw(&c));
    }
    depth--;
    place = outer;
    if (user_data != NULL) {
        ticket_leave(user_data);
    }
}
