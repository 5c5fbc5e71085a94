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

enum { LATENCIES_MAX = 1 << 20, STAMP_DIGITS = 20 };

struct measurement {
    double seconds;
    double cpu_seconds;
    void (*count_begin)(void); /* NULL unless count_alloc.so is preloaded */
    uint64_t (*count_end)(void);
    uint64_t allocations;
    uint64_t *latencies_ns; /* NULL unless the environment has BENCH_LATENCY */
    size_t latency_count;
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

static inline uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Before the first event: looking up a symbol allocates. */
static inline void measurement_prepare(struct measurement *measurement) {
    *(void **)&measurement->count_begin = dlsym(RTLD_DEFAULT, "count_alloc_begin");
    *(void **)&measurement->count_end = dlsym(RTLD_DEFAULT, "count_alloc_end");
    if (getenv("BENCH_LATENCY") == NULL)
        return;
    size_t bytes = LATENCIES_MAX * sizeof *measurement->latencies_ns;
    measurement->latencies_ns = malloc(bytes);
    if (measurement->latencies_ns == NULL)
        fail("out of memory");
    memset(measurement->latencies_ns, 1, bytes); /* so that no page is missing later */
}

/* For each measured event of a server with --rate: the stamp at the start of its data. */
static inline void measurement_arrived(struct measurement *measurement, const char *stamp) {
    if (measurement->latencies_ns == NULL || measurement->latency_count == LATENCIES_MAX)
        return;
    uint64_t now = clock_ns();
    uint64_t then = 0;
    for (int i = 0; i < STAMP_DIGITS; i++)
        then = then * 10 + (uint64_t)(stamp[i] - '0');
    measurement->latencies_ns[measurement->latency_count++] = now - then;
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

static inline int compare_latencies(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static inline void print_latencies(const struct measurement *measurement) {
    static const struct {
        const char *name;
        double part;
    } percentiles[] = {{"p50", 0.5}, {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    size_t count = measurement->latency_count;
    if (count == 0)
        fail("no event had a stamp");
    qsort(measurement->latencies_ns, count, sizeof *measurement->latencies_ns, compare_latencies);
    printf(", \"latency_ns\": {");
    for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
        printf("%s\"%s\": %llu", i == 0 ? "" : ", ", percentiles[i].name,
               (unsigned long long)measurement->latencies_ns[(size_t)((double)(count - 1) * percentiles[i].part)]);
    printf("}");
}

static inline void measurement_print(const struct measurement *measurement, uint64_t events) {
    printf("{\"events\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"allocations\": ", (unsigned long long)events,
           measurement->seconds, measurement->cpu_seconds);
    if (measurement->count_end != NULL)
        printf("%llu", (unsigned long long)measurement->allocations);
    else
        printf("null");
    if (measurement->latencies_ns != NULL)
        print_latencies(measurement);
    printf("}\n");
}

#endif
