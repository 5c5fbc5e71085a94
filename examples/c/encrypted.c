/*
 * Prints what is published on an encrypted channel, and what could not be opened, until the edge refuses the connection or Ctrl-C.
 *
 *     encrypted APP_KEY EDGE AUTH_ENDPOINT CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. The name of the channel begins with private-encrypted-. The endpoint gives
 * the channel's key with each authorization (shared_secret), so nothing else is to be done: events arrive as on any other channel, and
 * when the backend's master key has been rotated, the endpoint is asked for the new key.
 */
#include <birdrealtime.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t refused;

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
        sem_post(&refused);
    }
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("subscribed to %s\n", record->channel_name);
}

static void on_refused(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *subscription = record->detail;
    printf("not on %s: %s\n", record->channel_name, bird_error_message(subscription->error));
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

/* Its content is lost; a program that keeps state should fetch it anew from where it comes from. */
static void on_lost(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_failure *failure = record->detail;
    printf("lost %s: %s\n", record->data, bird_error_message(failure->error));
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: encrypted APP_KEY EDGE AUTH_ENDPOINT CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&refused, 0, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_client *client = NULL;
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set(options, "auth_endpoint", arguments[3], &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, NULL, &error), &error);
    check(bird_client_subscribe(client, arguments[4], 0, &channel, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, NULL, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_error", on_refused, NULL, NULL, NULL, &error), &error);
    check(bird_channel_bind(channel, "bird:decryption_error", on_lost, NULL, NULL, NULL, &error), &error);
    check(bird_channel_bind(channel, NULL, on_event, NULL, NULL, NULL, &error), &error);
    check(bird_client_connect(client, &error), &error);

    sem_wait(&refused);
    bird_channel_release(channel);
    bird_client_destroy(client);
    return 0;
}
