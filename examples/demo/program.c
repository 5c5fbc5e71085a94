/*
 * The demo's program in C: subscribes to a public, a private and a presence channel, signs in as a member and prints what comes, one
 * line each. Lines from stdin go to the others on the private channel as the client event "client-said". Ends when the edge
 * refuses the connection.
 *
 *     program APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT MEMBER_ID
 *
 * The examples in examples/c show one thing each.
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

static void on_status(const bird_record *record, void *user_data) {
    (void)user_data;
    switch (record->kind) {
    case BIRD_RECORD_STATE: {
        const bird_state_change *change = record->detail;
        printf("%s\n", bird_state_name(change->current));
        is_refused = change->current == BIRD_STATE_FAILED;
        break;
    }
    case BIRD_RECORD_SUBSCRIBED: {
        const bird_subscription *subscription = record->detail;
        printf("subscribed %s", record->channel_name);
        if (subscription->member_count > 0) {
            printf(" as %s, %u here", subscription->my_id, subscription->member_count);
        }
        printf("\n");
        break;
    }
    case BIRD_RECORD_SUBSCRIPTION_ERROR: {
        const bird_subscription *subscription = record->detail;
        printf("not on %s: %s\n", record->channel_name, bird_error_message(subscription->error));
        break;
    }
    case BIRD_RECORD_SIGNED_IN: {
        const bird_member *member = record->detail;
        printf("signed in as %s\n", member->id);
        break;
    }
    case BIRD_RECORD_SIGNIN_ERROR:
    case BIRD_RECORD_ERROR: {
        const bird_failure *failure = record->detail;
        printf("error %d %s\n", bird_error_code(failure->error), bird_error_message(failure->error));
        break;
    }
    default:
        break;
    }
}

static void on_event(const bird_record *record, void *user_data) {
    const char *channel = user_data;
    printf("event %s %s %s\n", channel, record->event, record->data);
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
        fprintf(stderr, "usage: program APP_KEY EDGE AUTH_ENDPOINT MEMBER_AUTH_ENDPOINT MEMBER_ID\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    char authorization[256];
    snprintf(authorization, sizeof authorization, "Bearer %s", arguments[5]);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_queue *queue = NULL;
    bird_client *client = NULL;
    check(bird_queue_create(&queue), &error);
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, "ws_host", arguments[2], &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set(options, "auth_endpoint", arguments[3], &error), &error);
    check(bird_options_set(options, "member_auth_endpoint", arguments[4], &error), &error);
    check(bird_options_set_auth_header(options, "Authorization", authorization, &error), &error);
    check(bird_options_set_queue(options, queue), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    const uint64_t kinds = 1u << BIRD_RECORD_STATE | 1u << BIRD_RECORD_SUBSCRIBED |
                           1u << BIRD_RECORD_SUBSCRIPTION_ERROR | 1u << BIRD_RECORD_SIGNED_IN |
                           1u << BIRD_RECORD_SIGNIN_ERROR | 1u << BIRD_RECORD_ERROR;
    uint64_t binding;
    check(bird_client_observe(client, kinds, on_status, NULL, NULL, &binding, &error), &error);

    static char *const names[] = {"orders", "private-ledger", "presence-lobby", "me"};
    bird_channel *channels[4];
    for (size_t i = 0; i < 3; i++) {
        check(bird_client_subscribe(client, names[i], 0, &channels[i], &error), &error);
    }
    check(bird_client_member_channel(client, &channels[3]), &error);
    for (size_t i = 0; i < 4; i++) {
        check(bird_channel_bind(channels[i], NULL, on_event, names[i], NULL, &binding, &error), &error);
    }
    check(bird_client_connect(client, &error), &error);
    check(bird_client_signin(client, 0, 0, &error), &error);

    int32_t queue_fd = -1;
    check(bird_queue_fd(queue, &queue_fd), &error);
    struct pollfd waiting[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = queue_fd, .events = POLLIN}};
    setvbuf(stdin, NULL, _IONBF, 0); /* or poll would not see the lines that stdio has read ahead */
    while (!is_refused && poll(waiting, 2, -1) > 0) {
        if (waiting[1].revents != 0) {
            size_t dispatched;
            check(bird_queue_dispatch(queue, 0, &dispatched), &error);
        }
        if (waiting[0].revents != 0) {
            char line[1024];
            if (fgets(line, sizeof line, stdin) != NULL) {
                say(channels[1], line);
            } else {
                waiting[0].fd = -1; /* no more input; events may still come */
            }
        }
    }

    for (size_t i = 0; i < 4; i++) {
        bird_channel_release(channels[i]);
    }
    bird_client_destroy(client);
    bird_queue_destroy(queue);
    return 0;
}
