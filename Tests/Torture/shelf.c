/* The handles that all threads use, and those that have ended. */
#include "torture.h"

enum { SLOTS_MAX = 24, GRAVES_MAX = 512 };

static const size_t slot_counts[SHELVES] = {
    [OPTIONS] = 4, [CLIENTS] = 12, [CHANNELS] = 24, [QUEUES] = 3, [LOOPS] = 2, [BATCHES] = 4, [REQUESTS] = 8,
};
static _Atomic(void *) slots[SHELVES][SLOTS_MAX];
static _Atomic(void *) graves[SHELVES][GRAVES_MAX];
static atomic_uint grave_counts[SHELVES];

_Atomic(void *) *slot_at(enum shelf shelf, size_t index) {
    return index < slot_counts[shelf] ? &slots[shelf][index] : NULL;
}

_Atomic(void *) *slot_of(chance *c, enum shelf shelf) {
    const size_t index = below(c, slot_counts[shelf]);
    lane_note((int)shelf, (int)index);
    return &slots[shelf][index];
}

void *pick(chance *c, enum shelf shelf) {
    const uint64_t kind = below(c, 100);
    const uint64_t which = draw(c);
    if (kind > 3) {
        const size_t index = which % slot_counts[shelf];
        lane_note((int)shelf, (int)index);
        return atomic_load(&slots[shelf][index]);
    }
    lane_note((int)shelf, 0xFE);
    switch (kind) {
    case 0:
        return NULL;
    case 1:
        return atomic_load(&graves[shelf][which % GRAVES_MAX]);
    case 2:
        return atomic_load(&slots[(shelf + 1) % SHELVES][which % slot_counts[(shelf + 1) % SHELVES]]);
    default:
        return (void *)(uintptr_t)which;
    }
}

void bury(enum shelf shelf, void *handle) {
    if (handle != NULL) {
        atomic_store(&graves[shelf][atomic_fetch_add(&grave_counts[shelf], 1) % GRAVES_MAX], handle);
    }
}

static bird_status state_of(enum shelf shelf, void *handle) {
    int32_t number;
    switch (shelf) {
    case OPTIONS:
        return bird_options_set_tag(handle, 1);
    case CLIENTS:
        return bird_client_state(handle, &number);
    case CHANNELS:
        return bird_channel_state(handle, &number);
    case QUEUES:
        return bird_queue_fd(handle, &number);
    case LOOPS:
        return bird_loop_fd(handle, &number);
    case BATCHES:
        return bird_batch_release(handle);
    default:
        return bird_request_proceed(handle, 0, NULL);
    }
}

void check_graves(void) {
    for (enum shelf shelf = 0; shelf < SHELVES; shelf++) {
        for (size_t i = 0; i < GRAVES_MAX; i++) {
            void *handle = atomic_load(&graves[shelf][i]);
            if (handle != NULL) {
                const bird_status status = state_of(shelf, handle);
                if (status != (shelf == REQUESTS ? BIRD_ERR_ANSWERED : BIRD_ERR_HANDLE)) {
                    FAIL("something is left of a handle on shelf %d: %s", (int)shelf, bird_status_name(status));
                }
            }
        }
    }
}
