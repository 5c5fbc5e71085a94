/*
 * Thousands of clients in one process, with edges in processes of their own. Prints what it measures as one JSON object; judges nothing
 * but that everything arrives, and that within two minutes.
 *
 * usage: scale --clients N --mode loop|thread|queue --edge PROGRAM --ports PORT,... [--restarts N] [--idle-ms MS]
 *              [--activity-s S] [--ca-file FILE --tls-ports PORT,...]
 *   --ports      where the edges listen; whoever starts this program keeps them from being used by others
 *   --tls-ports  connect with TLS to these ports, behind which the edges are, in the same order
 *   --restarts   how often all edges are killed and started again
 *   --idle-ms    how long nothing is done, to see what that costs
 *   --activity-s silence before a client pings
 */
#include <birdrealtime.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scale.h"

enum { PORTS_MAX = 64, DEADLINE_MS = 120000, LOUD = 0, FLOODED_EVENTS_MIN = 20000 };

/* One client of the program. */
struct guest {
    size_t index;
    bird_client *client;
    bird_channel *channel;
    uint64_t connected_ms;
    uint64_t due_ms; /* the planned attempt; 0: none is planned */
    int short_lives;
};

/* What the handlers have seen; guarded by `lock`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static size_t subscribed; /* since the last restart */
static size_t news;       /* events on all channels but the loud one */
static size_t loud_news;
static uint64_t ticks;
static struct spread spread;
static size_t undecided; /* delays after a connection of which it is not sure that it was short, or that it was not */
static int64_t earliest_ms, latest_ms; /* when attempts began, as seen here, before and after they were due */

static size_t count, port_count;
static struct guest *guests;
static bird_queue *queue;
static const char *mode = "loop";

void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("scale: ", stderr);
    vfprintf(stderr, format, arguments);
    fputs("\n", stderr);
    exit(1);
}

static void check(bird_status status, bird_error *error) {
    if (status != BIRD_OK)
        fail("%s: %s", bird_status_name(status), error != NULL ? bird_error_message(error) : "");
}

uint64_t clock_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- handlers ---- */

/* How long the connection lasted is seen here a little later than in the library. */
static bool note_life(struct guest *guest, uint64_t life_ms) {
    guest->short_lives = life_ms < SHORT_LIFE_MS ? guest->short_lives + 1 : 0;
    return life_ms < SHORT_LIFE_MS * 9 / 10 || life_ms > SHORT_LIFE_MS * 11 / 10;
}

static void on_state(const bird_record *record, void *user_data) {
    struct guest *guest = user_data;
    const bird_state_change *change = record->detail;
    uint64_t now = clock_ms();
    pthread_mutex_lock(&lock);
    if (change->current == BIRD_STATE_CONNECTED)
        guest->connected_ms = now;
    if (change->current == BIRD_STATE_UNAVAILABLE) {
        bool is_sure = change->previous != BIRD_STATE_CONNECTED || note_life(guest, now - guest->connected_ms);
        if (is_sure)
            spread_add(&spread, change->delay_ms, change->attempt, guest->short_lives);
        else
            undecided++;
        guest->due_ms = now + (uint64_t)change->delay_ms;
    }
    if (change->current == BIRD_STATE_CONNECTING && guest->due_ms != 0) {
        int64_t late_ms = (int64_t)(now - guest->due_ms);
        if (late_ms < earliest_ms)
            earliest_ms = late_ms;
        if (late_ms > latest_ms)
            latest_ms = late_ms;
        guest->due_ms = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void bump(size_t *counter, size_t target) {
    pthread_mutex_lock(&lock);
    if (++*counter == target)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    bump(&subscribed, count);
}

static size_t news_wanted;

static void on_news(const bird_record *record, void *user_data) {
    (void)record;
    const struct guest *guest = user_data;
    if (guest->index == LOUD)
        bump(&loud_news, 1);
    else
        bump(&news, news_wanted);
}

static void on_tick(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    pthread_mutex_lock(&lock);
    if (++ticks == FLOODED_EVENTS_MIN)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- waiting ---- */

static bool all_subscribed(void) {
    return subscribed >= count;
}

static bool all_news(void) {
    return news >= news_wanted;
}

static bool has_loud_news(void) {
    return loud_news >= 1;
}

static bool is_flooded(void) {
    return ticks >= FLOODED_EVENTS_MIN;
}

static bool holds(bool (*condition)(void)) {
    pthread_mutex_lock(&lock);
    bool result = condition();
    pthread_mutex_unlock(&lock);
    return result;
}

/* With a queue this thread is the one that dispatches. */
static void wait_dispatching(bool (*condition)(void), uint64_t deadline) {
    int32_t fd;
    check(bird_queue_fd(queue, &fd), NULL);
    while (!holds(condition) && clock_ms() < deadline) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        poll(&waiting, 1, (int)(deadline - clock_ms()));
        check(bird_queue_dispatch(queue, 0, NULL), NULL);
    }
}

/* How long it took, in milliseconds. */
static uint64_t wait_until(bool (*condition)(void), const char *what) {
    uint64_t start = clock_ms(), deadline = start + DEADLINE_MS;
    if (queue != NULL)
        wait_dispatching(condition, deadline);
    struct timespec until = {.tv_sec = (time_t)(deadline / 1000), .tv_nsec = (long)(deadline % 1000) * 1000000};
    pthread_mutex_lock(&lock);
    while (!condition() && pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC, &until) == 0) {
    }
    if (!condition())
        fail("%s: after %d s: %zu of %zu subscribed, %zu of %zu have the event, %llu ticks", what, DEADLINE_MS / 1000,
             subscribed, count, news, news_wanted, (unsigned long long)ticks);
    pthread_mutex_unlock(&lock);
    return clock_ms() - start;
}

/* ---- clients ---- */

static void create(struct guest *guest, bird_options *options, int port) {
    bird_error *error = NULL;
    uint64_t binding;
    char text[32];
    snprintf(text, sizeof text, "127.0.0.1:%d", port);
    check(bird_options_set(options, "ws_host", text, &error), error);
    check(bird_client_create(options, &guest->client, &error), error);
    snprintf(text, sizeof text, "news-%zu", guest->index);
    check(bird_client_subscribe(guest->client, guest->index == LOUD ? "loud" : text, 0, &guest->channel, &error),
          error);
    check(bird_client_observe(guest->client, 1u << BIRD_RECORD_STATE, on_state, guest, NULL, &binding, &error), error);
    check(
        bird_client_observe(guest->client, 1u << BIRD_RECORD_SUBSCRIBED, on_subscribed, guest, NULL, &binding, &error),
        error);
    check(bird_channel_bind(guest->channel, "news", on_news, guest, NULL, &binding, &error), error);
    if (guest->index == LOUD)
        check(bird_channel_bind(guest->channel, "tick", on_tick, guest, NULL, &binding, &error), error);
}

static void create_all(const int *ports, const char *ca_file) {
    bird_options *options;
    bird_error *error = NULL;
    check(bird_options_create(&options), NULL);
    check(bird_options_set(options, "app_key", "pk_scale", &error), error);
    if (ca_file != NULL)
        check(bird_options_set(options, "ca_file", ca_file, &error), error);
    else
        check(bird_options_set(options, "allow_insecure", "1", &error), error);
    if (strcmp(mode, "queue") == 0) {
        check(bird_queue_create(&queue), NULL);
        check(bird_options_set_queue(options, queue), NULL);
    } else {
        check(bird_options_set(options, "delivery", mode, &error), error);
    }
    for (size_t i = 0; i < count; i++)
        create(&guests[i], options, ports[i % port_count]);
    bird_options_destroy(options);
}

static uint64_t count_messages_sent(void) {
    uint64_t sent = 0;
    for (size_t i = 0; i < count; i++) {
        bird_statistics statistics = {.struct_size = sizeof statistics};
        check(bird_client_statistics(guests[i].client, &statistics), NULL);
        sent += statistics.messages_sent;
    }
    return sent;
}

/* ---- what is measured ---- */

static double per_client(size_t after, size_t before) {
    return ((double)after - (double)before) / (double)count;
}

static void connect_all(size_t resident_before, size_t files_before) {
    size_t resident_created = resident_bytes();
    bird_error *error = NULL;
    uint64_t start = clock_ms();
    for (size_t i = 0; i < count; i++)
        check(bird_client_connect(guests[i].client, &error), error);
    wait_until(all_subscribed, "connecting");
    printf(
        "\"connect_ms\": %llu, \"created_bytes\": %.0f, \"connected_bytes\": %.0f, \"threads\": %zu, \"files\": %.3f, ",
        (unsigned long long)(clock_ms() - start), per_client(resident_created, resident_before),
        per_client(resident_bytes(), resident_before), count_threads(), per_client(count_files(), files_before));
}

static void rest(uint64_t idle_ms, size_t resident_before) {
    uint64_t sent = count_messages_sent(), sleeps = count_sleeps(), cpu = cpu_us();
    struct timespec duration = {.tv_sec = (time_t)(idle_ms / 1000), .tv_nsec = (long)(idle_ms % 1000) * 1000000};
    while (nanosleep(&duration, &duration) != 0) {
    }
    cpu = cpu_us() - cpu;
    sleeps = count_sleeps() - sleeps;
    printf("\"idle_ms\": %llu, \"idle_cpu_us\": %llu, \"idle_wakeups\": %llu, \"pings\": %llu, \"idle_bytes\": %.0f, "
           "\"resident_bytes\": %zu, \"anonymous_bytes\": %zu, ",
           (unsigned long long)idle_ms, (unsigned long long)cpu, (unsigned long long)sleeps,
           (unsigned long long)(count_messages_sent() - sent), per_client(resident_bytes(), resident_before),
           resident_bytes(), anonymous_bytes());
}

static void restart(struct edges *edges) {
    pthread_mutex_lock(&lock);
    subscribed = 0;
    pthread_mutex_unlock(&lock);
    uint64_t start = clock_ms();
    edges_restart(edges);
    uint64_t down_ms = clock_ms() - start;
    wait_until(all_subscribed, "reconnecting");
    uint64_t back_ms = clock_ms() - start;
    struct arrivals arrivals = edges_arrivals(edges);
    printf("{\"down_ms\": %llu, \"back_ms\": %llu, \"accepted\": %zu, \"busiest_100ms\": %zu, \"first_ms\": %llu, "
           "\"median_ms\": %llu, \"last_ms\": %llu}",
           (unsigned long long)down_ms, (unsigned long long)back_ms, arrivals.accepted, arrivals.busiest,
           (unsigned long long)(arrivals.first_ms - start), (unsigned long long)(arrivals.median_ms - start),
           (unsigned long long)(arrivals.last_ms - start));
}

static void restart_often(struct edges *edges, int times) {
    printf("\"restarts\": [");
    for (int i = 0; i < times; i++) {
        printf("%s", i == 0 ? "" : ", ");
        restart(edges);
    }
    double distance = spread_distance(&spread);
    printf("], \"delays\": %zu, \"delays_guarded\": %zu, \"delays_undecided\": %zu, \"distance\": %.5f, "
           "\"earliest_ms\": %lld, \"latest_ms\": %lld, ",
           spread.count, spread.guarded, undecided, distance, (long long)earliest_ms, (long long)latest_ms);
}

/* One event for everybody; how long until all but the loud one have it. */
static uint64_t deliver(struct edges *edges) {
    pthread_mutex_lock(&lock);
    news = loud_news = 0;
    news_wanted = count - 1;
    pthread_mutex_unlock(&lock);
    edges_command(edges, SIZE_MAX, "event hello");
    return wait_until(all_news, "an event for everybody");
}

static void deliver_all(struct edges *edges) {
    uint64_t calm_ms = deliver(edges);
    wait_until(has_loud_news, "an event for the client that will be flooded");
    edges_command(edges, LOUD, "flood");
    wait_until(is_flooded, "a flood for one client");
    pthread_mutex_lock(&lock);
    uint64_t before = ticks;
    pthread_mutex_unlock(&lock);
    uint64_t start = clock_ms(), flood_ms = deliver(edges);
    wait_until(has_loud_news, "the event behind the flood");
    uint64_t loud_ms = clock_ms() - start;
    edges_command(edges, LOUD, "calm");
    pthread_mutex_lock(&lock);
    uint64_t flooded = ticks - before;
    size_t delivered = news + loud_news;
    pthread_mutex_unlock(&lock);
    printf("\"calm_ms\": %llu, \"flood_ms\": %llu, \"loud_ms\": %llu, \"flooded_events\": %llu, \"delivered\": %zu, ",
           (unsigned long long)calm_ms, (unsigned long long)flood_ms, (unsigned long long)loud_ms,
           (unsigned long long)flooded, delivered);
}

static void destroy_all(size_t files_before) {
    uint64_t start = clock_ms();
    for (size_t i = 0; i < count; i++) {
        bird_channel_release(guests[i].channel);
        check(bird_client_destroy(guests[i].client), NULL);
    }
    if (queue != NULL)
        check(bird_queue_destroy(queue), NULL);
    printf("\"destroy_ms\": %llu, \"threads_after\": %zu, \"files_after\": %.0f}\n",
           (unsigned long long)(clock_ms() - start), count_threads(), (double)count_files() - (double)files_before);
}

/* ---- arguments ---- */

static size_t parse_ports(char *text, int ports[PORTS_MAX]) {
    size_t found = 0;
    char *rest;
    for (char *word = strtok_r(text, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest)) {
        if (found == PORTS_MAX)
            fail("more than %d ports", PORTS_MAX);
        ports[found++] = atoi(word);
    }
    return found;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"clients", required_argument, NULL, 'n'},    {"mode", required_argument, NULL, 'm'},
        {"edge", required_argument, NULL, 'e'},       {"ports", required_argument, NULL, 'p'},
        {"restarts", required_argument, NULL, 'r'},   {"idle-ms", required_argument, NULL, 'i'},
        {"activity-s", required_argument, NULL, 'a'}, {"ca-file", required_argument, NULL, 'c'},
        {"tls-ports", required_argument, NULL, 't'},  {NULL, 0, NULL, 0}};
    int ports[PORTS_MAX], tls_ports[PORTS_MAX], restarts = 0, activity_timeout_s = 120;
    size_t tls_port_count = 0;
    uint64_t idle_ms = 1000;
    const char *edge = NULL, *ca_file = NULL;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'n':
            count = strtoul(optarg, NULL, 10);
            break;
        case 'm':
            mode = optarg;
            break;
        case 'e':
            edge = optarg;
            break;
        case 'p':
            port_count = parse_ports(optarg, ports);
            break;
        case 'r':
            restarts = atoi(optarg);
            break;
        case 'i':
            idle_ms = strtoull(optarg, NULL, 10);
            break;
        case 'a':
            activity_timeout_s = atoi(optarg);
            break;
        case 'c':
            ca_file = optarg;
            break;
        case 't':
            tls_port_count = parse_ports(optarg, tls_ports);
            break;
        default:
            return 2;
        }
    }
    if (count < 1 || edge == NULL || port_count == 0 || (ca_file != NULL && tls_port_count != port_count))
        fail("--clients, --edge and --ports are needed, and with --ca-file as many --tls-ports");

    /* libcurl's wake-up pairs, one for 64 connects at a time, and a moment with two files for one socket. */
    raise_file_limit(count + count / 16 + 256);
    signal(SIGPIPE, SIG_IGN);
    pthread_cond_init(&changed, NULL);
    guests = calloc(count, sizeof *guests);
    if (guests == NULL)
        fail("out of memory");
    for (size_t i = 0; i < count; i++)
        guests[i].index = i;
    struct edges *edges = edges_start(edge, ports, port_count, activity_timeout_s);

    size_t resident_before = resident_bytes(), files_before = count_files();
    printf("{\"clients\": %zu, \"mode\": \"%s\", ", count, mode);
    create_all(ca_file != NULL ? tls_ports : ports, ca_file);
    connect_all(resident_before, files_before);
    rest(idle_ms, resident_before);
    restart_often(edges, restarts);
    deliver_all(edges);
    destroy_all(files_before);
    edges_stop(edges);
    free(spread.places);
    free(guests);
    return 0;
}
