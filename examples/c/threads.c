/*
 * Watches several channels, each with a client of its own, and handles their events on the library's threads. Ends with Ctrl-C, or when the
 * edge refuses the connections.
 *
 *     threads APP_KEY EDGE CHANNEL...
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge.
 *
 * The threads (four, unless bird_set_delivery_threads() says otherwise) serve all clients of the process. One client is served by one thread
 * at a time, and its records come in order; those of two clients may be handled at the same moment.
 */
#include <birdrealtime.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What belongs to one client needs no lock. */
struct watch {
    bird_client *client;
    bird_channel *channel;
    unsigned long events;
};

/* What belongs to all does. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long events_in_all;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    if (change->current == BIRD_STATE_FAILED) {
        fprintf(stderr, "refused: %s\n", change->reason_text);
        kill(getpid(), SIGTERM); /* main waits for it */
    }
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("subscribed to %s\n", record->channel_name);
}

static void on_event(const bird_record *record, void *user_data) {
    struct watch *watch = user_data;
    watch->events++;
    pthread_mutex_lock(&lock);
    events_in_all++;
    pthread_mutex_unlock(&lock);
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

static void start(struct watch *watch, bird_options *options, const char *channel) {
    bird_error *error = NULL;
    uint64_t binding;
    check(bird_client_create(options, &watch->client, &error), &error);
    check(bird_client_observe(watch->client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_subscribe(watch->client, channel, 0, &watch->channel, &error), &error);
    check(bird_channel_bind(watch->channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, &binding, &error),
          &error);
    check(bird_channel_bind(watch->channel, NULL, on_event, watch, NULL, &binding, &error), &error);
    check(bird_client_connect(watch->client, &error), &error);
}

int main(int count, char **arguments) {
    if (count < 4) {
        fprintf(stderr, "usage: threads APP_KEY EDGE CHANNEL...\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    /* Blocked before there is a second thread, so that the signals wait for sigwait(). */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    bird_error *error = NULL;
    bird_options *options = NULL;
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);

    size_t watch_count = (size_t)count - 3;
    struct watch *watches = calloc(watch_count, sizeof *watches);
    if (watches == NULL) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (size_t i = 0; i < watch_count; i++) {
        start(&watches[i], options, arguments[3 + i]);
    }
    bird_options_destroy(options);

    int signal_number;
    sigwait(&signals, &signal_number);

    /* Waits for a handler that runs; after it none is called, and what they used can be read and freed. */
    for (size_t i = 0; i < watch_count; i++) {
        bird_channel_release(watches[i].channel);
        bird_client_destroy(watches[i].client);
        printf("%s: %lu events\n", arguments[3 + i], watches[i].events);
    }
    printf("%lu events in all\n", events_in_all);
    free(watches);
    return 0;
}
