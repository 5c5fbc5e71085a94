/*
 * Keeps a log of what the client does: a new file each day, seven of them, with everything; what went wrong is printed as
 * well. It ends when the edge refuses the connection, or with Ctrl-C.
 *
 *     rolling_log APP_KEY EDGE FILE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. Older files are FILE.1, FILE.2, ...
 */
#include <birdrealtime.h>
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

/* On any thread: it only prints, and calls nothing that takes a handle. */
static void on_entry(const bird_log_entry *entry, void *user_data) {
    (void)user_data;
    printf("%s in %s: %s\n", bird_log_level_name(entry->level), bird_log_area_name(entry->area), entry->message);
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: rolling_log APP_KEY EDGE FILE CHANNEL\n");
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
    check(bird_options_set(options, "log_file", arguments[3], &error), &error);
    check(bird_options_set(options, "log_file_level", "verbose", &error), &error);
    check(bird_options_set_int(options, "log_file_age_max_ms", 24 * 60 * 60 * 1000, &error), &error);
    check(bird_options_set_int(options, "log_files_kept", 7, &error), &error);
    check(bird_options_set(options, "log_level", "warn", &error), &error);
    check(bird_options_set_log(options, on_entry, NULL, NULL), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);
    check(bird_client_subscribe(client, arguments[4], 0, &channel, &error), &error);
    check(bird_client_connect(client, &error), &error);

    /* BIRD_ERR_REFUSED: the edge does not want this client. */
    while (bird_client_wait(client, BIRD_STATE_FAILED, -1) != BIRD_OK) {
    }
    bird_channel_release(channel);
    bird_client_destroy(client);
    return 0;
}
