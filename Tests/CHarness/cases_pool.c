/* Who delivers: the shared pool with many clients, one queue with several threads, and three modes in one process. */
#include "harness.h"

#include <pthread.h>
#include <unistd.h>

/* -------------------------------------------------------------------------------------------------- the pool -------- */

/* One client of many. */
typedef struct member {
    bird_client *client;
    atomic_bool is_subscribed;
    atomic_flag is_inside;
    atomic_int received;
} member;

static member *members;
static int member_count, events_wanted;
static atomic_int finished, most_inside, inside;
static atomic_bool may_go_on;
static _Atomic(member *) slow;

static void note_subscribed(const bird_record *record, void *user_data) {
    (void)record;
    atomic_store(&((member *)user_data)->is_subscribed, true);
}

/* Events are numbered from 0. Who comes first, the slow one, stays with its first event until all others have got all of theirs. */
static void take_in_turn(const bird_record *record, void *user_data) {
    member *m = user_data;
    CHECK(!atomic_flag_test_and_set(&m->is_inside));
    const int now_inside = atomic_fetch_add(&inside, 1) + 1;
    for (int most = atomic_load(&most_inside);
         now_inside > most && !atomic_compare_exchange_weak(&most_inside, &most, now_inside);) {
    }
    CHECK_INT(strtol(record->data, NULL, 10), atomic_load(&m->received));
    member *nobody = NULL;
    if (atomic_compare_exchange_strong(&slow, &nobody, m)) {
        const int64_t end = now_ms() + 2 * DEADLINE_MS;
        while (atomic_load(&finished) < member_count - 1 || !atomic_load(&may_go_on)) {
            CHECK(now_ms() < end);
            usleep(1000);
        }
    }
    atomic_fetch_sub(&inside, 1);
    atomic_flag_clear(&m->is_inside);
    if (atomic_fetch_add(&m->received, 1) + 1 == events_wanted) {
        atomic_fetch_add(&finished, 1);
    }
}

/* HOST:PORT APP_KEY CLIENTS THREADS EVENTS: all subscribe "fleet", print a line that starts with "ready", and wait for that many "tick"s
   each; prints "slow" when only the slow client is behind, and goes on at a line on stdin. */
LOAD_CASE(pool_serves_many_clients) {
    member_count = atoi(harness_argument(2));
    const int pool = atoi(harness_argument(3));
    events_wanted = atoi(harness_argument(4));
    members = calloc((size_t)member_count, sizeof *members);
    CHECK(members != NULL && member_count > 1);
    const int threads = count_threads(), fds = count_fds();
    CHECK_STATUS(bird_set_delivery_threads(pool), BIRD_OK);
    for (int i = 0; i < member_count; i++) {
        bird_options *options = NULL;
        CHECK_STATUS(bird_options_create(&options), BIRD_OK);
        set_option(options, "ws_host", harness_argument(0));
        set_option(options, "app_key", harness_argument(1));
        set_option(options, "allow_insecure", "1");
        members[i].client = client_from(options, NULL);
        bird_channel *channel = NULL;
        uint64_t binding;
        CHECK_STATUS(bird_client_subscribe(members[i].client, "fleet", 0, &channel, NULL), BIRD_OK);
        CHECK_STATUS(bird_channel_bind(channel, "bird:subscription_succeeded", note_subscribed, &members[i], NULL,
                                       &binding, NULL),
                     BIRD_OK);
        CHECK_STATUS(bird_channel_bind(channel, "tick", take_in_turn, &members[i], NULL, &binding, NULL), BIRD_OK);
        bird_channel_release(channel);
        CHECK_STATUS(bird_client_connect(members[i].client, NULL), BIRD_OK);
    }
    world w = {.delivery = BIRD_DELIVERY_THREAD};
    for (int i = 0; i < member_count; i++) {
        UNTIL(&w, atomic_load(&members[i].is_subscribed));
    }
    CHECK_INT(count_threads(), threads + 1 + pool);
    printf("ready\n");
    fflush(stdout);
    UNTIL(&w, atomic_load(&finished) == member_count - 1);
    CHECK_INT(atomic_load(&atomic_load(&slow)->received), 0);
    printf("slow\n");
    fflush(stdout);
    CHECK(getchar() == '\n');
    atomic_store(&may_go_on, true);
    UNTIL(&w, atomic_load(&finished) == member_count);
    CHECK(atomic_load(&most_inside) <= pool && atomic_load(&most_inside) >= 2);
    for (int i = 0; i < member_count; i++) {
        CHECK_STATUS(bird_client_destroy(members[i].client), BIRD_OK);
    }
    free(members);
    UNTIL(&w, count_threads() == threads);
    UNTIL(&w, count_fds() == fds);
    printf("over\n");
}

/* ---------------------------------------------------------------------------------- one queue, several threads ------ */

static atomic_int dispatched, found_busy;
static atomic_bool is_over;

/* Each call either works or says that another thread is at it. */
static void *dispatch_or_be_told(void *queue) {
    while (!atomic_load(&is_over)) {
        size_t count = 0;
        const bird_status status = bird_queue_dispatch(queue, 100, &count);
        CHECK(status == BIRD_OK || status == BIRD_ERR_BUSY);
        atomic_fetch_add(status == BIRD_OK ? &dispatched : &found_busy, 1);
    }
    return NULL;
}

/* Nothing is lost or out of order on the way: the stream checks that. */
EDGE_CASE(queue_is_dispatched_by_one_thread_at_a_time) {
    enum { THREADS = 3, EVENTS = 20000 };
    world w = world_open(BIRD_DELIVERY_QUEUE);
    world_connect(&w);
    pthread_t threads[THREADS];
    world_stream(&w);
    world other = w;
    other.queue = NULL; /* waits, without a hand in it */
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, dispatch_or_be_told, w.queue) == 0);
    }
    UNTIL(&other, world_streamed() > EVENTS && atomic_load(&found_busy) > 0);
    world_end_stream(&other);
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(atomic_load(&dispatched) > 0);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------ three modes ------- */

static pid_t thread_of[3];
static atomic_int came;

static void note_thread(const bird_record *record, void *user_data) {
    CHECK_INT(record->client_tag, (intptr_t)user_data);
    thread_of[(intptr_t)user_data] = gettid();
    atomic_fetch_add(&came, 1);
}

/* Each client has the mode of its options, whatever the others have. */
EDGE_CASE(each_client_has_its_own_mode) {
    world clients[3];
    for (intptr_t mode = BIRD_DELIVERY_THREAD; mode <= BIRD_DELIVERY_LOOP; mode++) {
        bird_options *options = world_options((int32_t)mode);
        CHECK_STATUS(bird_options_set_tag(options, (uint64_t)mode), BIRD_OK);
        clients[mode] = world_open_with((int32_t)mode, options);
        world_grant_requests(clients[mode].client);
        world_connect(&clients[mode]);
        uint64_t binding;
        CHECK_STATUS(bird_channel_bind(clients[mode].control, "tick", note_thread, (void *)mode, NULL, &binding, NULL),
                     BIRD_OK);
    }
    for (int mode = 0; mode < 3; mode++) {
        world_emit_event(&clients[mode], "private-control", "tick", "1");
    }
    UNTIL(&clients[BIRD_DELIVERY_QUEUE], atomic_load(&came) == 3);
    CHECK_INT(thread_of[BIRD_DELIVERY_QUEUE], gettid());
    CHECK(thread_of[BIRD_DELIVERY_THREAD] != gettid() && thread_of[BIRD_DELIVERY_LOOP] != gettid());
    CHECK(thread_of[BIRD_DELIVERY_THREAD] != thread_of[BIRD_DELIVERY_LOOP]);
    for (int mode = 0; mode < 3; mode++) {
        world_close(&clients[mode]);
    }
}

/* --------------------------------------------------------------------------------------------- bounded outbound ----- */

static int fill(world *w, const char *data, size_t length) {
    bird_error *error = NULL;
    bird_status status;
    int accepted = 0;
    while ((status = bird_channel_trigger(w->control, "client-noted", data, length, &error)) == BIRD_OK) {
        CHECK(++accepted < 100000);
    }
    CHECK_STATUS(status, BIRD_ERR_FULL);
    CHECK_TEXT(bird_error_field(error), "outbound_bytes_max");
    CHECK_INT(bird_error_retriable(error), 1);
    bird_error_free(error);
    return accepted;
}

static world open_with_little_room(int32_t delivery) {
    bird_options *options = world_options(delivery);
    set_option(options, "outbound_bytes_max", "65536");
    world w = world_open_with(delivery, options);
    world_grant_requests(w.client);
    world_connect(&w);
    return w;
}

static void reconnect(world *w) {
    bird_statistics before = {.struct_size = sizeof before}, now = before;
    CHECK_STATUS(bird_client_statistics(w->client, &before), BIRD_OK);
    CHECK_STATUS(bird_client_disconnect(w->client), BIRD_OK);
    CHECK_STATUS(bird_client_connect(w->client, NULL), BIRD_OK);
    UNTIL(w, bird_client_statistics(w->client, &now) == BIRD_OK && now.connects > before.connects);
    UNTIL(w, channel_state(w->control) == BIRD_CHANNEL_SUBSCRIBED);
}

enum { EVENT_BYTES = 4000 };

/* The edge stops reading: what waits is bounded, counted when the connection goes, and then there is room again. */
EDGE_CASE(outbound_queue_is_bounded) {
    char data[EVENT_BYTES];
    memset(data, '1', sizeof data);
    world w = open_with_little_room(BIRD_DELIVERY_THREAD);
    CHECK_STATUS(bird_channel_trigger(w.control, "client-deaf", NULL, 0, NULL), BIRD_OK);
    int accepted = 0;
    bird_statistics before = {.struct_size = sizeof before}, after = before;
    bird_status flushed;
    /* As long as the kernel's buffers have room the queue becomes free again and takes more. */
    do {
        CHECK_STATUS(bird_client_statistics(w.client, &before), BIRD_OK);
        accepted += fill(&w, data, sizeof data);
        flushed = bird_client_flush(w.client, 50);
        CHECK(flushed == BIRD_OK || flushed == BIRD_ERR_TIMEOUT);
        CHECK_STATUS(bird_client_statistics(w.client, &after), BIRD_OK);
    } while (flushed == BIRD_OK || after.bytes_sent != before.bytes_sent);
    CHECK(accepted > 16);
    reconnect(&w);
    /* Retriable. Events of the old connection count as long as they may still be written, which is until its close is over. */
    UNTIL(&w, bird_channel_trigger(w.control, "client-noted", data, sizeof data, NULL) == BIRD_OK);
    CHECK_STATUS(bird_client_statistics(w.client, &after), BIRD_OK);
    CHECK(after.client_events_lost >= 1 && after.client_events_lost <= 16);
    world_close(&w);
}

/* What is written together with the close is written: it takes no room from then on. */
MODE_CASE(outbound_queue_is_free_after_a_close) {
    char data[EVENT_BYTES];
    memset(data, '1', sizeof data);
    world w = open_with_little_room(harness_mode());
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 15; i++) {
            CHECK_STATUS(bird_channel_trigger(w.control, "client-noted", data, sizeof data, NULL), BIRD_OK);
        }
        reconnect(&w);
    }
    bird_statistics s = {.struct_size = sizeof s};
    CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
    CHECK_INT(s.client_events_lost, 0);
    world_close(&w);
}
