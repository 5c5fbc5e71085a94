/* What a client event costs: sends them as fast as they are accepted, and ends when the server has counted all.
   usage: client_trigger PORT AUTH_PORT BYTES EVENTS, BYTES of the JSON that each carries */
#include <errno.h>
#include <semaphore.h>

#include "library_client.h"
#include "trigger.h"

static struct trigger_arguments arguments;
static sem_t changed;

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    sem_post(&changed);
}

static void on_counted(const bird_record *record, void *user_data) {
    (void)user_data;
    check_count(arguments, record->data);
    sem_post(&changed);
}

static void wait_for_change(void) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_MS / 1000;
    while (sem_timedwait(&changed, &deadline) != 0)
        if (errno != EINTR)
            fail("the server did not answer in time");
}

/* Waits while the library holds as much as it may. */
static void trigger(bird_client *client, bird_channel *channel, const char *event, const char *data) {
    bird_status status;
    while ((status = bird_channel_trigger(channel, event, data, arguments.bytes, NULL)) == BIRD_ERR_FULL)
        check(bird_client_flush(client, DEADLINE_MS), NULL);
    check(status, NULL);
}

int main(int argc, char **argv) {
    arguments = parse_trigger(argc, argv);
    sem_init(&changed, 0, 0);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    char *data = make_trigger_data(arguments.bytes);

    bird_error *error = NULL;
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    char text[64];
    bird_options *options = flood_options(arguments.port);
    snprintf(text, sizeof text, "http://127.0.0.1:%d/auth", arguments.auth_port);
    check(bird_options_set(options, "auth_endpoint", text, &error), error);
    check(bird_options_set(options, "delivery", "loop", &error), error);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    check(bird_client_subscribe(client, "private-bench", 0, &channel, &error), error);
    check(bird_client_observe(client, 1u << BIRD_RECORD_SUBSCRIBED, on_subscribed, NULL, NULL, NULL, &error), error);
    check(bird_channel_bind(channel, "counted", on_counted, NULL, NULL, NULL, &error), error);
    check(bird_client_connect(client, &error), error);
    wait_for_change();

    measurement_begin(&measurement);
    double call_seconds = thread_seconds();
    for (uint64_t i = 0; i < arguments.events; i++)
        trigger(client, channel, "client-event", data);
    trigger(client, channel, "client-last", data);
    call_seconds = thread_seconds() - call_seconds;
    wait_for_change();
    measurement_end(&measurement);
    check(bird_client_destroy(client), NULL);
    print_trigger(&measurement, call_seconds);
    free(data);
}
