/*
 * Prints the events of a channel from within the program's own epoll loop: with a literal address as the edge, the whole program is one
 * thread. Ends with the input, or when the edge refuses the connection.
 *
 *     epoll APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. While a name is looked up there is a second thread.
 */
#include <birdrealtime.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool is_refused;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

/* The handlers run inside bird_loop_run_once(). */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    is_refused = change->current == BIRD_STATE_FAILED;
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("subscribed to %s\n", record->channel_name);
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

static void watch(int epoll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        perror("epoll_ctl");
        exit(1);
    }
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: epoll APP_KEY EDGE CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_loop *loop = NULL;
    bird_client *client = NULL;
    check(bird_loop_create(&loop), &error);
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set(options, "delivery", "loop", &error), &error);
    check(bird_options_set_loop(options, loop), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    uint64_t binding;
    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_subscribe(client, arguments[3], 0, &channel, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, &binding, &error),
          &error);
    check(bird_channel_bind(channel, NULL, on_event, NULL, NULL, &binding, &error), &error);
    check(bird_client_connect(client, &error), &error);

    /* The library's fd is readable when there is something to do, a reconnect or a ping that is due included. */
    int32_t loop_fd;
    check(bird_loop_fd(loop, &loop_fd), &error);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0) {
        perror("epoll_create1");
        return 1;
    }
    watch(epoll, STDIN_FILENO);
    watch(epoll, loop_fd);
    bool is_input_open = true;
    while (is_input_open && !is_refused) {
        struct epoll_event ready[2];
        int ready_count = epoll_wait(epoll, ready, 2, -1);
        for (int i = 0; i < ready_count; i++) {
            if (ready[i].data.fd == loop_fd) {
                check(bird_loop_run_once(loop, 0), &error);
            } else {
                char input[1024];
                is_input_open = read(STDIN_FILENO, input, sizeof input) > 0;
            }
        }
    }

    close(epoll);
    bird_channel_release(channel);
    if (!is_refused) {
        check(bird_client_close(client, 5000), &error); /* runs the loop until the edge has answered */
    }
    bird_client_destroy(client);
    bird_loop_destroy(loop);
    return 0;
}
