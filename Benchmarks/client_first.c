/* How long it takes from nothing to the first event in a handler, in LOOP mode: clients one after the other, of which the first
   finds a fresh process, the others one in which all clients before them are connected. */
#include <errno.h>
#include <semaphore.h>

#include "first.h"
#include "library_client.h"

static sem_t arrived;
static double arrived_seconds;

static void on_tick(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    arrived_seconds = clock_seconds();
    sem_post(&arrived);
}

/* Seconds. */
static double receive_first(int port) {
    bird_error *error = NULL;
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    uint64_t binding;
    double start = clock_seconds();
    bird_options *options = flood_options(port);
    check(bird_options_set(options, "delivery", "loop", &error), error);
    check(bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    check(bird_client_subscribe(client, "bench", 0, &channel, &error), error);
    check(bird_channel_bind(channel, "tick", on_tick, NULL, NULL, &binding, &error), error);
    check(bird_client_connect(client, &error), error);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += DEADLINE_MS / 1000;
    while (sem_timedwait(&arrived, &deadline) != 0)
        if (errno != EINTR)
            fail("no event arrived in time");
    return arrived_seconds - start;
}

int main(int argc, char **argv) {
    sem_init(&arrived, 0, 0);
    print_firsts(parse_first(argc, argv), receive_first);
}
