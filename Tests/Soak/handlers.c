#include <stdlib.h>

#include "soak.h"

/* The user_data of a binding, which its destructor and the call that makes it share. */
struct registration {
    struct slot *slot;
    atomic_int owners;
    atomic_ullong binding; /* 0: the call that gives it has not returned yet */
};

static void release(struct registration *registration) {
    if (atomic_fetch_sub(&registration->owners, 1) == 1)
        free(registration);
}

static void destroy_registration(void *user_data) {
    struct registration *registration = user_data;
    atomic_fetch_add(&counters.destructors, 1);
    atomic_fetch_add(&registration->slot->destructors, 1);
    release(registration);
}

static struct registration *make_registration(struct slot *slot) {
    struct registration *registration = calloc(1, sizeof *registration);
    if (registration == NULL)
        fail("out of memory");
    registration->slot = slot;
    atomic_init(&registration->owners, 2);
    atomic_fetch_add(&counters.registrations, 1);
    atomic_fetch_add(&slot->registrations, 1);
    return registration;
}

static void expect_refused(const char *call, bird_status status) {
    if (status != BIRD_ERR_CALLBACK && status != BIRD_ERR_HANDLE && status != BIRD_ERR_CLOSED)
        fail("%s in a handler returned %s", call, bird_status_name(status));
}

/* A call on the channel of the record: the worker may have left and released it meanwhile. */
static void accept_on_record(struct slot *slot, bird_status status, bird_error **error) {
    if (status != BIRD_ERR_HANDLE)
        accept(slot, "a call on a record's channel", status, error);
    else if (error != NULL)
        bird_error_free(*error);
}

/* What programs do in handlers. */
static void play(const bird_record *record, struct registration *registration) {
    struct slot *slot = registration->slot;
    struct chance *chance = &slot->handler_chance;
    const int64_t what = chance_between(chance, 0, 1999);
    bird_error *error = NULL;
    if (what < 60) {
        const uint64_t binding = atomic_load(&registration->binding);
        if (binding != 0) {
            const bird_status status = bird_client_unbind(record->client, binding);
            if (status != BIRD_OK && status != BIRD_ERR_ARGUMENT)
                accept(slot, "bird_client_unbind", status, NULL);
        }
    } else if (what < 100) {
        bird_statistics statistics = {.struct_size = sizeof statistics};
        accept(slot, "bird_client_statistics", bird_client_statistics(record->client, &statistics), NULL);
    } else if (what < 110) {
        char text[64];
        bird_client_dump(record->client, text, sizeof text, NULL);
    } else if (what < 140 && record->channel != NULL) {
        accept_on_record(slot, bird_channel_trigger(record->channel, "client-note", "{}", BIRD_NUL, &error), &error);
    } else if (what < 160) {
        bird_channel *channel = NULL;
        const size_t name = (size_t)chance_between(chance, 0, (int64_t)names_count - 1);
        if (atomic_load(&is_calm))
            return;
        slot_note(slot, "a handler subscribes", names[name], 0);
        atomic_fetch_or(&slot->wished_names, 1u << name);
        if (accept(slot, "bird_client_subscribe",
                   bird_client_subscribe(record->client, names[name], 0, &channel, &error), &error))
            bird_channel_release(channel);
    } else if (what < 170 && record->channel != NULL && !atomic_load(&is_calm)) {
        slot_leaves(slot, record->channel_name);
        accept_on_record(slot, bird_channel_unsubscribe(record->channel), NULL);
    } else if (what < 172 && !atomic_load(&is_calm)) {
        accept(slot, "bird_client_disconnect", bird_client_disconnect(record->client), NULL);
    } else if (what < 176) {
        accept(slot, "bird_client_connect", bird_client_connect(record->client, &error), &error);
    } else if (what < 186) {
        expect_refused("bird_client_wait", bird_client_wait(record->client, BIRD_STATE_CONNECTED, 1000));
        expect_refused("bird_client_flush", bird_client_flush(record->client, 1000));
    } else if (what < 188 && !settings.keeps && !atomic_load(&is_calm) && !atomic_exchange(&slot->is_destroyed, true)) {
        accept(slot, "bird_client_destroy", bird_client_destroy(record->client), NULL);
    }
}

static void on_event(const bird_record *record, void *user_data) {
    struct registration *registration = user_data;
    if (record->client_tag != slot_tag(registration->slot))
        slot_fail(registration->slot, "a handler was called with a record of another one");
    play(record, registration);
}

static void on_record(const bird_record *record, void *user_data) {
    const struct registration *registration = user_data;
    if (record->client_tag != slot_tag(registration->slot))
        slot_fail(registration->slot, "an observer was called with a record of another one");
    witness(record, 0);
}

/* What a call that registers has given. */
static void settle_registration(struct registration *registration, uint64_t binding) {
    atomic_store(&registration->binding, binding);
    release(registration);
}

void handlers_bind(struct slot *slot, bird_channel *channel, const char *event) {
    bird_error *error = NULL;
    uint64_t binding = 0;
    struct registration *registration = make_registration(slot);
    const bird_status status =
        channel != NULL
            ? bird_channel_bind(channel, event, on_event, registration, destroy_registration, &binding, &error)
            : bird_client_bind(slot->client, event, on_event, registration, destroy_registration, &binding, &error);
    settle_registration(registration, binding);
    if (accept(slot, "bind", status, &error))
        slot->bindings[slot->bindings_count++] = binding;
}

void handlers_observe(struct slot *slot) {
    bird_error *error = NULL;
    uint64_t binding = 0;
    struct registration *registration = make_registration(slot);
    const bird_status status =
        bird_client_observe(slot->client, UINT64_MAX, on_record, registration, destroy_registration, &binding, &error);
    settle_registration(registration, binding);
    if (!accept(slot, "bird_client_observe", status, &error))
        fail("no observer");
}

static void on_log(const bird_log_entry *entry, void *user_data) {
    (void)user_data;
    if (entry->message_length == 0)
        fail("an empty log entry");
    atomic_fetch_add(&counters.log_entries, 1);
}

static void destroy_log(void *user_data) {
    (void)user_data;
    atomic_fetch_add(&counters.log_destructors, 1);
}

void handlers_set_log(bird_options *options) {
    atomic_fetch_add(&counters.log_registrations, 1);
    if (bird_options_set_log(options, on_log, NULL, destroy_log) != BIRD_OK)
        fail("bird_options_set_log");
}
