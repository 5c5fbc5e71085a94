/*
 * Signs in as a member and prints the events sent to that member. Ends when the edge refuses the connection (it does so
 * when the member is disconnected on purpose), or with Ctrl-C.
 *
 *     signin APP_KEY EDGE MEMBER_AUTH_ENDPOINT TOKEN
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. The endpoint learns who asks from the header
 * "Authorization: Bearer TOKEN"; a local edge takes a member id as the token.
 */
#include <birdrealtime.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNIN_TAG 1

static sem_t refused;

static void check(bird_status status, bird_error **error) {
    if (status != BIRD_OK) {
        fprintf(stderr, "%s: %s\n", bird_status_name(status),
                *error != NULL ? bird_error_message(*error) : bird_status_message(status));
        exit(1);
    }
}

/* The handlers run on a thread of the library, one at a time, while main waits. */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
    if (change->current == BIRD_STATE_FAILED) {
        sem_post(&refused);
    }
}

/* The end of the one call that main makes. */
static void on_completion(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_completion *completion = record->detail;
    if (record->operation_tag == SIGNIN_TAG && completion->status != BIRD_OK) {
        printf("no signin: %s\n", bird_error_message(completion->error));
    }
}

/* Every signin: that of the call, and one after each reconnect. */
static void on_signed_in(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_member *member = record->detail;
    printf("signed in as %s\n", member->id);
}

static void on_event(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("for me: %s %s\n", record->event, record->data);
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: signin APP_KEY EDGE MEMBER_AUTH_ENDPOINT TOKEN\n");
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
    check(bird_options_set(options, "member_auth_endpoint", arguments[3], &error), &error);
    char authorization[256];
    snprintf(authorization, sizeof authorization, "Bearer %s", arguments[4]);
    check(bird_options_set_auth_header(options, "Authorization", authorization, &error), &error);
    check(bird_client_create(options, &client, &error), &error);
    bird_options_destroy(options);

    const struct {
        uint32_t kind;
        bird_handler handler;
    } observers[] = {
        {BIRD_RECORD_STATE, on_state},
        {BIRD_RECORD_COMPLETION, on_completion},
        {BIRD_RECORD_SIGNED_IN, on_signed_in},
    };
    uint64_t binding;
    for (size_t i = 0; i < sizeof observers / sizeof *observers; i++) {
        check(bird_client_observe(client, 1u << observers[i].kind, observers[i].handler, NULL, NULL, &binding, &error),
              &error);
    }
    bird_channel *member = NULL;
    check(bird_client_member_channel(client, &member), &error);
    check(bird_channel_bind(member, NULL, on_event, NULL, NULL, &binding, &error), &error);
    check(bird_client_connect(client, &error), &error);
    check(bird_client_signin(client, 0, SIGNIN_TAG, &error), &error);

    sem_wait(&refused);
    bird_channel_release(member);
    bird_client_destroy(client);
    return 0;
}
