/* What every benchmark client shares: its arguments, the measurement and the line of JSON it prints. */
#ifndef MEASURE_H
#define MEASURE_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* usage: client PORT BYTES WARMUP EVENTS. The first WARMUP events are received and not measured. */
struct arguments {
    int port;
    uint64_t bytes; /* of each event's data */
    uint64_t warmup;
    uint64_t events;
};

static inline void fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static inline struct arguments parse_arguments(int argc, char **argv) {
    uint64_t values[4];
    if (argc != 5)
        fail("usage: client PORT BYTES WARMUP EVENTS");
    for (int i = 0; i < 4; i++) {
        char *end;
        values[i] = strtoull(argv[i + 1], &end, 10);
        if (*end != '\0' || end == argv[i + 1] || values[i] == 0)
            fail("usage: client PORT BYTES WARMUP EVENTS, four positive numbers");
    }
    return (struct arguments){(int)values[0], values[1], values[2], values[3]};
}

struct measurement {
    double seconds;
    double cpu_seconds;
    void (*count_begin)(void); /* NULL unless count_alloc.so is preloaded */
    uint64_t (*count_end)(void);
    uint64_t allocations;
};

static inline double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* User and system time of all threads. */
static inline double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Before the first event: looking up a symbol allocates. */
static inline void measurement_prepare(struct measurement *measurement) {
    *(void **)&measurement->count_begin = dlsym(RTLD_DEFAULT, "count_alloc_begin");
    *(void **)&measurement->count_end = dlsym(RTLD_DEFAULT, "count_alloc_end");
}

static inline void measurement_begin(struct measurement *measurement) {
    measurement->cpu_seconds = cpu_seconds();
    measurement->seconds = clock_seconds();
    if (measurement->count_begin != NULL)
        measurement->count_begin();
}

static inline void measurement_end(struct measurement *measurement) {
    if (measurement->count_end != NULL)
        measurement->allocations = measurement->count_end();
    measurement->seconds = clock_seconds() - measurement->seconds;
    measurement->cpu_seconds = cpu_seconds() - measurement->cpu_seconds;
}

static inline void measurement_print(const struct measurement *measurement, uint64_t events) {
    printf("{\"events\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"allocations\": ", (unsigned long long)events,
           measurement->seconds, measurement->cpu_seconds);
    if (measurement->count_end != NULL)
        printf("%llu}\n", (unsigned long long)measurement->allocations);
    else
        printf("null}\n");
}

#endif
