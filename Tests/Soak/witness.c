#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { AMBIGUOUS_MS = 10000 };

/* Events are {"n":NUMBER,"l":LENGTH,"p":"..."}: LENGTH times the letter that NUMBER chooses. */
static int64_t number_in(struct slot *slot, const bird_record *record) {
    long long number = -1;
    int length = -1, start = 0;
    if (sscanf(record->data, "{\"n\":%lld,\"l\":%d,\"p\":\"%n", &number, &length, &start) < 2 || start == 0)
        slot_fail(slot, "%s has the data %.200s", record->channel_name, record->data);
    const char *text = record->data + start;
    const char letter = (char)('a' + number % 26);
    if (record->data_length != (size_t)(start + length + 2) || strcmp(text + length, "\"}") != 0)
        slot_fail(slot, "event %lld of %s has %zu bytes", number, record->channel_name, record->data_length);
    for (int i = 0; i < length; i++)
        if (text[i] != letter)
            slot_fail(slot, "byte %d of event %lld of %s is wrong", i, number, record->channel_name);
    return number;
}

/*
 * An error of the edge names no channel. When one comes while the answer to a subscribe that was left is still due, and the same channel
 * has been subscribed again, nobody can tell whose the next success is: the first may be taken for the second's, and then an event of a
 * cache comes with both, or what was published between the two is missing.
 */
static bool is_ambiguous(const struct slot *slot, size_t name) {
    const int64_t now = now_ms();
    return now - atomic_load(&slot->left_ms[name]) < AMBIGUOUS_MS && now - slot->edge_error_ms < AMBIGUOUS_MS;
}

static void take_event(struct slot *slot, const bird_record *record) {
    atomic_fetch_add(&counters.events, 1);
    if (slot->is_slow && chance_percent(&slot->handler_chance, 5))
        sleep_ms(chance_between(&slot->handler_chance, 1, 10));
    const size_t name = names_find(record->channel_name);
    if (name == names_count || strcmp(record->event, "tick") != 0)
        return;
    struct view *view = &slot->views[name];
    const int64_t number = number_in(slot, record), last = atomic_load(&view->last);
    slot_note(slot, "event of", names[name], number);
    if (!view->is_open)
        slot_fail(slot, "%s: event %lld came while it was not subscribed", names[name], (long long)number);
    const bool is_first_of_cache = names_is_cache(name) && !view->is_continuous && number == last;
    const bool is_again = number <= last && !is_first_of_cache;
    const bool is_gap = view->is_continuous && number > last + 1;
    if ((is_again || (is_gap && !slot->may_drop)) && is_ambiguous(slot, name)) {
        atomic_fetch_add(&counters.ambiguous, 1);
    } else if (is_again || (is_gap && !slot->may_drop)) {
        slot_fail(slot, "%s: event %lld came after %lld, %s", names[name], (long long)number, (long long)last,
                  view->is_continuous ? "while subscribed" : "first of all");
    } else if (is_gap) {
        atomic_fetch_add(&slot->gap_events, number - last - 1);
        atomic_fetch_add(&counters.dropped, number - last - 1);
    }
    view->is_continuous = true;
    atomic_store(&view->last, number);
}

static void take_success(struct slot *slot, const bird_record *record) {
    const size_t name = names_find(record->channel_name);
    if (name == names_count)
        return;
    slot_note(slot, "success of", names[name], 0);
    slot->views[name].is_open = true;
    slot->views[name].is_continuous = false;
    atomic_fetch_add(&slot->views[name].successes, 1);
}

static void take_state(struct slot *slot, const bird_state_change *change) {
    slot_note(slot, "state", bird_state_name(change->current), change->close_code);
    if (change->current != BIRD_STATE_CONNECTED)
        for (size_t name = 0; name < names_count; name++)
            slot->views[name].is_open = false;
    if (change->current == BIRD_STATE_CONNECTED)
        atomic_fetch_add(&counters.connects, 1);
    if (change->current == BIRD_STATE_CONNECTING)
        atomic_fetch_add(&counters.attempts, 1);
    if (change->reason == BIRD_ERR_CONNECT)
        atomic_fetch_add(&counters.refused_connects, 1);
}

static void take_error(struct slot *slot, const bird_record *record, const bird_error *error) {
    slot_note(slot, bird_status_name(bird_error_status(error)), record->channel_name, bird_error_code(error));
}

static void take_completion(struct slot *slot, const bird_record *record) {
    if (!slot_end(slot, record->operation_tag))
        slot_fail(slot, "operation %llu completed, which was not open", (unsigned long long)record->operation_tag);
    atomic_fetch_add(&counters.completed, 1);
}

static void look_at(struct slot *slot, const bird_record *record) {
    switch (record->kind) {
    case BIRD_RECORD_EVENT:
        take_event(slot, record);
        break;
    case BIRD_RECORD_SUBSCRIBED:
        take_success(slot, record);
        break;
    case BIRD_RECORD_STATE:
        take_state(slot, record->detail);
        break;
    case BIRD_RECORD_COMPLETION:
        take_completion(slot, record);
        break;
    case BIRD_RECORD_REQUEST:
        answers_take(slot, record->detail);
        break;
    case BIRD_RECORD_CONNECTION_LOST:
        atomic_fetch_add(&counters.losses[slot->mode], 1);
        break;
    case BIRD_RECORD_ERROR:
        slot->edge_error_ms = now_ms();
        take_error(slot, record, ((const bird_failure *)record->detail)->error);
        break;
    case BIRD_RECORD_SUBSCRIPTION_ERROR:
        take_error(slot, record, ((const bird_subscription *)record->detail)->error);
        break;
    default:
        break;
    }
}

void witness(const bird_record *record, uint64_t drain) {
    struct slot *slot = slot_of(record->client_tag);
    if (drain == 0) {
        look_at(slot, record);
        return;
    }
    /* A batch may be held while its client is destroyed, but none is drained after that. */
    pthread_mutex_lock(&slot->turn);
    if (record->client_tag == slot_tag(slot))
        look_at(slot, record);
    else if (drain > slot->last_drain)
        slot_fail(slot, "a record of kind %u was drained after its end", record->kind);
    pthread_mutex_unlock(&slot->turn);
}
