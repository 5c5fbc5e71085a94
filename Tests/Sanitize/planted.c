/* planted FAULT: makes one fault, which scripts/sanitize must hear of before it trusts its silence about anything else. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int shared;
static volatile char *volatile kept;

static void *add(void *argument) {
    shared++;
    return argument;
}

static void use_after_free(void) {
    char *bytes = malloc(16);
    kept = bytes;
    free(bytes);
    kept[3] = 1;
}

static void leak(void) {
    kept = malloc(1000);
    kept = NULL;
}

static void shift(void) {
    volatile int count = 40;
    shared = 1 << count;
}

static void uninitialised(void) {
    kept = malloc(16);
    if (kept[3] == 1) {
        puts("one");
    }
    free((void *)kept);
}

static void race(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, add, NULL) != 0) {
            abort();
        }
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*make)(void);
    } faults[] = {{"use_after_free", use_after_free},
                  {"leak", leak},
                  {"shift", shift},
                  {"uninitialised", uninitialised},
                  {"race", race}};
    for (size_t i = 0; count == 2 && i < sizeof faults / sizeof *faults; i++) {
        if (strcmp(arguments[1], faults[i].name) == 0) {
            faults[i].make();
            return 0;
        }
    }
    return 2;
}
