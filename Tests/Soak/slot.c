#include <stdarg.h>
#include <stdio.h>

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

void slot_leaves(struct slot *slot, const char *name) {
    const size_t index = names_find(name);
    slot_note(slot, "unsubscribe", name, 0);
    if (index < names_count)
        atomic_store(&slot->left_ms[index], now_ms());
}

void slot_note(struct slot *slot, const char *what, const char *subject, int64_t number) {
    pthread_mutex_lock(&slot->lock);
    snprintf(slot->notes[slot->notes_count++ % NOTES_MAX], NOTE_BYTES_MAX, "%lld ms: %s %s %lld",
             (long long)now_ms() % 1000000, what, subject, (long long)number);
    pthread_mutex_unlock(&slot->lock);
}

void slot_fail(struct slot *slot, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&slot->lock);
    for (size_t i = slot->notes_count < NOTES_MAX ? 0 : slot->notes_count - NOTES_MAX; i < slot->notes_count; i++)
        fprintf(stderr, "  %s\n", slot->notes[i % NOTES_MAX]);
    fail("client %u, life %u: %s", slot->index, atomic_load(&slot->life), text);
}
