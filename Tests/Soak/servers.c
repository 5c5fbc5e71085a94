#include <string.h>

#include "soak.h"

enum { QUEUES = 2 };

static struct queue_server {
    pthread_t thread;
    bird_queue *queue;
    struct chance chance;
} queue_servers[QUEUES];
static pthread_t loop_thread;
static bird_loop *loop;
static atomic_bool is_ending;
static atomic_ullong drains;

bird_queue *servers_queue(unsigned index) {
    return queue_servers[index / MODES % QUEUES].queue;
}

bird_loop *servers_loop(void) {
    return loop;
}

uint64_t servers_drains(void) {
    return atomic_load(&drains);
}

static void expect(const char *call, bird_status status) {
    if (status != BIRD_OK)
        fail("%s returned %s", call, bird_status_name(status));
}

/* False: nothing waits. */
static bool drain(bird_queue *queue) {
    bird_batch *batch = NULL;
    const bird_record *records = NULL;
    size_t count = 0, stride = 0;
    const uint64_t number = atomic_fetch_add(&drains, 1) + 1;
    expect("bird_queue_drain", bird_queue_drain(queue, &batch, &records, &count, &stride));
    for (size_t i = 0; i < count; i++)
        witness((const bird_record *)((const char *)records + i * stride), number);
    if (batch == NULL)
        return false;
    expect("bird_batch_release", bird_batch_release(batch));
    return true;
}

/* Dispatches and drains in turns. */
static void *serve_queue(void *argument) {
    struct queue_server *server = argument;
    while (!atomic_load(&is_ending)) {
        const bird_status status = bird_queue_wait(server->queue, 200);
        if (status != BIRD_ERR_TIMEOUT && status != BIRD_ERR_WOKEN)
            expect("bird_queue_wait", status);
        if (chance_percent(&server->chance, 50)) {
            size_t count;
            expect("bird_queue_dispatch",
                   bird_queue_dispatch(server->queue, (size_t)chance_between(&server->chance, 0, 50), &count));
        } else {
            for (int64_t left = chance_between(&server->chance, 1, 20); left > 0 && drain(server->queue); left--)
                continue;
        }
    }
    return NULL;
}

static void *serve_loop(void *argument) {
    (void)argument;
    while (!atomic_load(&is_ending))
        expect("bird_loop_run_once", bird_loop_run_once(loop, 200));
    return NULL;
}

static void start(pthread_t *thread, void *(*run)(void *), void *argument) {
    const int problem = pthread_create(thread, NULL, run, argument);
    if (problem != 0)
        fail("pthread_create: %s", strerror(problem));
}

void servers_start(uint64_t seed) {
    atomic_store(&is_ending, false);
    for (unsigned i = 0; i < QUEUES; i++) {
        queue_servers[i].chance.state = seed + i;
        expect("bird_queue_create", bird_queue_create(&queue_servers[i].queue));
        start(&queue_servers[i].thread, serve_queue, &queue_servers[i]);
    }
    expect("bird_loop_create", bird_loop_create(&loop));
    start(&loop_thread, serve_loop, NULL);
}

void servers_stop(void) {
    atomic_store(&is_ending, true);
    for (unsigned i = 0; i < QUEUES; i++) {
        expect("bird_queue_wake", bird_queue_wake(queue_servers[i].queue));
        pthread_join(queue_servers[i].thread, NULL);
        expect("bird_queue_destroy", bird_queue_destroy(queue_servers[i].queue));
    }
    expect("bird_loop_wake", bird_loop_wake(loop));
    pthread_join(loop_thread, NULL);
    expect("bird_loop_destroy", bird_loop_destroy(loop));
}
