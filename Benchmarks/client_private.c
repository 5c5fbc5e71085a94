/* How long it takes from connect until one client has so many private channels, each authorized by an endpoint.
   usage: client_private PORT AUTH_PORT CHANNELS */
#include <errno.h>
#include <semaphore.h>

#include "library_client.h"

static uint64_t wanted, subscribed;
static sem_t done;

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    if (++subscribed == wanted)
        sem_post(&done);
}

static void on_error(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *subscription = record->detail;
    fail(bird_error_message(subscription->error));
}

int main(int argc, char **argv) {
    if (argc != 4)
        fail("usage: client_private PORT AUTH_PORT CHANNELS");
    wanted = strtoull(argv[3], NULL, 10);
    sem_init(&done, 0, 0);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);

    bird_error *error = NULL;
    bird_client *client = NULL;
    char text[64];
    bird_options *options = flood_options(atoi(argv[1]));
    snprintf(text, sizeof text, "http://127.0.0.1:%d/auth", atoi(argv[2]));
    check(bird_options_set(options, "auth_endpoint", text, &error), error);
    check(bird_options_set(options, "delivery", "loop", &error), error);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    check(bird_client_observe(client, 1u << BIRD_RECORD_SUBSCRIBED, on_subscribed, NULL, NULL, NULL, &error), error);
    check(bird_client_observe(client, 1u << BIRD_RECORD_SUBSCRIPTION_ERROR, on_error, NULL, NULL, NULL, &error), error);
    for (uint64_t i = 0; i < wanted; i++) {
        bird_channel *channel = NULL;
        snprintf(text, sizeof text, "private-many-%06llu", (unsigned long long)i);
        check(bird_client_subscribe(client, text, 0, &channel, &error), error);
        bird_channel_release(channel);
    }
    measurement_begin(&measurement);
    check(bird_client_connect(client, &error), error);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_MS / 1000;
    while (sem_timedwait(&done, &deadline) != 0)
        if (errno != EINTR)
            fail("the channels were not subscribed in time");
    measurement_end(&measurement);
    check(bird_client_destroy(client), NULL);
    measurement_print(&measurement, wanted);
}
