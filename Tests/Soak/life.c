#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { ENDING_DEADLINE_MS = 20000 };

long long marks[NAMES_MAX];

bool accept(struct slot *slot, const char *call, bird_status status, bird_error **error) {
    const bool is_gone = status == BIRD_ERR_HANDLE || (status == BIRD_ERR_CLOSED && !atomic_load(&slot->is_closed));
    if (status > 0 || status == BIRD_ERR_ARGUMENT || status == BIRD_ERR_SYSTEM ||
        (is_gone && !atomic_load(&slot->is_destroyed)))
        slot_fail(slot, "%s returned %s: %s", call, bird_status_name(status),
                  error == NULL ? "" : bird_error_message(*error));
    if (error != NULL)
        bird_error_free(*error);
    return status == BIRD_OK;
}

static int32_t state_of(struct slot *slot) {
    int32_t state = -1;
    accept(slot, "bird_client_state", bird_client_state(slot->client, &state), NULL);
    return state;
}

static bird_statistics statistics_of(struct slot *slot) {
    bird_statistics statistics = {.struct_size = sizeof statistics};
    accept(slot, "bird_client_statistics", bird_client_statistics(slot->client, &statistics), NULL);
    return statistics;
}

/* ---- births and ends ---- */

static void connect_client(struct slot *slot) {
    bird_error *error = NULL;
    accept(slot, "bird_client_connect", bird_client_connect(slot->client, &error), &error);
}

static void forget_channel(struct slot *slot, size_t index) {
    bird_channel_release(slot->channels[index].channel);
    slot->channels[index] = slot->channels[--slot->channels_count];
}

/* What is known of a life that has ended is forgotten. */
static void bury(struct slot *slot) {
    while (slot->channels_count > 0)
        forget_channel(slot, slot->channels_count - 1);
    pthread_mutex_lock(&slot->turn);
    slot->last_drain = servers_drains();
    atomic_fetch_add(&slot->life, 1);
    pthread_mutex_lock(&slot->lock);
    atomic_fetch_add(&counters.abandoned, (long long)slot->operations_count);
    slot->operations_count = 0;
    slot->answers_count = 0;
    pthread_mutex_unlock(&slot->lock);
    memset(slot->views, 0, sizeof slot->views);
    for (size_t name = 0; name < names_count; name++)
        atomic_store(&slot->views[name].last, -1);
    slot->edge_error_ms = 0;
    pthread_mutex_unlock(&slot->turn);
    slot->bindings_count = 0;
    atomic_store(&slot->wished_names, 0);
    slot->former = slot->client;
    slot->client = NULL;
    atomic_store(&slot->is_destroyed, false);
    atomic_store(&slot->is_closed, false);
    atomic_store(&slot->gap_events, 0);
    atomic_fetch_add(&counters.destroyed, 1);
}

static void expect_all_destructors(struct slot *slot) {
    const long long registrations = atomic_load(&slot->registrations), destructors = atomic_load(&slot->destructors);
    if (registrations != destructors)
        slot_fail(slot, "%lld registrations, but %lld destructors after its end", registrations, destructors);
}

/* A handler has destroyed the client; its destructors run right behind that handler. */
static void end_destroyed(struct slot *slot) {
    const int64_t end = now_ms() + ENDING_DEADLINE_MS;
    while (atomic_load(&slot->registrations) != atomic_load(&slot->destructors) && now_ms() < end)
        sleep_ms(1);
    expect_all_destructors(slot);
    bury(slot);
}

bool life_end(struct slot *slot) {
    if (slot->client == NULL)
        return true;
    if (atomic_exchange(&slot->is_destroyed, true)) {
        end_destroyed(slot);
        return true;
    }
    accept(slot, "bird_client_destroy", bird_client_destroy(slot->client), NULL);
    expect_all_destructors(slot);
    bury(slot);
    return true;
}

static void begin(struct slot *slot, bool is_calm_now) {
    birth(slot, is_calm_now);
    connect_client(slot);
}

/* ---- what programs do ---- */

static struct held_channel *any_channel(struct slot *slot) {
    if (slot->channels_count == 0)
        return NULL;
    return &slot->channels[chance_between(&slot->chance, 0, (int64_t)slot->channels_count - 1)];
}

static void subscribe_to(struct slot *slot, size_t name) {
    uint64_t tag = 0;
    bird_channel *channel = NULL;
    bird_error *error = NULL;
    slot_note(slot, "subscribe", names[name], 0);
    if (chance_percent(&slot->chance, 60) && !slot_begin(slot, &tag))
        tag = 0;
    if (!accept(slot, "bird_client_subscribe", bird_client_subscribe(slot->client, names[name], tag, &channel, &error),
                &error)) {
        if (tag != 0)
            slot_end(slot, tag);
        return;
    }
    if (tag != 0)
        atomic_fetch_add(&counters.accepted, 1);
    for (size_t i = 0; i < slot->channels_count; i++)
        if (slot->channels[i].name == name) {
            /* A handler may have unsubscribed the one that is held. */
            bird_channel_release(slot->channels[i].channel);
            slot->channels[i].channel = channel;
            return;
        }
    slot->channels[slot->channels_count++] = (struct held_channel){.channel = channel, .name = name};
}

static void subscribe(struct slot *slot) {
    const size_t name = (size_t)chance_between(&slot->chance, 0, (int64_t)names_count - 1);
    if (slot->channels_count < CHANNELS_MAX)
        subscribe_to(slot, name);
}

static void unsubscribe(struct slot *slot) {
    struct held_channel *held = any_channel(slot);
    if (held == NULL)
        return;
    const size_t name = held->name;
    slot_leaves(slot, names[name]);
    accept(slot, "bird_channel_unsubscribe", bird_channel_unsubscribe(held->channel), NULL);
    forget_channel(slot, (size_t)(held - slot->channels));
    if (chance_percent(&slot->chance, 30))
        subscribe_to(slot, name);
}

static void bind(struct slot *slot) {
    static const char *const events[] = {
        NULL, "tick", "client-note", "bird:subscription_succeeded", "bird:member_added", "bird:cache_miss",
    };
    const struct held_channel *held = chance_percent(&slot->chance, 70) ? any_channel(slot) : NULL;
    if (slot->bindings_count < BINDINGS_MAX)
        handlers_bind(slot, held == NULL ? NULL : held->channel, events[chance_between(&slot->chance, 0, 5)]);
}

static void unbind(struct slot *slot) {
    const int64_t how = chance_between(&slot->chance, 0, 9);
    const struct held_channel *held = any_channel(slot);
    if (how == 0 && held != NULL) {
        accept(slot, "bird_channel_unbind_event", bird_channel_unbind_event(held->channel, "tick"), NULL);
    } else if (how == 1 && held != NULL) {
        accept(slot, "bird_channel_unbind_all", bird_channel_unbind_all(held->channel), NULL);
    } else if (how == 2) {
        accept(slot, "bird_client_unbind_all", bird_client_unbind_all(slot->client), NULL);
    } else if (slot->bindings_count > 0) {
        const size_t index = (size_t)chance_between(&slot->chance, 0, (int64_t)slot->bindings_count - 1);
        const bird_status status = bird_client_unbind(slot->client, slot->bindings[index]);
        if (status != BIRD_ERR_ARGUMENT) /* it has gone with its channel, or by itself */
            accept(slot, "bird_client_unbind", status, NULL);
        slot->bindings[index] = slot->bindings[--slot->bindings_count];
    }
}

static void sign_in(struct slot *slot) {
    uint64_t tag = 0;
    bird_error *error = NULL;
    if (chance_percent(&slot->chance, 60) && !slot_begin(slot, &tag))
        tag = 0;
    const uint32_t flags = chance_percent(&slot->chance, 30) ? BIRD_SIGNIN_REFRESH : 0;
    const bool is_accepted =
        accept(slot, "bird_client_signin", bird_client_signin(slot->client, flags, tag, &error), &error);
    if (tag != 0 && is_accepted)
        atomic_fetch_add(&counters.accepted, 1);
    else if (tag != 0)
        slot_end(slot, tag);
}

static void trigger(struct slot *slot) {
    struct held_channel *held = any_channel(slot);
    bird_error *error = NULL;
    if (held != NULL)
        accept(slot, "bird_channel_trigger",
               bird_channel_trigger(held->channel, "client-note", "{\"text\":\"hello\"}", BIRD_NUL, &error), &error);
}

static void look(struct slot *slot) {
    char text[TEXT_BYTES_MAX];
    static _Thread_local char dump[64 * 1024];
    size_t length, count;
    int32_t number;
    accept(slot, "bird_client_dump", bird_client_dump(slot->client, dump, sizeof dump, &length), NULL);
    accept(slot, "bird_client_connection_id", bird_client_connection_id(slot->client, text, sizeof text, &length),
           NULL);
    accept(slot, "bird_client_member_id", bird_client_member_id(slot->client, text, sizeof text, &length), NULL);
    struct held_channel *held = any_channel(slot);
    if (held == NULL)
        return;
    accept(slot, "bird_channel_state", bird_channel_state(held->channel, &number), NULL);
    accept(slot, "bird_channel_name", bird_channel_name(held->channel, text, sizeof text, &length), NULL);
    accept(slot, "bird_channel_set_tag", bird_channel_set_tag(held->channel, held->name + 1), NULL);
    if (!names_is_presence(held->name))
        return;
    bird_members *members = NULL;
    accept(slot, "bird_channel_member_count", bird_channel_member_count(held->channel, &count), NULL);
    if (accept(slot, "bird_channel_members", bird_channel_members(held->channel, &members), NULL)) {
        for (size_t i = 0; i < bird_members_count(members); i++)
            if (bird_members_id(members, i)[0] != 'm')
                slot_fail(slot, "a member is called %s", bird_members_id(members, i));
        bird_members_free(members);
    }
}

static void change_option(struct slot *slot) {
    bird_error *error = NULL;
    if (chance_percent(&slot->chance, 50))
        accept(
            slot, "bird_client_set_int",
            bird_client_set_int(slot->client, "activity_timeout_ms", chance_between(&slot->chance, 1000, 3000), &error),
            &error);
    else
        accept(
            slot, "bird_client_set",
            bird_client_set(slot->client, "log_level", chance_percent(&slot->chance, 30) ? "verbose" : "off", &error),
            &error);
}

static void wait_for_it(struct slot *slot) {
    if (chance_percent(&slot->chance, 50))
        accept(slot, "bird_client_wait", bird_client_wait(slot->client, BIRD_STATE_CONNECTED, 20), NULL);
    else
        accept(slot, "bird_client_flush", bird_client_flush(slot->client, 20), NULL);
}

/* The member channel, a name for a number, and calls that are refused. */
static void do_odd_things(struct slot *slot) {
    bird_channel *channel = NULL;
    bird_error *error = NULL;
    uint32_t id;
    if (accept(slot, "bird_client_member_channel", bird_client_member_channel(slot->client, &channel), NULL))
        bird_channel_release(channel);
    accept(slot, "bird_client_intern", bird_client_intern(slot->client, "tick", &id, &error), &error);
    error = NULL;
    const bird_status status = bird_client_subscribe(slot->client, "not a name", 0, &channel, &error);
    if (status != BIRD_ERR_NAME && status != BIRD_ERR_HANDLE)
        fail("a bad name was not refused, but %s", bird_status_name(status));
    bird_error_free(error);
    int32_t state;
    if (slot->former != NULL && bird_client_state(slot->former, &state) != BIRD_ERR_HANDLE)
        slot_fail(slot, "the handle of a former life was not refused");
}

static void close_client(struct slot *slot) {
    atomic_store(&slot->is_closed, true);
    const bird_status status = bird_client_close(slot->client, 100);
    if (status != BIRD_OK && status != BIRD_ERR_TIMEOUT && status != BIRD_ERR_LOST && status != BIRD_ERR_HANDLE)
        fail("bird_client_close returned %s", bird_status_name(status));
    life_end(slot);
}

bool life_act(struct slot *slot) {
    atomic_fetch_add(&counters.actions, 1);
    if (slot->client == NULL) {
        begin(slot, false);
        return false;
    }
    if (atomic_load(&slot->is_destroyed)) {
        life_end(slot);
        return false;
    }
    answers_give(slot);
    const int64_t what = chance_between(&slot->chance, 0, 999);
    if (what < 300)
        subscribe(slot);
    else if (what < 450)
        unsubscribe(slot);
    else if (what < 550)
        bind(slot);
    else if (what < 620)
        unbind(slot);
    else if (what < 660)
        sign_in(slot);
    else if (what < 760)
        trigger(slot);
    else if (what < 860)
        look(slot);
    else if (what < 890)
        change_option(slot);
    else if (what < 920)
        do_odd_things(slot);
    else if (what < 930)
        wait_for_it(slot);
    else if (what < 940)
        accept(slot, "bird_client_disconnect", bird_client_disconnect(slot->client), NULL);
    else if (what < 970)
        connect_client(slot);
    else if (what < 980)
        accept(slot, "bird_client_retry_now", bird_client_retry_now(slot->client), NULL);
    else if (what < 985)
        accept(slot, "bird_client_network_hint",
               bird_client_network_hint(slot->client, (int32_t)chance_between(&slot->chance, 1, 3)), NULL);
    else if (what < 988 && !settings.keeps)
        close_client(slot);
    else if (what < 995 && !settings.keeps)
        life_end(slot);
    return false;
}

/* ---- what phases want ---- */

static bool is_connected(struct slot *slot) {
    const int32_t state = state_of(slot);
    if (state == BIRD_STATE_INITIALIZED || state == BIRD_STATE_DISCONNECTED || state == BIRD_STATE_FAILED)
        connect_client(slot);
    if (state == BIRD_STATE_UNAVAILABLE)
        accept(slot, "bird_client_retry_now", bird_client_retry_now(slot->client), NULL);
    return state == BIRD_STATE_CONNECTED;
}

static bool are_channels_subscribed(struct slot *slot) {
    bool are_subscribed = true;
    for (size_t i = 0; i < slot->channels_count; i++) {
        int32_t state = -1;
        const bird_status status = bird_channel_state(slot->channels[i].channel, &state);
        if (status == BIRD_ERR_UNSUBSCRIBED || state == BIRD_CHANNEL_UNSUBSCRIBED || state == BIRD_CHANNEL_FAILED)
            subscribe_to(slot, slot->channels[i].name);
        are_subscribed = are_subscribed && state == BIRD_CHANNEL_SUBSCRIBED;
    }
    return are_subscribed;
}

bool life_settle(struct slot *slot) {
    if (slot->client != NULL && (slot->is_dead_end || atomic_load(&slot->is_destroyed)))
        life_end(slot);
    if (slot->client == NULL)
        begin(slot, true);
    answers_give(slot);
    if (!is_connected(slot) || !are_channels_subscribed(slot) || slot_open_operations(slot) > 0 ||
        statistics_of(slot).queue_records > 0)
        return false;
    for (size_t name = 0; name < names_count; name++)
        slot->successes_wanted[name] = atomic_load(&slot->views[name].successes);
    return true;
}

bool life_has_marks(struct slot *slot) {
    for (size_t i = 0; i < slot->channels_count; i++) {
        const size_t name = slot->channels[i].name;
        const struct view *view = &slot->views[name];
        /* A connection that was lost since it had settled has its channels anew, and may have missed some. */
        if (atomic_load(&view->last) < marks[name] && atomic_load(&view->successes) == slot->successes_wanted[name])
            return false;
    }
    const bird_statistics statistics = statistics_of(slot);
    const long long gap_events = atomic_load(&slot->gap_events);
    if (gap_events > (long long)statistics.events_dropped)
        slot_fail(slot, "%lld events are missing, but %llu were dropped", gap_events,
                  (unsigned long long)statistics.events_dropped);
    return true;
}

/* Takes up what handlers have subscribed to, as far as there is room. */
static void adopt_channels(struct slot *slot) {
    const unsigned wished = atomic_load(&slot->wished_names);
    for (size_t name = 0; name < names_count && slot->channels_count < CHANNELS_MAX; name++)
        if ((wished & 1u << name) != 0) {
            subscribe_to(slot, name);
            atomic_fetch_and(&slot->wished_names, ~(1u << name));
        }
}

bool life_strip(struct slot *slot) {
    adopt_channels(slot);
    while (slot->channels_count > 0) {
        accept(slot, "bird_channel_unsubscribe", bird_channel_unsubscribe(slot->channels[0].channel), NULL);
        forget_channel(slot, 0);
    }
    while (slot->bindings_count > 0)
        bird_client_unbind(slot->client, slot->bindings[--slot->bindings_count]);
    answers_give(slot);
    const bird_statistics statistics = statistics_of(slot);
    return is_connected(slot) && slot_open_operations(slot) == 0 && statistics.queue_records == 0 &&
           statistics.channels == 0;
}

void life_describe(struct slot *slot) {
    static char dump[256 * 1024];
    fprintf(stderr, "soak: client %u, life %u, mode %d, %zu operations, %zu channels, bindings %zu\n", slot->index,
            atomic_load(&slot->life), (int)slot->mode, slot_open_operations(slot), slot->channels_count,
            slot->bindings_count);
    for (size_t i = 0; i < slot->channels_count; i++) {
        const struct view *view = &slot->views[slot->channels[i].name];
        fprintf(stderr, "  %s: last %lld, mark %lld, %u successes\n", names[slot->channels[i].name],
                atomic_load(&view->last), marks[slot->channels[i].name], atomic_load(&view->successes));
    }
    if (slot->client != NULL && bird_client_dump(slot->client, dump, sizeof dump, NULL) == BIRD_OK)
        fprintf(stderr, "%s\n", dump);
}
