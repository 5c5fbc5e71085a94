/* What the clients on the library share: options for the flood server, and the check that events are what they should be. */
#ifndef LIBRARY_CLIENT_H
#define LIBRARY_CLIENT_H

#include <birdrealtime.h>
#include <stdbool.h>
#include <stdio.h>

#include "measure.h"

enum { DEADLINE_MS = 60000 };

struct run {
    struct arguments arguments;
    struct measurement measurement;
    uint64_t received;
};

static inline void check(bird_status status, bird_error *error) {
    if (status == BIRD_OK)
        return;
    fprintf(stderr, "%s: %s\n", bird_status_name(status), error != NULL ? bird_error_message(error) : "");
    exit(1);
}

/* Over TLS if the environment has BENCH_CA_FILE. */
static inline bird_options *flood_options(int port) {
    char host[32];
    snprintf(host, sizeof host, "127.0.0.1:%d", port);
    bird_options *options = NULL;
    bird_error *error = NULL;
    check(bird_options_create(&options), NULL);
    check(bird_options_set(options, "app_key", "bench", &error), error);
    check(bird_options_set(options, "ws_host", host, &error), error);
    const char *ca_file = getenv("BENCH_CA_FILE");
    if (ca_file != NULL)
        check(bird_options_set(options, "ca_file", ca_file, &error), error);
    else
        check(bird_options_set(options, "allow_insecure", "1", &error), error);
    return options;
}

/* Counts an event; true with the last one. Every event is checked: a fast client that delivers the wrong thing is none. */
static inline bool count_event(struct run *run, const bird_record *record) {
    if (record->data_kind != BIRD_DATA_STRING || record->data_length != run->arguments.bytes)
        fail("an event with unexpected data was delivered");
    run->received++;
    if (run->received > run->arguments.warmup)
        measurement_arrived(&run->measurement, record->data + 1);
    if (run->received == run->arguments.warmup)
        measurement_begin(&run->measurement);
    if (run->received != run->arguments.warmup + run->arguments.events)
        return false;
    measurement_end(&run->measurement);
    return true;
}

#endif
