/*
 * Sends a token that does not live long with each authorization: whoever renews it writes it into a file, and the file is read
 * whenever a header is needed. Ends when the edge refuses the connection, or with Ctrl-C.
 *
 *     headers APP_KEY EDGE AUTH_ENDPOINT TOKEN_FILE CHANNEL
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge; AUTH_ENDPOINT is the URL of the backend that authorizes CHANNEL for
 * those who show the token.
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

/* Asked before every POST. This handler may block, because it runs on a thread of the library's pool. */
static void on_request(const bird_record *record, void *token_file) {
    const bird_question *question = record->detail;
    char line[4096] = "";
    FILE *file = fopen(token_file, "r");
    const int has_token = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        fclose(file);
    }
    if (!has_token) {
        printf("no token for %s yet\n", question->endpoint);
        bird_request_fail(question->request, 1, "there is no token", NULL); /* 1: ask again later */
        return;
    }
    line[strcspn(line, "\n")] = '\0';
    char value[sizeof line + 8];
    snprintf(value, sizeof value, "Bearer %s", line);
    const bird_header header = {"Authorization", value};
    bird_error *error = NULL;
    if (bird_request_headers(question->request, &header, 1, &error) == BIRD_OK) {
        printf("a token for %s\n", question->endpoint);
    } else {
        printf("not sent: %s\n", bird_error_message(error));
        bird_request_fail(question->request, 0, "the token is no header value", NULL);
    }
    bird_error_free(error);
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
    if (count != 6) {
        fprintf(stderr, "usage: headers APP_KEY EDGE AUTH_ENDPOINT TOKEN_FILE CHANNEL\n");
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
    check(bird_options_set(options, "auth_endpoint", arguments[3], &error), &error);
    check(bird_options_set(options, "header_provider", "1", &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    uint64_t binding;
    bird_channel *channel = NULL;
    check(bird_client_observe(client, 1u << BIRD_RECORD_STATE, on_state, NULL, NULL, &binding, &error), &error);
    check(bird_client_observe(client, 1u << BIRD_RECORD_REQUEST, on_request, arguments[4], NULL, &binding, &error),
          &error);
    check(bird_client_subscribe(client, arguments[5], 0, &channel, &error), &error);
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
