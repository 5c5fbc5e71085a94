/* The table of calls, and the check of what they return. */
#include "torture.h"

enum { CALLS_MAX = 128 };

static call calls[CALLS_MAX];
static int call_count, weights;

_Thread_local enum place place;
_Thread_local int depth;

void call_register(const char *name, bird_status (*body)(chance *), uint64_t may, int weight, bool is_fallible,
                   bool waits) {
    if (call_count == CALLS_MAX) {
        abort();
    }
    calls[call_count++] = (call){name, body, may, weight, is_fallible, waits, 0};
    weights += weight;
}

const char *call_name(int function) {
    return calls[function].name;
}

bool call_at(size_t index, const char **name, unsigned long long *count) {
    if (index >= (size_t)call_count) {
        return false;
    }
    *name = calls[index].name;
    *count = atomic_load(&calls[index].count);
    return true;
}

static uint64_t may_here(const call *one) {
    if (place == PLACE_LOG && one->is_fallible) {
        return MAY(ERR_CALLBACK) | (strstr(one->name, "_destroy") != NULL ? MAY(OK) : 0); /* destroy(NULL) */
    }
    if (place == PLACE_HANDLER && one->waits) {
        return one->may & ~(MAY(OK) | MAY(ERR_TIMEOUT) | MAY(ERR_REFUSED) | MAY(ERR_GAVE_UP));
    }
    return place == PLACE_PLAIN ? one->may & ~MAY(ERR_CALLBACK) : one->may;
}

static void call_one(int function, uint64_t number) {
    chance c = {number};
    call *one = &calls[function];
    const uint64_t entry = lane_begin(function, number);
    const uint64_t may = may_here(one);
    const bird_status status = one->body(&c);
    lane_end(entry, status);
    atomic_fetch_add_explicit(&one->count, 1, memory_order_relaxed);
    if (status > 0 || status < -63 || (may & UINT64_C(1) << -status) == 0) {
        FAIL("%s returned %s (place %d)", one->name, bird_status_name(status), (int)place);
    }
}

void call_random(uint64_t number) {
    chance c = {number};
    int function = 0;
    for (uint64_t at = below(&c, (uint64_t)weights); at >= (uint64_t)calls[function].weight; function++) {
        at -= (uint64_t)calls[function].weight;
    }
    call_one(function, draw(&c));
}

void call_each(chance *c) {
    for (int function = 0; function < call_count; function++) {
        call_one(function, draw(c));
    }
}

told tell(chance *c) {
    return (told){NULL, once_in(c, 2)};
}

bird_status heard(told *t, bird_status status) {
    CHECK((t->error != NULL) == (t->is_wanted && status != BIRD_OK));
    if (t->error != NULL) {
        CHECK(bird_error_status(t->error) == status && *bird_error_message(t->error) != '\0');
        bird_error_free(t->error);
    }
    return status;
}
