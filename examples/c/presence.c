/*
 * Shows who is on a presence channel, and passes lines from stdin to the others as the client event "client-said". A line is
 * JSON, such as {"text":"hello"}. Ends with the input, or when the edge refuses the connection.
 *
 *     presence APP_KEY EDGE AUTH_ENDPOINT TOKEN CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. The endpoint learns who asks from the header
 * "Authorization: Bearer TOKEN"; a local edge takes a member id as the token.
 *
 * The program has a poll loop of its own: the library tells it through a file descriptor that records wait, and the handlers
 * run on this thread when it dispatches them.
 */
#include <birdrealtime.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_refused;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    is_refused = change->current == BIRD_STATE_FAILED;
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    bird_error *error = NULL;
    bird_members *members = NULL;
    check(bird_channel_members(record->channel, &members), &error);
    const bird_subscription *subscription = record->detail;
    printf("here as %s, with %zu in all:\n", subscription->my_id, bird_members_count(members));
    for (size_t i = 0; i < bird_members_count(members); i++) {
        printf("  %s %s\n", bird_members_id(members, i), bird_members_info(members, i));
    }
    bird_members_free(members);
}

static void on_refused(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *subscription = record->detail;
    printf("not on %s: %s\n", record->channel_name, bird_error_message(subscription->error));
}

static void on_member(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_member *member = record->detail;
    printf("%s %s\n", record->kind == BIRD_RECORD_MEMBER_ADDED ? "joined:" : "left:", member->id);
}

static void on_said(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("said: %s\n", record->data);
}

static void say(bird_channel *channel, const char *line) {
    bird_error *error = NULL;
    if (bird_channel_trigger(channel, "client-said", line, BIRD_NUL, &error) != BIRD_OK) {
        printf("not said: %s\n", bird_error_message(error));
        bird_error_free(error);
    }
}

int main(int count, char **arguments) {
    if (count != 6) {
        fprintf(stderr, "usage: presence APP_KEY EDGE AUTH_ENDPOINT TOKEN CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_queue *queue = NULL;
    bird_client *client = NULL;
    check(bird_queue_create(&queue), &error);
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set(options, "auth_endpoint", arguments[3], &error), &error);
    char authorization[256];
    snprintf(authorization, sizeof authorization, "Bearer %s", arguments[4]);
    check(bird_options_set_auth_header(options, "Authorization", authorization, &error), &error);
    check(bird_options_set_queue(options, queue), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    uint64_t binding;
    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_subscribe(client, arguments[5], 0, &channel, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, &binding, &error),
          &error);
    check(bird_channel_bind(channel, "bird:subscription_error", on_refused, NULL, NULL, &binding, &error), &error);
    check(bird_channel_bind(channel, "bird:member_added", on_member, NULL, NULL, &binding, &error), &error);
    check(bird_channel_bind(channel, "bird:member_removed", on_member, NULL, NULL, &binding, &error), &error);
    check(bird_channel_bind(channel, "client-said", on_said, NULL, NULL, &binding, &error), &error);
    check(bird_client_connect(client, &error), &error);

    int32_t queue_fd = -1;
    check(bird_queue_fd(queue, &queue_fd), &error);
    struct pollfd waiting[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = queue_fd, .events = POLLIN}};
    setvbuf(stdin, NULL, _IONBF, 0); /* or poll would not see the lines that stdio has read ahead */
    bool is_input_open = true;
    while (is_input_open && !is_refused && poll(waiting, 2, -1) > 0) {
        if (waiting[1].revents != 0) {
            size_t dispatched;
            check(bird_queue_dispatch(queue, 0, &dispatched), &error);
        }
        if (waiting[0].revents != 0) {
            char line[1024];
            is_input_open = fgets(line, sizeof line, stdin) != NULL;
            if (is_input_open) {
                say(channel, line);
            }
        }
    }

    bird_channel_release(channel);
    if (!is_refused) {
        check(bird_client_close(client, 5000), &error); /* sends what was said last */
    }
    bird_client_destroy(client);
    bird_queue_destroy(queue);
    return 0;
}
