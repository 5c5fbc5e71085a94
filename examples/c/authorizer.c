/*
 * Authorizes its channel itself instead of asking an endpoint: prints what has to be signed and reads the signature from
 * stdin, as a program would ask its key store. An empty line refuses. Ends when the edge refuses the connection, or with
 * Ctrl-C.
 *
 *     authorizer APP_KEY EDGE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. For each question the program prints
 *     sign CONNECTION_ID:CHANNEL
 * and waits for a line APP_KEY:HEX, where HEX is the HMAC-SHA256 of that text with the app's secret. A presence channel
 * needs MEMBER_DATA as well, behind a blank, and the signature of CONNECTION_ID:CHANNEL:MEMBER_DATA.
 */
#include <birdrealtime.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sem_t refused;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

/*
 * The question comes again for every connection, since a signature is good for one only. This handler may block, because it
 * runs on a thread of the library's pool; a program could as well keep the request and answer from any thread later.
 */
static void on_request(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_question *question = record->detail;
    printf("sign %s:%s\n", question->connection_id, question->channel_name);

    char line[4096] = "";
    if (fgets(line, sizeof line, stdin) == NULL || line[0] == '\n') {
        bird_request_fail(question->request, 0, "no signature was given", NULL);
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    char *member_data = strchr(line, ' ');
    if (member_data != NULL) {
        *member_data++ = '\0';
    }
    const bird_status status = bird_request_authorize(question->request, line, member_data, NULL, NULL);
    if (status != BIRD_OK) {
        printf("too late: %s\n", bird_status_message(status)); /* the connection or the deadline has gone */
    }
}

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    if (change->current == BIRD_STATE_FAILED) {
        sem_post(&refused);
    }
}

static void on_subscribed(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("subscribed to %s\n", record->channel_name);
}

static void on_refused(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_subscription *subscription = record->detail;
    printf("not on %s: %s\n", record->channel_name, bird_error_message(subscription->error));
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("%s: %s %s\n", record->channel_name, record->event, record->data);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: authorizer APP_KEY EDGE CHANNEL\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    sem_init(&refused, 0, 0);

    bird_error *error = NULL;
    bird_options *options = NULL;
    bird_client *client = NULL;
    check(bird_options_create(&options), &error);
    check(bird_options_set(options, "app_key", arguments[1], &error), &error);
    check(bird_options_set(options, strchr(edge, ':') != NULL ? "ws_host" : "region", edge, &error), &error);
    check(bird_options_set(options, "allow_insecure", "1", &error), &error);
    check(bird_options_set(options, "authorizer", "1", &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    uint64_t binding;
    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_observe(client, 1u << BIRD_RECORD_REQUEST, on_request, NULL, NULL, &binding, &error), &error);
    check(bird_client_subscribe(client, arguments[3], 0, &channel, &error), &error);
    check(bird_channel_bind(channel, "bird:subscription_succeeded", on_subscribed, NULL, NULL, &binding, &error),
          &error);
    check(bird_channel_bind(channel, "bird:subscription_error", on_refused, NULL, NULL, &binding, &error), &error);
    check(bird_channel_bind(channel, NULL, on_event, NULL, NULL, &binding, &error), &error);
    check(bird_client_connect(client, &error), &error);

    sem_wait(&refused);
    bird_channel_release(channel);
    bird_client_destroy(client);
    return 0;
}
