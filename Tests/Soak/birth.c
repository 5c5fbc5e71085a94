#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

static void set(bird_options *options, const char *key, const char *value) {
    bird_error *error = NULL;
    if (bird_options_set(options, key, value, &error) != BIRD_OK)
        fail("option %s=%s: %s", key, value, bird_error_message(error));
}

static void set_between(struct chance *chance, bird_options *options, const char *key, int64_t low, int64_t high) {
    bird_error *error = NULL;
    if (bird_options_set_int(options, key, chance_between(chance, low, high), &error) != BIRD_OK)
        fail("option %s: %s", key, bird_error_message(error));
}

static void choose_edge(struct slot *slot, bird_options *options, bool is_calm_now) {
    struct chance *chance = &slot->chance;
    slot->is_dead_end = !settings.keeps && !is_calm_now && chance_percent(chance, 3);
    set(options, "app_key", settings.app_key);
    set(options, "ca_file", settings.ca_file);
    set(options, "allow_insecure", "1");
    if (slot->is_dead_end) {
        set(options, "ws_host", settings.dead);
        set(options, "reconnect_attempts_max", "5");
    } else if (chance_percent(chance, 20)) {
        set(options, "ws_host", settings.tls);
        set(options, "address", "127.0.0.1");
    } else {
        set(options, "ws_host", chance_percent(chance, 30) ? settings.named : settings.plain);
    }
}

static void choose_authorizer(struct slot *slot, bird_options *options) {
    struct chance *chance = &slot->chance;
    if (chance_percent(chance, 40)) {
        set(options, "authorizer", "1");
        set(options, "member_authorizer", "1");
        return;
    }
    char bearer[TEXT_BYTES_MAX];
    bird_error *error = NULL;
    snprintf(bearer, sizeof bearer, "Bearer m_%u", slot->index);
    if (bird_options_set_auth_header(options, "Authorization", bearer, &error) != BIRD_OK)
        fail("bird_options_set_auth_header: %s", bird_error_message(error));
    set(options, "auth_endpoint", settings.auth);
    set(options, "member_auth_endpoint", settings.member_auth);
    set(options, "header_provider", chance_percent(chance, 30) ? "1" : "0");
}

/* Everything that heals by waiting heals soon: a run shall see many losses. */
static void choose_times(struct chance *chance, bird_options *options) {
    static const char *const policies[] = {"jitter", "fixed", "staged"};
    set(options, "reconnect", policies[chance_between(chance, 0, 2)]);
    set(options, "reconnect_stages", "2x100,2x500");
    set_between(chance, options, "reconnect_delay_ms", 50, 500);
    set_between(chance, options, "backoff_base_ms", 20, 300);
    set_between(chance, options, "backoff_max_ms", 500, 1500);
    set(options, "flap_guard", chance_percent(chance, 5) ? "1" : "0");
    set(options, "may_reconnect", chance_percent(chance, 20) ? "1" : "0");
    set(options, "connect_timeout_ms", "3000");
    set(options, "auth_timeout_ms", "2000");
    set(options, "answer_timeout_ms", "3000");
    set(options, "message_timeout_ms", "3000");
    set_between(chance, options, "activity_timeout_ms", 1000, 3000);
    set_between(chance, options, "pong_timeout_ms", 1000, 2000);
    set_between(chance, options, "pong_misses_max", 1, 2);
}

static void choose_delivery(struct slot *slot, bird_options *options) {
    struct chance *chance = &slot->chance;
    static const char *const overflows[] = {"pause", "pause", "drop-oldest", "drop-newest"};
    const char *overflow = overflows[chance_between(chance, 0, 3)];
    const bool has_queue = slot->mode == MODE_THREAD || slot->mode == MODE_QUEUE;
    slot->may_drop = has_queue && strncmp(overflow, "drop", 4) == 0;
    slot->is_slow = has_queue && chance_percent(chance, 20);
    set(options, "overflow", overflow);
    set_between(chance, options, "queue_records_max", 16, 4096);
    if (slot->mode == MODE_LOOP || slot->mode == MODE_HOST)
        set(options, "delivery", "loop");
    if (slot->mode == MODE_HOST && bird_options_set_loop(options, servers_loop()) != BIRD_OK)
        fail("bird_options_set_loop");
    if (slot->mode == MODE_QUEUE && bird_options_set_queue(options, servers_queue(slot->index)) != BIRD_OK)
        fail("bird_options_set_queue");
}

static void choose_log(struct chance *chance, bird_options *options) {
    static const char *const levels[] = {"warn", "info", "verbose"};
    if (chance_percent(chance, 30))
        handlers_set_log(options);
    if (chance_percent(chance, 50))
        set(options, "log_level", levels[chance_between(chance, 0, 2)]);
    if (chance_percent(chance, 10)) {
        set(options, "log_file", settings.log_file);
        set(options, "log_file_bytes_max", "65536");
        set(options, "log_files_kept", "2");
    }
}

void birth(struct slot *slot, bool is_calm_now) {
    bird_options *options = NULL;
    bird_error *error = NULL;
    if (bird_options_create(&options) != BIRD_OK)
        fail("bird_options_create");
    choose_edge(slot, options, is_calm_now);
    choose_authorizer(slot, options);
    choose_times(&slot->chance, options);
    choose_delivery(slot, options);
    choose_log(&slot->chance, options);
    if (bird_options_set_tag(options, slot_tag(slot)) != BIRD_OK)
        fail("bird_options_set_tag");
    slot->handler_chance.state = chance_next(&slot->chance);
    if (bird_client_create(options, &slot->client, &error) != BIRD_OK)
        fail("bird_client_create: %s", bird_error_message(error));
    bird_options_destroy(options);
    atomic_fetch_add(&counters.created, 1);
    handlers_observe(slot);
}
