/*
 * A hundred clients, and one thread that takes the records of all of them from one queue. Counts the events of a channel that all clients
 * subscribe to, and tells the counts at each line of input. Ends with the input, or when the edge refuses a connection.
 *
 *     queue APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge.
 */
#include <birdrealtime.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CLIENTS = 100, BATCHES_MAX = 16 };

static bird_client *clients[CLIENTS];
static bird_channel *channels[CLIENTS];
static unsigned long events[CLIENTS];
static int subscribed;
static bool is_refused;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

static void take(const bird_record *record) {
    switch (record->kind) {
    case BIRD_RECORD_STATE: {
        const bird_state_change *change = record->detail;
        if (change->current == BIRD_STATE_FAILED) {
            fprintf(stderr, "client %llu was refused: %s\n", (unsigned long long)record->client_tag,
                    change->reason_text);
            is_refused = true;
        }
        subscribed -= change->previous == BIRD_STATE_CONNECTED;
        break;
    }
    case BIRD_RECORD_SUBSCRIBED:
        if (++subscribed == CLIENTS) {
            printf("%d clients are subscribed\n", subscribed);
        }
        break;
    case BIRD_RECORD_EVENT:
        events[record->client_tag]++;
        break;
    default: /* later versions may have others */
        break;
    }
}

/* A batch holds records of one client. What they point to lives until it is released. After a number of batches it is the input's turn: a
   flood may fill the queue as fast as it is drained, and the fd stays readable. */
static void drain(bird_queue *queue) {
    bird_error *error = NULL;
    bird_batch *batch;
    const bird_record *record;
    size_t count, stride;
    for (int batches = 0; batches < BATCHES_MAX; batches++) {
        check(bird_queue_drain(queue, &batch, &record, &count, &stride), &error);
        if (count == 0) {
            return;
        }
        for (; count > 0; count--) {
            take(record);
            record = (const bird_record *)((const char *)record + stride);
        }
        check(bird_batch_release(batch), &error);
    }
}

static void tell(void) {
    unsigned long least = events[0], most = events[0];
    for (int i = 1; i < CLIENTS; i++) {
        least = events[i] < least ? events[i] : least;
        most = events[i] > most ? events[i] : most;
    }
    printf("each client had %lu to %lu events\n", least, most);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: queue APP_KEY EDGE CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_queue *queue = NULL;
    check(bird_queue_create(&queue), &error);
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set_queue(options, queue), &error);
    for (uint64_t i = 0; i < CLIENTS; i++) {
        check(bird_options_set_tag(options, i), &error);
        check(bird_client_create(options, &clients[i], &error), &error);
        check(bird_client_subscribe(clients[i], arguments[3], 0, &channels[i], &error), &error);
        check(bird_client_connect(clients[i], &error), &error);
    }
    bird_options_destroy(options);

    int32_t queue_fd;
    check(bird_queue_fd(queue, &queue_fd), &error);
    struct pollfd waiting[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = queue_fd, .events = POLLIN}};
    setvbuf(stdin, NULL, _IONBF, 0); /* or poll would not see the lines that stdio has read ahead */
    bool is_input_open = true;
    while (is_input_open && !is_refused && poll(waiting, 2, -1) > 0) {
        if (waiting[1].revents != 0) {
            drain(queue);
        }
        if (waiting[0].revents != 0) {
            char line[1024];
            is_input_open = fgets(line, sizeof line, stdin) != NULL;
            if (is_input_open) {
                tell();
            }
        }
    }

    for (int i = 0; i < CLIENTS; i++) {
        bird_channel_release(channels[i]);
        bird_client_destroy(clients[i]);
    }
    bird_queue_destroy(queue);
    return is_refused ? 1 : 0;
}
