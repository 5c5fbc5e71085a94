/* A C program that drains a queue in batches on its main thread and routes by the number of the event's name. */
#include "library_client.h"

static struct run run;

/* True when the last event has arrived. */
static bool drain(bird_queue *queue, uint32_t tick) {
    for (;;) {
        bird_batch *batch;
        const bird_record *records;
        size_t count, stride;
        check(bird_queue_drain(queue, &batch, &records, &count, &stride), NULL);
        if (count == 0)
            return false;
        bool is_done = false;
        for (size_t i = 0; i < count && !is_done; i++) {
            const bird_record *record = (const bird_record *)((const char *)records + i * stride);
            is_done = record->kind == BIRD_RECORD_EVENT && record->event_id == tick && count_event(&run, record);
        }
        check(bird_batch_release(batch), NULL);
        if (is_done)
            return true;
    }
}

int main(int argc, char **argv) {
    run.arguments = parse_arguments(argc, argv);
    measurement_prepare(&run.measurement);

    bird_error *error = NULL;
    bird_queue *queue = NULL;
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    uint32_t tick;
    bird_options *options = flood_options(run.arguments.port);
    check(bird_queue_create(&queue), NULL);
    check(bird_options_set_queue(options, queue), NULL);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    check(bird_client_intern(client, "tick", &tick, &error), error);
    check(bird_client_subscribe(client, "bench", 0, &channel, &error), error);
    check(bird_client_connect(client, &error), error);

    do
        check(bird_queue_wait(queue, DEADLINE_MS), NULL);
    while (!drain(queue, tick));
    check(bird_client_destroy(client), NULL);
    check(bird_queue_destroy(queue), NULL);
    measurement_print(&run.measurement, run.arguments.events);
}
