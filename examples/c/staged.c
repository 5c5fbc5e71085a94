/*
 * Reconnects in stages, asks itself before every attempt, gives up after so many, and prints all that it is told. Enter tries
 * now, whatever the schedule says, also after it has given up; the end of the input ends it.
 *
 *     staged APP_KEY EDGE STAGES ATTEMPTS_MAX
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. STAGES are attempts x milliseconds, such as 5x3000,5x9000,5x15000;
 * with ATTEMPTS_MAX 0 it never gives up.
 */
#include <birdrealtime.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                error != NULL && *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

/* The handlers run on a thread of the library, one at a time, while main waits for Enter. */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s: %s\n", bird_state_name(change->current), change->reason_text);
}

/* Once for each connection that is lost, however many attempts follow. */
static void on_lost(const bird_record *record, void *user_data) {
    (void)record;
    (void)user_data;
    printf("the connection is lost\n");
}

/* Before every attempt. */
static void on_connecting_in(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *plan = record->detail;
    printf("attempt %d in %lld ms (%s)\n", plan->attempt, (long long)plan->delay_ms, plan->policy);
}

/* The attempt is due: may it begin? A program would look at its battery or its data plan here; this one skips the first. An
   answer is due within a second, and may also come from another thread. */
static void on_request(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    const bool is_allowed = question->attempt > 1;
    printf("attempt %d %s, after: %s\n", question->attempt, is_allowed ? "goes ahead" : "is skipped",
           bird_error_message(question->cause));
    if (is_allowed) {
        bird_request_proceed(question->request, 0, NULL);
    } else {
        bird_request_fail(question->request, 0, "not the first", NULL);
    }
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: staged APP_KEY EDGE STAGES ATTEMPTS_MAX\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_client *client = NULL;
    check(bird_options_create(&options), NULL);
    const struct {
        const char *key, *value;
    } settings[] = {
        {"app_key", arguments[1]},
        {strchr(edge, ':') != NULL ? "ws_host" : "region", edge},
        {"allow_insecure", "1"},
        {"preset", "staged"}, /* pings after 20 s, two of which may be missed, and attempts in stages */
        {"reconnect_stages", arguments[3]},
        {"reconnect_attempts_max", arguments[4]},
        {"may_reconnect", "1"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        check(bird_options_set(options, settings[i].key, settings[i].value, &error), &error);
    }
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    const struct {
        uint32_t kind;
        bird_handler handler;
    } observers[] = {
        {BIRD_RECORD_STATE, on_state},
        {BIRD_RECORD_CONNECTION_LOST, on_lost},
        {BIRD_RECORD_CONNECTING_IN, on_connecting_in},
        {BIRD_RECORD_REQUEST, on_request},
    };
    for (size_t i = 0; i < sizeof observers / sizeof *observers; i++) {
        check(bird_client_observe(client, 1u << observers[i].kind, observers[i].handler, NULL, NULL, NULL, &error),
              &error);
    }
    check(bird_client_connect(client, &error), &error);

    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        int32_t state;
        check(bird_client_state(client, &state), NULL);
        if (state == BIRD_STATE_UNAVAILABLE) {
            check(bird_client_retry_now(client), NULL);
        } else {
            check(bird_client_connect(client, &error), &error); /* it has given up, or there is nothing to do */
        }
    }
    bird_client_destroy(client);
    return 0;
}
