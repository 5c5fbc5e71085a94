#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "soak.h"

static void sign(const char *text, char *auth, size_t size) {
    crypto_auth_hmacsha256_state state;
    unsigned char digest[crypto_auth_hmacsha256_BYTES];
    char hexadecimal[2 * sizeof digest + 1];
    crypto_auth_hmacsha256_init(&state, (const unsigned char *)settings.app_secret, strlen(settings.app_secret));
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)text, strlen(text));
    crypto_auth_hmacsha256_final(&state, digest);
    sodium_bin2hex(hexadecimal, sizeof hexadecimal, digest, sizeof digest);
    snprintf(auth, size, "%s:%s", settings.app_key, hexadecimal);
}

static bird_status authorize(struct slot *slot, const struct late_answer *asked) {
    char member[TEXT_BYTES_MAX], text[3 * TEXT_BYTES_MAX], auth[TEXT_BYTES_MAX], secret[64];
    const bool is_signin = asked->kind == BIRD_REQUEST_AUTHORIZE_MEMBER;
    const bool has_member = is_signin || strncmp(asked->channel_name, "presence-", 9) == 0;
    snprintf(member, sizeof member, "{\"member_id\":\"m_%u\",\"member_info\":{\"name\":\"Noor\"}}", slot->index);
    snprintf(text, sizeof text, "%s:%s%s%s", asked->connection_id, is_signin ? ":member" : asked->channel_name,
             has_member ? ":" : "", has_member ? member : "");
    sign(text, auth, sizeof auth);

    crypto_hash_sha256_state state;
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)asked->channel_name, strlen(asked->channel_name));
    crypto_hash_sha256_update(&state, (const unsigned char *)settings.master_key, strlen(settings.master_key));
    crypto_hash_sha256_final(&state, digest);
    sodium_bin2base64(secret, sizeof secret, digest, sizeof digest, sodium_base64_VARIANT_ORIGINAL);
    const bool is_encrypted = strncmp(asked->channel_name, "private-encrypted-", 18) == 0;
    return bird_request_authorize(asked->request, auth, has_member ? member : NULL, is_encrypted ? secret : NULL, NULL);
}

static void answer(struct slot *slot, const struct late_answer *asked) {
    bird_status status = BIRD_OK;
    if (asked->kind == BIRD_REQUEST_HEADERS) {
        const bird_header header = {.name = "X-Soak", .value = "1"};
        status = bird_request_headers(asked->request, &header, 1, NULL);
    } else if (asked->kind == BIRD_REQUEST_RECONNECT) {
        status = bird_request_proceed(asked->request, 20, NULL);
    } else {
        status = authorize(slot, asked);
    }
    if (status != BIRD_OK && status != BIRD_ERR_ANSWERED && status != BIRD_ERR_HANDLE && status != BIRD_ERR_CLOSED)
        fail("the answer to a request of kind %d returned %s", asked->kind, bird_status_name(status));
}

/* False: there is no room. */
static bool put_off(struct slot *slot, const struct late_answer *asked) {
    pthread_mutex_lock(&slot->lock);
    const bool has_room = slot->answers_count < ANSWERS_MAX;
    if (has_room)
        slot->answers[slot->answers_count++] = *asked;
    pthread_mutex_unlock(&slot->lock);
    return has_room;
}

void answers_take(struct slot *slot, const bird_question *question) {
    struct late_answer asked = {.request = question->request, .kind = question->request_kind};
    snprintf(asked.connection_id, sizeof asked.connection_id, "%s", question->connection_id);
    snprintf(asked.channel_name, sizeof asked.channel_name, "%s", question->channel_name);
    atomic_fetch_add(&counters.requests, 1);
    const int64_t how = atomic_load(&is_calm) ? 0 : chance_between(&slot->handler_chance, 0, 99);
    if (how < 65) {
        answer(slot, &asked);
    } else if (how < 85) {
        if (!put_off(slot, &asked))
            answer(slot, &asked);
    } else if (how < 95) {
        const bird_status status = bird_request_fail(question->request, how < 92, "soak", NULL);
        if (status != BIRD_OK && status != BIRD_ERR_ANSWERED && status != BIRD_ERR_HANDLE && status != BIRD_ERR_CLOSED)
            fail("bird_request_fail returned %s", bird_status_name(status));
    } else {
        atomic_fetch_add(&counters.requests_unanswered, 1);
    }
}

void answers_give(struct slot *slot) {
    struct late_answer asked;
    pthread_mutex_lock(&slot->lock);
    const bool is_waiting = slot->answers_count > 0;
    if (is_waiting)
        asked = slot->answers[--slot->answers_count];
    pthread_mutex_unlock(&slot->lock);
    if (is_waiting)
        answer(slot, &asked);
}
