/* A C program with one handler, in the delivery mode that its first argument names ("loop": on the reactor thread; "thread": on the
   pool). */
#include <errno.h>
#include <semaphore.h>

#include "library_client.h"

static struct run run;
static sem_t done;

static void on_tick(const bird_record *record, void *user_data) {
    (void)user_data;
    if (count_event(&run, record))
        sem_post(&done);
}

int main(int argc, char **argv) {
    if (argc < 2)
        fail("usage: client_handler loop|thread PORT BYTES WARMUP EVENTS");
    run.arguments = parse_arguments(argc - 1, argv + 1);
    measurement_prepare(&run.measurement);
    sem_init(&done, 0, 0);

    bird_error *error = NULL;
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    uint64_t binding;
    bird_options *options = flood_options(run.arguments.port);
    check(bird_options_set(options, "delivery", argv[1], &error), error);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    check(bird_client_subscribe(client, "bench", 0, &channel, &error), error);
    check(bird_channel_bind(channel, "tick", on_tick, NULL, NULL, &binding, &error), error);
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
