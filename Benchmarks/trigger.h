/* What the programs that send client events share. usage: PORT AUTH_PORT BYTES EVENTS */
#ifndef TRIGGER_H
#define TRIGGER_H

#include <string.h>

#include "measure.h"

struct trigger_arguments {
    int port, auth_port;
    size_t bytes;
    uint64_t events;
};

static inline struct trigger_arguments parse_trigger(int argc, char **argv) {
    if (argc != 5)
        fail("usage: trigger PORT AUTH_PORT BYTES EVENTS");
    struct trigger_arguments arguments = {atoi(argv[1]), atoi(argv[2]), strtoull(argv[3], NULL, 10),
                                          strtoull(argv[4], NULL, 10)};
    if (arguments.bytes < 10 || arguments.bytes > 1024 || arguments.events == 0)
        fail("usage: trigger PORT AUTH_PORT BYTES EVENTS, 10 to 1024 bytes");
    return arguments;
}

/* {"x":"aaa"} */
static inline char *make_trigger_data(size_t bytes) {
    char *data = malloc(bytes + 1);
    if (data == NULL)
        fail("out of memory");
    memset(data, 'a', bytes);
    memcpy(data, "{\"x\":\"", 6);
    memcpy(data + bytes - 2, "\"}", 3);
    return data;
}

/* data: what the server's event "counted" carries. */
static inline void check_count(struct trigger_arguments arguments, const char *data) {
    if (strtoull(data, NULL, 10) != arguments.events)
        fail("the server counted another number of client events");
}

/* CPU time of the calling thread. */
static inline double thread_seconds(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static inline void print_trigger(const struct measurement *measurement, double call_seconds) {
    printf("{\"seconds\": %.6f, \"cpu_seconds\": %.6f, \"call_seconds\": %.6f}\n", measurement->seconds,
           measurement->cpu_seconds, call_seconds);
}

#endif
