/* Channels, members, and the bindings of channels and clients. */
#include "torture.h"

#define OF_HANDLE MAY(ERR_HANDLE)
#define OF_CLIENT (MAY(ERR_HANDLE) | MAY(ERR_CLOSED))
#define OF_CHANNEL (OF_CLIENT | MAY(ERR_UNSUBSCRIBED))

const char *const channel_names[] = {
    "news", "private-orders", "presence-room", "private-encrypted-vault", "private-more",
};
const size_t channel_names_count = sizeof channel_names / sizeof *channel_names;

static char too_long[300];

__attribute__((constructor)) static void fill_name(void) {
    memset(too_long, 'n', sizeof too_long - 1);
}

const char *any_name(chance *c) {
    static const char *const bad[] = {"", "with space", "\xff\xfe", "private-\xf0\x9f\x90\xa6", "#internal", too_long};
    return once_in(c, 16) ? ONE_OF(c, bad) : channel_names[below(c, channel_names_count)];
}

const char *any_event(chance *c) {
    static const char *const events[] = {
        "tick",
        "client-said",
        "bird:subscription_succeeded",
        "bird:subscription_error",
        "bird:member_added",
        "bird:connection_count",
        "pusher:member_removed",
        "",
        "\xff",
        "tick with space",
        NULL,
        too_long,
    };
    return ONE_OF(c, events);
}

/* Often somebody else releases it too: what is counted then is wrong, and what is behind it must still be sound. */
PLAIN_CALL(bird_channel_release, 10) {
    if (place == PLACE_LOG || once_in(c, 32)) {
        bird_channel_release(pick(c, CHANNELS));
    } else {
        bird_channel *channel = atomic_exchange(slot_of(c, CHANNELS), NULL);
        bird_channel_release(channel);
    }
    return BIRD_OK;
}

CALL(bird_channel_unsubscribe, 6, OF_CHANNEL | MAY(ERR_UNSUPPORTED)) {
    return bird_channel_unsubscribe(pick(c, CHANNELS));
}

CALL(bird_channel_trigger, 40,
     OF_CHANNEL | MAY(ERR_NAME) | MAY(ERR_PAYLOAD) | MAY(ERR_SIZE) | MAY(ERR_NOT_SUBSCRIBED) | MAY(ERR_FULL) |
         MAY(ERR_UNSUPPORTED) | MAY(ERR_ARGUMENT)) {
    static const char *const payloads[] = {"1", "{\"a\":[1,2,\"\\u00e9\"]}", "\"text\"", "", "{", "\xff", NULL};
    static char large[20000];
    const char *data = ONE_OF(c, payloads);
    size_t length = once_in(c, 2) ? BIRD_NUL : data != NULL ? strlen(data) : 0;
    if (once_in(c, 16)) {
        data = large;
        length = below(c, sizeof large);
    }
    told t = tell(c);
    return heard(&t, bird_channel_trigger(pick(c, CHANNELS), once_in(c, 4) ? any_event(c) : "client-said", data, length,
                                          WANTED(t)));
}

CALL(bird_channel_state, 20, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    int32_t state = -1;
    const bird_status status = bird_channel_state(pick(c, CHANNELS), once_in(c, 32) ? NULL : &state);
    CHECK(status != BIRD_OK || (state >= BIRD_CHANNEL_IDLE && state <= BIRD_CHANNEL_UNSUBSCRIBED));
    return status;
}

CALL(bird_channel_kind, 10, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    int32_t kind = -1;
    const bird_status status = bird_channel_kind(pick(c, CHANNELS), once_in(c, 32) ? NULL : &kind);
    CHECK(status != BIRD_OK || (kind >= BIRD_CHANNEL_PUBLIC && kind <= BIRD_CHANNEL_MEMBER));
    return status;
}

CALL(bird_channel_name, 10, OF_CLIENT | MAY(ERR_SPACE)) {
    char name[256];
    return bird_channel_name(pick(c, CHANNELS), name, once_in(c, 8) ? below(c, 8) : sizeof name, NULL);
}

CALL(bird_channel_set_tag, 10, OF_CHANNEL) {
    return bird_channel_set_tag(pick(c, CHANNELS), draw(c));
}

CALL(bird_channel_my_id, 10, OF_CHANNEL | MAY(ERR_SPACE) | MAY(ERR_UNSUPPORTED)) {
    char id[256];
    return bird_channel_my_id(pick(c, CHANNELS), id, once_in(c, 8) ? 0 : sizeof id, NULL);
}

CALL(bird_channel_member_count, 10, OF_CHANNEL | MAY(ERR_UNSUPPORTED) | MAY(ERR_ARGUMENT)) {
    size_t count;
    return bird_channel_member_count(pick(c, CHANNELS), once_in(c, 32) ? NULL : &count);
}

/* A snapshot is its holder's alone. */
static bird_status with_members(chance *c, void (*use)(const bird_members *, size_t)) {
    bird_members *members = NULL;
    const bird_status status = bird_channel_members(pick(c, CHANNELS), &members);
    CHECK((members != NULL) == (status == BIRD_OK));
    use(members, below(c, 4));
    bird_members_free(members);
    return status;
}

static void use_count(const bird_members *members, size_t index) {
    (void)index;
    CHECK(bird_members_count(members) <= 1000);
}

static void use_id(const bird_members *members, size_t index) {
    CHECK((*bird_members_id(members, index) != '\0') <= (index < bird_members_count(members)));
}

static void use_id_length(const bird_members *members, size_t index) {
    CHECK(bird_members_id_length(members, index) >= strlen(bird_members_id(members, index)));
}

static void use_info(const bird_members *members, size_t index) {
    const char *info = bird_members_info(members, index);
    CHECK(*info == '\0' || bird_data_is_json(info, BIRD_NUL) == 1);
}

CALL(bird_channel_members, 10, OF_CHANNEL | MAY(ERR_UNSUPPORTED) | MAY(ERR_ARGUMENT)) {
    return once_in(c, 16) ? bird_channel_members(pick(c, CHANNELS), NULL) : with_members(c, use_id);
}

PLAIN_CALL(bird_members_count, 2) {
    with_members(c, use_count);
    return BIRD_OK;
}

PLAIN_CALL(bird_members_id, 2) {
    with_members(c, use_id);
    return BIRD_OK;
}

PLAIN_CALL(bird_members_id_length, 2) {
    with_members(c, use_id_length);
    return BIRD_OK;
}

PLAIN_CALL(bird_members_info, 2) {
    with_members(c, use_info);
    return BIRD_OK;
}

PLAIN_CALL(bird_members_free, 2) {
    (void)c;
    bird_members_free(NULL);
    return BIRD_OK;
}

/* --------------------------------------------------------------------------------------------------- bindings ------ */

enum { BINDINGS = 64 };
static _Atomic uint64_t bindings[BINDINGS];

/* A registration with a ticket or without any user data. */
typedef struct registration {
    void *ticket;
    bird_destructor destructor;
    bird_handler handler;
    uint64_t binding;
} registration;

static registration registration_new(chance *c) {
    registration r = {.ticket = once_in(c, 16) ? NULL : ticket_new(draw(c))};
    r.destructor = r.ticket != NULL ? ticket_destructor : NULL;
    r.handler = once_in(c, 32) ? NULL : on_record;
    return r;
}

/* What was bound is left for everybody to unbind. A failed one has had its destructor called; ledger.c counts them. */
static bird_status registered(chance *c, registration *r, bird_status status) {
    CHECK((r->binding != 0) == (status == BIRD_OK));
    if (status == BIRD_OK) {
        atomic_store(&bindings[below(c, BINDINGS)], r->binding);
    }
    return status;
}

CALL(bird_channel_bind, 15, OF_CHANNEL | MAY(ERR_NAME) | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    registration r = registration_new(c);
    told t = tell(c);
    return registered(c, &r,
                      heard(&t, bird_channel_bind(pick(c, CHANNELS), any_event(c), r.handler, r.ticket, r.destructor,
                                                  &r.binding, WANTED(t))));
}

CALL(bird_client_bind, 5, OF_CLIENT | MAY(ERR_NAME) | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    registration r = registration_new(c);
    told t = tell(c);
    return registered(c, &r,
                      heard(&t, bird_client_bind(pick(c, CLIENTS), any_event(c), r.handler, r.ticket, r.destructor,
                                                 &r.binding, WANTED(t))));
}

CALL(bird_client_observe, 5, OF_CLIENT | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    registration r = registration_new(c);
    told t = tell(c);
    return registered(c, &r,
                      heard(&t, bird_client_observe(pick(c, CLIENTS), draw(c), r.handler, r.ticket, r.destructor,
                                                    &r.binding, WANTED(t))));
}

CALL(bird_client_unbind, 40, OF_CLIENT | MAY(ERR_ARGUMENT)) {
    /* Never the observer that every client has: those of a client are numbered from the first. */
    const uint64_t binding = atomic_load(&bindings[below(c, BINDINGS)]);
    return bird_client_unbind(pick(c, CLIENTS), binding > 1 ? binding : draw(c) | UINT64_C(1) << 60);
}

CALL(bird_channel_unbind_event, 6, OF_CHANNEL | MAY(ERR_NAME)) {
    return bird_channel_unbind_event(pick(c, CHANNELS), any_event(c));
}

CALL(bird_client_unbind_event, 6, OF_CLIENT | MAY(ERR_NAME)) {
    return bird_client_unbind_event(pick(c, CLIENTS), any_event(c));
}

CALL(bird_channel_unbind_all, 6, OF_CHANNEL) {
    return bird_channel_unbind_all(pick(c, CHANNELS));
}

CALL(bird_client_unbind_all, 6, OF_CLIENT) {
    return bird_client_unbind_all(pick(c, CLIENTS));
}

CALL(bird_client_intern, 10, OF_CLIENT | MAY(ERR_NAME) | MAY(ERR_FULL) | MAY(ERR_ARGUMENT)) {
    uint32_t id = 0;
    told t = tell(c);
    const bird_status status =
        heard(&t, bird_client_intern(pick(c, CLIENTS), any_event(c), once_in(c, 32) ? NULL : &id, WANTED(t)));
    CHECK(status != BIRD_OK || id != 0);
    return status;
}
