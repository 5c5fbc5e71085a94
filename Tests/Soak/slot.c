#include "soak.h"

uint64_t slot_tag(const struct slot *slot) {
    return (uint64_t)atomic_load(&slot->life) << 16 | slot->index;
}

bool slot_begin(struct slot *slot, uint64_t *tag) {
    static atomic_ullong last_tag;
    pthread_mutex_lock(&slot->lock);
    const bool has_room = slot->operations_count < OPERATIONS_MAX;
    if (has_room)
        slot->operations[slot->operations_count++] = *tag = atomic_fetch_add(&last_tag, 1) + 1;
    pthread_mutex_unlock(&slot->lock);
    return has_room;
}

bool slot_end(struct slot *slot, uint64_t tag) {
    bool is_found = false;
    pthread_mutex_lock(&slot->lock);
    for (size_t i = 0; i < slot->operations_count && !is_found; i++)
        if (slot->operations[i] == tag) {
            slot->operations[i] = slot->operations[--slot->operations_count];
            is_found = true;
        }
    pthread_mutex_unlock(&slot->lock);
    return is_found;
}

size_t slot_open_operations(struct slot *slot) {
    pthread_mutex_lock(&slot->lock);
    const size_t count = slot->operations_count;
    pthread_mutex_unlock(&slot->lock);
    return count;
}
