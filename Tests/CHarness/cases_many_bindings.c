/* Many handlers and many names: what a binding costs does not depend on how many there are, and names are given back. */
#include "harness.h"

#include <time.h>

static void ignore(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
}

static atomic_int heard;

static void count_tick(const bird_record *record, void *user_data) {
    (void)user_data;
    CHECK_TEXT(record->event, "tick");
    atomic_fetch_add(&heard, 1);
}

static int64_t cpu_ms(void) {
    struct timespec time;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* One of a hundred thousand is found as fast as one of ten. */
EDGE_CASE(unbinding_one_of_many_is_cheap) {
    enum { HANDLERS = 100000, CPU_MS_MAX = 5000 };
    static uint64_t bindings[HANDLERS];
    static uint64_t observers[HANDLERS];
    world w = world_open(BIRD_DELIVERY_THREAD);
    bird_channel *channel = NULL;
    CHECK_STATUS(bird_client_subscribe(w.client, "many", 0, &channel, NULL), BIRD_OK);
    const int64_t began = cpu_ms();
    for (int i = 0; i < HANDLERS; i++) {
        CHECK_STATUS(bird_channel_bind(channel, "tick", ignore, NULL, NULL, &bindings[i], NULL), BIRD_OK);
        CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, ignore, NULL, NULL, &observers[i], NULL),
                     BIRD_OK);
    }
    /* From the middle to both ends. */
    for (int i = 0; i < HANDLERS; i++) {
        const int index = i % 2 == 0 ? HANDLERS / 2 + i / 2 : HANDLERS / 2 - 1 - i / 2;
        CHECK_STATUS(bird_client_unbind(w.client, bindings[index]), BIRD_OK);
        CHECK_STATUS(bird_client_unbind(w.client, observers[index]), BIRD_OK);
    }
    CHECK(cpu_ms() - began < CPU_MS_MAX * SLOWNESS);
    bird_channel_release(channel);
    world_close(&w);
}

/* A name for each answer, bound and unbound while events come. */
MODE_CASE(names_are_given_back) {
    enum { NAMES = 200000, EVENTS_APART = 20000 };
    world w = world_open(harness_mode());
    world_connect(&w);
    bird_channel *orders = world_join(&w, "orders");
    world_settle(&w);
    atomic_store(&heard, 0);
    uint32_t pinned[2] = {0, 0};
    CHECK_STATUS(bird_client_intern(w.client, "pinned", &pinned[0], NULL), BIRD_OK);
    int expected = 0;
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        uint64_t binding = 0;
        snprintf(name, sizeof name, "reply-%d", i);
        bird_status status = BIRD_ERR_FULL;
        /* The reactor may have no turn for a while. */
        UNTIL(&w, (status = bird_channel_bind(orders, name, ignore, NULL, NULL, &binding, NULL)) != BIRD_ERR_FULL);
        CHECK_STATUS(status, BIRD_OK);
        CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);
        if (i % EVENTS_APART == 0) {
            CHECK_STATUS(bird_channel_bind(orders, "tick", count_tick, NULL, NULL, &binding, NULL), BIRD_OK);
            world_emit_event(&w, "orders", "tick", "1");
            expected++;
            UNTIL(&w, atomic_load(&heard) == expected);
            CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);
        }
    }
    CHECK_STATUS(bird_client_intern(w.client, "pinned", &pinned[1], NULL), BIRD_OK);
    CHECK_INT(pinned[1], pinned[0]);
    world_close(&w);
}

static atomic_int others;

static void count_other(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    atomic_fetch_add(&others, 1);
}

/* A record that waits has the number of a name that nobody uses any more: another name that gets the number must not get the record. */
EDGE_CASE(a_number_is_not_used_again_while_a_record_has_it) {
    enum { NAMES = 60000 };
    uint64_t binding = 0;
    bird_channel *orders = NULL;
    world w = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&w);
    orders = world_join(&w, "orders");
    world_settle(&w);
    CHECK_STATUS(bird_channel_bind(orders, "tick", count_tick, NULL, NULL, &binding, NULL), BIRD_OK);
    atomic_store(&heard, 0);
    atomic_store(&others, 0);
    world_emit_event(&w, "orders", "tick", "1");
    const int64_t end = now_ms() + DEADLINE_MS;
    bird_statistics statistics = {.struct_size = sizeof statistics};
    do {
        CHECK(now_ms() < end);
        CHECK_STATUS(bird_client_statistics(w.client, &statistics), BIRD_OK);
    } while (statistics.queue_records == 0);
    /* It waits now. Its name goes, and so many others come that the number would be among theirs. */
    CHECK_STATUS(bird_client_unbind(w.client, binding), BIRD_OK);
    for (int i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, "other-%d", i);
        CHECK_STATUS(bird_channel_bind(orders, name, count_other, NULL, NULL, &binding, NULL), BIRD_OK);
    }
    CHECK_STATUS(bird_channel_bind(orders, "tick", count_tick, NULL, NULL, &binding, NULL), BIRD_OK);
    UNTIL(&w, atomic_load(&heard) == 1);
    CHECK_INT(atomic_load(&others), 0);
    world_close(&w);
}
