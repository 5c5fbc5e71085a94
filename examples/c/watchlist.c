/*
 * Signs in as a member and prints who comes online and who goes offline of the members that this one watches: the list is
 * part of what the backend signs for the signin. Each line of input signs in again, which is how a changed list gets to the
 * edge; the end of the input ends it.
 *
 *     watchlist APP_KEY EDGE MEMBER_AUTH_ENDPOINT TOKEN
 *
 * EDGE is a region (us1, eu1), or host:port of a local edge. The endpoint learns who asks from the header
 * "Authorization: Bearer TOKEN"; a local edge takes a member id as the token.
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

/* The handlers run on a thread of the library, one at a time, while main reads. */

static void on_state(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_state_change *change = record->detail;
    printf("%s %s\n", bird_state_name(change->current), change->reason_text);
}

static void on_signed_in(const bird_record *record, void *user_data) {
    (void)user_data;
    printf("signed in as %s\n", ((const bird_member *)record->detail)->id);
}

/* After a signin "online" and "offline" name everybody on the list, later those whose status changes. */
static void on_watchlist(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_watchlist *watchlist = record->detail;
    printf("%s:", record->event);
    for (uint32_t i = 0; i < watchlist->id_count; i++) {
        printf(" %s", watchlist->ids[i]);
    }
    printf("\n");
}

/* Code 4302: the list was too long, and the edge watches the first of it. */
static void on_error(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_error *error = ((const bird_failure *)record->detail)->error;
    printf("error %d: %s\n", bird_error_code(error), bird_error_message(error));
}

int main(int count, char **arguments) {
    if (count != 5) {
        fprintf(stderr, "usage: watchlist APP_KEY EDGE MEMBER_AUTH_ENDPOINT TOKEN\n");
        return 2;
    }
    const char *edge = arguments[2];
    setvbuf(stdout, NULL, _IOLBF, 0);

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
        {BIRD_RECORD_SIGNED_IN, on_signed_in},
        {BIRD_RECORD_WATCHLIST, on_watchlist},
        {BIRD_RECORD_ERROR, on_error},
    };
    for (size_t i = 0; i < sizeof observers / sizeof *observers; i++) {
        check(bird_client_observe(client, 1u << observers[i].kind, observers[i].handler, NULL, NULL, NULL, &error),
              &error);
    }
    check(bird_client_connect(client, &error), &error);
    check(bird_client_signin(client, 0, 0, &error), &error);

    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        check(bird_client_signin(client, BIRD_SIGNIN_REFRESH, 0, &error), &error);
    }
    bird_client_destroy(client);
    return 0;
}
