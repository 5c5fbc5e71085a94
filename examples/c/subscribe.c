/*
 * Prints the events of a channel. Ends when the edge refuses the connection, or with Ctrl-C.
 *
 *     subscribe APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge.
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

/* The handlers run on a thread of the library, one at a time, while main waits. */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    if (change->current == BIRD_STATE_FAILED) {
        sem_post(&refused);
    }
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *subscription = record->detail;
    printf("subscribed to %s%s\n", record->channel_name, subscription->is_resubscribe ? " again" : "");
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: subscribe APP_KEY EDGE CHANNEL\n");
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
    /* Plaintext, and that only for localhost, 127.0.0.1 and [::1]. */
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    uint64_t binding;
    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_subscribe(client, arguments[3], 0, &channel, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, &binding, &error),
          &error);
    check(bird_channel_bind(channel, NULL, on_event, NULL, NULL, &binding, &error), &error);
    check(bird_client_connect(client, &error), &error);

    /* Drops are repaired by the library: the channel is subscribed again without a call. Only a refusal is final. */
    sem_wait(&refused);
    bird_channel_release(channel);
    bird_client_destroy(client);
    return 0;
}
