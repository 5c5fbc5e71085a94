/*
 * Prints the events of a channel from within a libuv loop. Ends with Ctrl-C, or when the edge refuses the connection.
 *
 *     libuv APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge.
 *
 *     gcc libuv.c $(pkg-config --cflags --libs birdrealtime libuv)
 */
#include <birdrealtime.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

static uv_poll_t library;
static uv_signal_t interrupt, termination;
static bird_loop *loop;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

static void check_uv(int result) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", uv_err_name(result), uv_strerror(result));
        exit(1);
    }
}

/* The handlers run inside bird_loop_run_once(), and so on the thread of uv_run(). */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    if (change->current == BIRD_STATE_FAILED) {
        uv_stop(uv_default_loop());
    }
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("subscribed to %s\n", record->channel_name);
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

/* Timers of the library make its fd readable too: libuv needs none for it. */
static void on_ready(uv_poll_t *handle, int status, int events) {
    (void)handle;
    (void)events;
    bird_error *error = NULL;
    check_uv(status);
    check(bird_loop_run_once(loop, 0), &error);
}

static void on_signal(uv_signal_t *handle, int number) {
    (void)number;
    uv_stop(handle->loop);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: libuv APP_KEY EDGE CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
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

    int32_t loop_fd;
    check(bird_loop_fd(loop, &loop_fd), &error);
    uv_loop_t *uv = uv_default_loop();
    check_uv(uv_poll_init(uv, &library, loop_fd));
    check_uv(uv_poll_start(&library, UV_READABLE, on_ready));
    check_uv(uv_signal_init(uv, &interrupt));
    check_uv(uv_signal_start(&interrupt, on_signal, SIGINT));
    check_uv(uv_signal_init(uv, &termination));
    check_uv(uv_signal_start(&termination, on_signal, SIGTERM));
    uv_run(uv, UV_RUN_DEFAULT);

    /* libuv first lets go of the fd, which ends with the loop. */
    uv_close((uv_handle_t *)&library, NULL);
    uv_close((uv_handle_t *)&interrupt, NULL);
    uv_close((uv_handle_t *)&termination, NULL);
    uv_run(uv, UV_RUN_DEFAULT);
    check_uv(uv_loop_close(uv));
    bird_channel_release(channel);
    bird_client_destroy(client);
    bird_loop_destroy(loop);
    return 0;
}
