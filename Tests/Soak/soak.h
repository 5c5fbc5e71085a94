/* The parts of the soak program. */
#ifndef SOAK_H
#define SOAK_H

#include <birdrealtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CHANNELS_MAX = 8,
    BINDINGS_MAX = 16,
    OPERATIONS_MAX = 64,
    ANSWERS_MAX = 8,
    NAMES_MAX = 32,
    NOTES_MAX = 64,
    NOTE_BYTES_MAX = 96,
    TEXT_BYTES_MAX = 256,
};

/* ---- settings.c: the command line ---- */

struct settings {
    uint64_t seed;
    unsigned clients;
    bool keeps; /* clients live until "destroy"; without it they come and go */
    const char *plain, *named, *tls, *dead, *ca_file, *auth, *member_auth, *app_key, *app_secret, *master_key,
        *log_file;
};

extern struct settings settings;

void settings_read(int argc, char **argv);

/* Says what is wrong, with the seed, and ends the program. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t now_ms(void);
void sleep_ms(int64_t ms);

/* ---- chance.c: seeded random numbers ---- */

struct chance {
    uint64_t state;
};

uint64_t chance_next(struct chance *chance);
/* Uniform in [low, high]. */
int64_t chance_between(struct chance *chance, int64_t low, int64_t high);
bool chance_percent(struct chance *chance, int percent);

/* ---- names.c: the channels ---- */

extern const char *const names[];
extern const size_t names_count;

/* names_count: it is none of them. */
size_t names_find(const char *name);
bool names_is_cache(size_t name);
bool names_is_presence(size_t name);

/* ---- slot.c: a place for one client after the other ---- */

enum mode { MODE_THREAD, MODE_QUEUE, MODE_LOOP, MODE_HOST, MODES };

/* What is known of one channel of a client; written on the delivery context. */
struct view {
    bool is_open;       /* subscribed, as the records tell */
    bool is_continuous; /* an event has come since */
    atomic_llong last;  /* number of its last event */
    atomic_uint successes;
};

struct held_channel {
    bird_channel *channel;
    size_t name;
};

struct late_answer {
    bird_request *request;
    int32_t kind;
    char connection_id[TEXT_BYTES_MAX], channel_name[TEXT_BYTES_MAX];
};

struct slot {
    unsigned index;
    enum mode mode;
    /* The worker's. */
    struct chance chance;
    bird_client *client, *former;
    bool is_dead_end; /* its edge does not exist */
    struct held_channel channels[CHANNELS_MAX];
    size_t channels_count;
    uint64_t bindings[BINDINGS_MAX];
    size_t bindings_count;
    unsigned successes_wanted[NAMES_MAX];
    /* The delivery context's. */
    struct chance handler_chance;
    struct view views[NAMES_MAX];
    bool may_drop, is_slow;
    int64_t edge_error_ms; /* when the edge last reported an error */
    /* Everybody's. */
    atomic_uint life;
    atomic_bool is_destroyed;        /* or about to be, by the worker or by a handler */
    atomic_bool is_closed;           /* or about to be */
    atomic_llong left_ms[NAMES_MAX]; /* when each channel was last left */
    atomic_llong registrations, destructors;
    atomic_llong gap_events;               /* what its policy has dropped, as the numbers of events tell */
    atomic_uint wished_names;              /* a bit each: what handlers have subscribed to */
    pthread_mutex_t lock;                  /* of what follows; not held while the library is called */
    char notes[NOTES_MAX][NOTE_BYTES_MAX]; /* what happened last */
    size_t notes_count;
    uint64_t operations[OPERATIONS_MAX];
    size_t operations_count;
    struct late_answer answers[ANSWERS_MAX];
    size_t answers_count;
    pthread_mutex_t turn; /* one at a time looks at a drained record, or ends the life that it may belong to */
    uint64_t last_drain;  /* the last that may still bring records of former lives */
};

uint64_t slot_tag(const struct slot *slot);
/* True, with a tag, if one more operation may begin. */
bool slot_begin(struct slot *slot, uint64_t *tag);
/* False: there is no such operation. */
bool slot_end(struct slot *slot, uint64_t tag);
size_t slot_open_operations(struct slot *slot);
/* The channel was left just now; "" and what is none of the names are fine. */
void slot_leaves(struct slot *slot, const char *name);
/* Keeps what happens for the report of what is wrong. */
void slot_note(struct slot *slot, const char *what, const char *subject, int64_t number);
/* Says what is wrong with the slot, and what happened to it before, and ends the program. */
_Noreturn void slot_fail(struct slot *slot, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- counters.c: of this process ---- */

struct counters {
    atomic_llong created, destroyed, registrations, destructors, log_registrations, log_destructors;
    atomic_llong accepted, completed, abandoned;
    atomic_llong events, dropped, ambiguous, attempts, connects, requests, requests_unanswered, log_entries, actions;
    atomic_llong losses[MODES];
    atomic_llong refused_connects;
};

extern struct counters counters;
/* Clients answer at once and at leisure no more. */
extern atomic_bool is_calm;

/* Notes how many threads and files there are before the library is used. */
void figures_begin(void);
/* Waits until there are as many again; fails if that takes too long. */
void figures_await_baseline(void);
/* A line of JSON on standard output. */
void figures_print(const char *when);

/* ---- heap.c: every allocation of the process ---- */

/* Blocks in use, and their bytes. */
long long heap_blocks(void);
long long heap_bytes(void);

/* ---- birth.c: a client with options of its own ---- */

void birth(struct slot *slot, bool is_calm_now);

/* ---- handlers.c: bindings ---- */

/* A handler for a channel's event, or with channel NULL the client's, event NULL for all. */
void handlers_bind(struct slot *slot, bird_channel *channel, const char *event);
/* The one that sees every record, unless records are drained. */
void handlers_observe(struct slot *slot);
void handlers_set_log(bird_options *options);

/* ---- answers.c: what the library asks ---- */

void answers_take(struct slot *slot, const bird_question *question);
/* Gives one that was put off. */
void answers_give(struct slot *slot);

/* ---- witness.c: each record is looked at once ---- */

/* drain: the number of the drain that brought it, 0 if a handler was called. */
void witness(const bird_record *record, uint64_t drain);
struct slot *slot_of(uint64_t client_tag);

/* ---- servers.c: two threads that empty a queue each, and one that runs a loop ---- */

void servers_start(uint64_t seed);
void servers_stop(void);
bird_queue *servers_queue(unsigned index);
bird_loop *servers_loop(void);
/* How many drains have begun. */
uint64_t servers_drains(void);

/* ---- life.c: what happens to a client; the functions of phases return true when the slot is as the phase wants it ---- */

bool life_act(struct slot *slot);
/* Connected, with its channels subscribed and nothing open. */
bool life_settle(struct slot *slot);
/* Has seen these events, the last ones of each channel. */
bool life_has_marks(struct slot *slot);
/* Connected and bare: no channel, no binding. */
bool life_strip(struct slot *slot);
bool life_end(struct slot *slot);
/* What there is to say of a slot that does not get there. */
void life_describe(struct slot *slot);

extern long long marks[NAMES_MAX];

/* Checks a status that a call has returned, and frees the error. True: BIRD_OK. */
bool accept(struct slot *slot, const char *call, bird_status status, bird_error **error);

#endif
