/* What must happen exactly once: destructors, completions; and what may not happen any more: records of a destroyed client. */
#include "torture.h"

/* ---------------------------------------------------------------------------------------------------- tickets ------ */

enum { TICKETS_MAX = 1 << 17, TICKET_BITS = 17 };

/* A word is the generation, how many handlers use it, and whether it is open. */
#define TICKET_OPEN UINT64_C(1)
#define TICKET_USE UINT64_C(2)
#define TICKET_USES (UINT64_C(0xFFF) * TICKET_USE)
#define TICKET_GENERATION (UINT64_C(1) << 13)

static struct ticket {
    _Atomic uint64_t word, number, uses;
} tickets[TICKETS_MAX];
static atomic_uint next_ticket;

static struct ticket *ticket_of(void *user_data, uint64_t *generation) {
    const uint64_t value = (uint64_t)(uintptr_t)user_data;
    *generation = (value >> TICKET_BITS) * TICKET_GENERATION;
    return &tickets[value & (TICKETS_MAX - 1)];
}

void *ticket_new(uint64_t number) {
    for (int tries = 0; tries < 64; tries++) {
        const uint32_t index = atomic_fetch_add(&next_ticket, 1) & (TICKETS_MAX - 1);
        uint64_t word = atomic_load(&tickets[index].word);
        if ((word & TICKET_OPEN) == 0) {
            const uint64_t next = word + TICKET_GENERATION;
            if (atomic_compare_exchange_strong(&tickets[index].word, &word, next | TICKET_OPEN)) {
                atomic_store(&tickets[index].number, number);
                atomic_store(&tickets[index].uses, 0);
                return (void *)(uintptr_t)(next / TICKET_GENERATION << TICKET_BITS | index);
            }
        }
    }
    return NULL;
}

static void ticket_end(void *user_data, const char *what) {
    uint64_t generation;
    struct ticket *t = ticket_of(user_data, &generation);
    uint64_t word = generation | TICKET_OPEN;
    if (!atomic_compare_exchange_strong(&t->word, &word, generation)) {
        FAIL("%s: %s", what,
             word >= generation + TICKET_GENERATION || word == generation ? "it has ended before"
                                                                          : "a handler uses it");
    }
}

void ticket_drop(void *user_data) {
    ticket_end(user_data, "a registration's user data");
}

void ticket_destructor(void *user_data) {
    ticket_end(user_data, "a destructor");
    const enum place outer = place;
    place = outer == PLACE_LOG ? outer : PLACE_DESTRUCTOR;
    depth++;
    chance c = {mix((uint64_t)(uintptr_t)user_data)};
    if (depth < 3 && once_in(&c, 4) && !atomic_load(&callbacks_are_good)) {
        call_random(draw(&c));
    }
    depth--;
    place = outer;
}

uint64_t ticket_enter(void *user_data) {
    uint64_t generation;
    struct ticket *t = ticket_of(user_data, &generation);
    const uint64_t word = atomic_fetch_add(&t->word, TICKET_USE);
    if ((word & ~TICKET_USES) != (generation | TICKET_OPEN)) {
        FAIL("a handler was called after its destructor");
    }
    return mix(atomic_load(&t->number) + atomic_fetch_add(&t->uses, 1));
}

void ticket_leave(void *user_data) {
    uint64_t generation;
    atomic_fetch_sub(&ticket_of(user_data, &generation)->word, TICKET_USE);
}

int tickets_open(void) {
    int count = 0;
    for (int i = 0; i < TICKETS_MAX; i++) {
        count += (atomic_load(&tickets[i].word) & TICKET_OPEN) != 0;
    }
    return count;
}

/* --------------------------------------------------------------------------------------------------- subjects ------ */

enum { SUBJECTS_MAX = 4096, SUBJECT_BITS = 12 };

enum phase {
    NEVER,  /* not yet, or no client came of it                                       */
    LIVING, /* its handle is out                                                      */
    ENDING, /* a destroy has begun; a handler that was running may still be           */
    OVER,   /* a destroy that waits for handlers has returned                         */
};

struct subject {
    _Atomic uint64_t tag;
    _Atomic(bird_client *) client;
    atomic_int phase, state;
    atomic_bool connects;
    _Atomic int32_t delivery;
    _Atomic int64_t last_tick;
};

static subject subjects[SUBJECTS_MAX];
static atomic_uint next_subject;

subject *subject_new(int32_t delivery) {
    const uint32_t number = atomic_fetch_add(&next_subject, 1) + 1;
    subject *s = &subjects[number & (SUBJECTS_MAX - 1)];
    for (; atomic_load(&s->phase) == LIVING || atomic_load(&s->phase) == ENDING;) {
        return subject_new(delivery); /* one that is on a shelf for long */
    }
    atomic_store(&s->client, NULL);
    atomic_store(&s->tag, number);
    atomic_store(&s->delivery, delivery);
    atomic_store(&s->connects, false);
    atomic_store(&s->last_tick, -1);
    atomic_store(&s->state, BIRD_STATE_INITIALIZED);
    atomic_store(&s->phase, LIVING);
    return s;
}

uint64_t subject_tag(const subject *s) {
    return atomic_load(&s->tag);
}

void subject_begin(subject *s, bird_client *client) {
    atomic_store(&s->client, client);
    if (client == NULL) {
        atomic_store(&s->phase, NEVER);
    }
}

subject *subject_of(bird_client *client) {
    for (int i = 0; client != NULL && i < SUBJECTS_MAX; i++) {
        if (atomic_load_explicit(&subjects[i].client, memory_order_relaxed) == client) {
            return &subjects[i];
        }
    }
    return NULL;
}

void subject_connects(subject *s) {
    atomic_store(&s->connects, true);
}

static void forget_operations(uint64_t client_tag);

void subject_ends(subject *s) {
    int living = LIVING;
    atomic_compare_exchange_strong(&s->phase, &living, ENDING);
}

void subject_ended(subject *s) {
    forget_operations(subject_tag(s));
    /* In a callback destroy waits for no handler: one may have begun, and come as far as our check only now. */
    if (place == PLACE_PLAIN) {
        atomic_store(&s->phase, OVER);
    } else {
        atomic_store(&s->phase, NEVER);
    }
    atomic_store(&s->client, NULL);
}

static subject *subject_tagged(uint64_t tag) {
    subject *s = &subjects[tag & (SUBJECTS_MAX - 1)];
    return tag != 0 && subject_tag(s) == tag ? s : NULL;
}

static void complete(uint64_t tag, const bird_record *record);

static void check_text(const char *text, size_t length) {
    CHECK(text != NULL && text[length] == '\0');
}

void subject_check(const bird_record *record, bool is_handled) {
    CHECK(record->struct_size >= sizeof *record);
    CHECK(record->kind >= BIRD_RECORD_EVENT && record->kind <= BIRD_RECORD_LOG);
    check_text(record->channel_name, record->channel_name_length);
    check_text(record->event, record->event_length);
    check_text(record->data, record->data_length);
    subject *s = subject_tagged(record->client_tag);
    if (is_handled && s != NULL && atomic_load(&s->phase) == OVER) {
        FAIL("a record of kind %u came after its client had been destroyed", record->kind);
    }
}

static void check_order(subject *s, const bird_record *record) {
    if (record->kind == BIRD_RECORD_STATE) {
        const bird_state_change *change = record->detail;
        CHECK(change != NULL);
        const int before = atomic_exchange(&s->state, change->current);
        if (before != change->previous) {
            FAIL("a change from %s came after one to %s", bird_state_name(change->previous), bird_state_name(before));
        }
    } else if (record->kind == BIRD_RECORD_EVENT && strcmp(record->event, "tick") == 0) {
        const int64_t tick = strtoll(record->data, NULL, 10);
        const int64_t before = atomic_exchange(&s->last_tick, tick);
        if (tick <= before) {
            FAIL("event %lld came after %lld", (long long)tick, (long long)before);
        }
    }
}

void subject_observe(const bird_record *record) {
    subject *s = subject_tagged(record->client_tag);
    /* What several threads take out of one queue has no order here any more. */
    if (s != NULL && atomic_load(&s->delivery) != BIRD_DELIVERY_QUEUE) {
        check_order(s, record);
    }
    if (record->kind == BIRD_RECORD_COMPLETION) {
        complete(record->operation_tag, record);
    }
}

/* ------------------------------------------------------------------------------------------------- operations ------ */

enum { OPERATIONS_MAX = 1 << 14, OPERATION_BITS = 14 };

/* A word is the generation and one of these. */
enum { FREE, ASKING, ASKED, TOLD_EARLY };

static struct operation {
    _Atomic uint64_t word, client_tag;
} operations[OPERATIONS_MAX];
static atomic_uint next_operation;

static struct operation *operation_of(uint64_t tag, uint64_t *generation) {
    *generation = (tag >> OPERATION_BITS) << 2;
    return &operations[tag & (OPERATIONS_MAX - 1)];
}

uint64_t operation_new(subject *s) {
    for (int tries = 0; s != NULL && tries < 32; tries++) {
        const uint32_t index = atomic_fetch_add(&next_operation, 1) & (OPERATIONS_MAX - 1);
        uint64_t word = atomic_load(&operations[index].word);
        if ((word & 3) == FREE && atomic_compare_exchange_strong(&operations[index].word, &word, word + 4 + ASKING)) {
            atomic_store(&operations[index].client_tag, subject_tag(s));
            return ((word >> 2) + 1) << OPERATION_BITS | index;
        }
    }
    return 0;
}

static void forget_operations(uint64_t client_tag) {
    for (int i = 0; i < OPERATIONS_MAX; i++) {
        uint64_t word = atomic_load(&operations[i].word);
        if ((word & 3) == ASKED && atomic_load(&operations[i].client_tag) == client_tag) {
            atomic_compare_exchange_strong(&operations[i].word, &word, word - ASKED);
        }
    }
}

void operation_asked(uint64_t tag, bool is_accepted) {
    if (tag == 0) {
        return;
    }
    uint64_t generation;
    struct operation *o = operation_of(tag, &generation);
    uint64_t word = generation | ASKING;
    if (atomic_compare_exchange_strong(&o->word, &word, is_accepted ? generation | ASKED : generation)) {
        /* The end of the client is the end of its operations. */
        const subject *s = subject_tagged(atomic_load(&o->client_tag));
        if (is_accepted && (s == NULL || atomic_load(&s->phase) != LIVING)) {
            word = generation | ASKED;
            atomic_compare_exchange_strong(&o->word, &word, generation);
        }
    } else if (is_accepted) {
        CHECK(word == (generation | TOLD_EARLY));
        atomic_store(&o->word, generation);
    } else {
        FAIL("an operation that was refused has completed");
    }
}

static void complete(uint64_t tag, const bird_record *record) {
    CHECK(record->detail != NULL);
    uint64_t generation;
    struct operation *o = operation_of(tag, &generation);
    uint64_t word = generation | ASKED;
    if (atomic_compare_exchange_strong(&o->word, &word, generation)) {
        return;
    }
    if (word == (generation | ASKING) && atomic_compare_exchange_strong(&o->word, &word, generation | TOLD_EARLY)) {
        return;
    }
    word = generation | ASKED; /* accepted in between */
    if (atomic_compare_exchange_strong(&o->word, &word, generation)) {
        return;
    }
    const subject *s = subject_tagged(record->client_tag);
    if (s != NULL && atomic_load(&s->phase) == LIVING) {
        FAIL("an operation has completed twice, now with %s",
             bird_status_name(((const bird_completion *)record->detail)->status));
    }
}

int operations_open(void) {
    int count = 0;
    for (int i = 0; i < OPERATIONS_MAX; i++) {
        if ((atomic_load(&operations[i].word) & 3) != FREE) {
            const subject *s = subject_tagged(atomic_load(&operations[i].client_tag));
            count += s != NULL && atomic_load(&s->connects);
        }
    }
    return count;
}
