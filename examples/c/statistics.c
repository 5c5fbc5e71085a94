/*
 * Subscribes to a channel and tells, for each line of its input, what the client has done so far: a few counters, and for
 * the line "dump" all that a bug report should say. It ends with its input.
 *
 *     statistics APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge.
 */
#include <birdrealtime.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

static void print_statistics(bird_client *client) {
    bird_statistics s = {.struct_size = sizeof s};
    if (bird_client_statistics(client, &s) == BIRD_OK) {
        printf("%" PRIu64 " of %" PRIu64 " channels, %" PRIu64 " events in %" PRIu64 " messages, %" PRIu64
               " reconnects, %" PRIu64 " dropped\n",
               s.channels_subscribed, s.channels, s.events_delivered, s.messages_received, s.reconnects,
               s.events_dropped);
    }
}

static void print_dump(bird_client *client) {
    char text[65536];
    size_t length;
    if (bird_client_dump(client, text, sizeof text, &length) == BIRD_OK) {
        puts(text);
    }
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: statistics APP_KEY EDGE CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);
    check(bird_client_subscribe(client, arguments[3], 0, &channel, &error), &error);
    check(bird_client_connect(client, &error), &error);

    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (strcmp(line, "dump\n") == 0) {
            print_dump(client);
        } else {
            print_statistics(client);
        }
    }
    bird_channel_release(channel);
    bird_client_destroy(client);
    return 0;
}
