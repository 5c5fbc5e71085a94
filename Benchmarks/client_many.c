/* A C program with many channels, or many handlers of one event, on one client in LOOP mode. Each handler sees to it that the
   event is of its own channel; the first one of a channel counts. */
#include <errno.h>
#include <semaphore.h>

#include "library_client.h"
#include "many_channels.h"

static struct run run;
static sem_t done;

static void on_tick(const bird_record *record, void *tag) {
    if (record->channel_tag != (uintptr_t)tag)
        fail("an event came to the handler of another channel");
    if (count_event(&run, record))
        sem_post(&done);
}

static void on_tick_too(const bird_record *record, void *tag) {
    if (record->channel_tag != (uintptr_t)tag)
        fail("an event came to the handler of another channel");
}

static void subscribe(bird_client *client, size_t index, size_t handlers) {
    char name[MANY_NAME_BYTES];
    bird_error *error = NULL;
    bird_channel *channel = NULL;
    uint64_t binding;
    void *tag = (void *)(uintptr_t)(index + 1);
    check(bird_client_subscribe(client, many_name(name, index), 0, &channel, &error), error);
    check(bird_channel_set_tag(channel, index + 1), NULL);
    for (size_t i = 0; i < handlers; i++)
        check(bird_channel_bind(channel, "tick", i == 0 ? on_tick : on_tick_too, tag, NULL, &binding, &error), error);
    bird_channel_release(channel);
}

int main(int argc, char **argv) {
    if (argc != 7)
        fail("usage: client_many CHANNELS HANDLERS PORT BYTES WARMUP EVENTS");
    size_t channels = strtoull(argv[1], NULL, 10), handlers = strtoull(argv[2], NULL, 10);
    run.arguments = parse_arguments(argc - 2, argv + 2);
    measurement_prepare(&run.measurement);
    sem_init(&done, 0, 0);

    bird_error *error = NULL;
    bird_client *client = NULL;
    bird_options *options = flood_options(run.arguments.port);
    check(bird_options_set(options, "delivery", "loop", &error), error);
    check(bird_options_set(options, "outbound_bytes_max", "67108864", &error), error);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    for (size_t i = 0; i < channels; i++)
        subscribe(client, i, handlers);
    check(bird_client_connect(client, &error), error);

    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_MS / 1000;
    while (sem_timedwait(&done, &deadline) != 0)
        if (errno != EINTR)
            fail("the events did not arrive in time");
    check(bird_client_destroy(client), NULL);
    measurement_print(&run.measurement, run.arguments.events);
}
