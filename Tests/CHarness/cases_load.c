/* Larger loads, with figures on stdout. */
#include "harness.h"

/* ------------------------------------------------------------------------------------------------ many clients ------ */

static atomic_int subscribed, received;

static void count_up(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

/* HOST:PORT APP_KEY CLIENTS: all subscribe "fleet", print a line that starts with "ready", and wait for one event each. */
LOAD_CASE(many_clients_share_one_reactor) {
    const int count = atoi(harness_argument(2));
    CHECK(count > 0);
    bird_client **clients = calloc((size_t)count, sizeof *clients);
    CHECK(clients != NULL);
    const int threads = count_threads();
    const long memory = resident_kib();
    for (int i = 0; i < count; i++) {
        bird_options *options = NULL;
        CHECK_STATUS(bird_options_create(&options), BIRD_OK);
        set_option(options, "ws_host", harness_argument(0));
        set_option(options, "app_key", harness_argument(1));
        set_option(options, "allow_insecure", "1");
        set_option(options, "delivery", "loop");
        clients[i] = client_from(options, NULL);
        bird_channel *channel = NULL;
        uint64_t binding;
        CHECK_STATUS(bird_client_subscribe(clients[i], "fleet", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(
            bird_channel_bind(channel, "bird:subscription_succeeded", count_up, &subscribed, NULL, &binding, NULL),
            BIRD_OK);
        CHECK_STATUS(bird_channel_bind(channel, "tick", count_up, &received, NULL, &binding, NULL), BIRD_OK);
        bird_channel_release(channel);
        CHECK_STATUS(bird_client_connect(clients[i], NULL), BIRD_OK);
    }
    world w = {.delivery = BIRD_DELIVERY_LOOP};
    UNTIL(&w, atomic_load(&subscribed) == count);
    printf("ready: %d clients, %d threads, %ld KiB, %.1f KiB each\n", count, count_threads() - threads,
           resident_kib() - memory, (double)(resident_kib() - memory) / count);
    fflush(stdout);
    CHECK_INT(count_threads(), threads + 1);
    UNTIL(&w, atomic_load(&received) == count);
    for (int i = 0; i < count; i++) {
        CHECK_STATUS(bird_client_destroy(clients[i]), BIRD_OK);
    }
    free(clients);
    printf("received: %d\n", atomic_load(&received));
}
