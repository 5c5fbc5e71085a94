#include "harness.h"

#include <pthread.h>
#include <stdarg.h>

#define ENTRY_BYTES_MAX 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char entries[JOURNAL_ENTRIES_MAX][ENTRY_BYTES_MAX];
static int count;
static char text[JOURNAL_ENTRIES_MAX * ENTRY_BYTES_MAX];

void journal_add(const char *format, ...) {
    va_list values;
    va_start(values, format);
    pthread_mutex_lock(&lock);
    if (count == JOURNAL_ENTRIES_MAX) {
        harness_fail(__FILE__, __LINE__, "more than %d journal entries", JOURNAL_ENTRIES_MAX);
    }
    vsnprintf(entries[count++], ENTRY_BYTES_MAX, format, values);
    pthread_mutex_unlock(&lock);
    va_end(values);
}

int journal_count(void) {
    pthread_mutex_lock(&lock);
    const int result = count;
    pthread_mutex_unlock(&lock);
    return result;
}

const char *journal_entry(int index) {
    return index < journal_count() ? entries[index] : "";
}

void journal_clear(void) {
    pthread_mutex_lock(&lock);
    count = 0;
    pthread_mutex_unlock(&lock);
}

const char *journal_text(void) {
    pthread_mutex_lock(&lock);
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        length += (size_t)snprintf(text + length, sizeof text - length, "%s%s", i ? " " : "", entries[i]);
    }
    pthread_mutex_unlock(&lock);
    return text;
}

void note_handler(const bird_record *record, void *user_data) {
    (void)record;
    journal_add("%s", (const char *)user_data);
}

void note_destructor(void *user_data) {
    journal_add("~%s", (const char *)user_data);
}
