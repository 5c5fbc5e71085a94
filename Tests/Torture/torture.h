/*
 * Torture: several threads call every function of the header in random order, on handles that they share, in each delivery mode, while an
 * edge in the same process misbehaves (edge.c). What must hold all the while is checked where it happens, and ends the process with the
 * latest calls of every thread and the command that repeats the run.
 *
 * The calls of thread number i and the arguments that it draws come from the seed and i alone; those of a handler from its registration's. The
 * order between threads is the machine's.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include <birdrealtime.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* No call and no wait of a run takes nearly so long, whatever else the machine does. */
#define PATIENCE_MS 60000

int64_t now_ms(void);

/* ----------------------------------------------------------------------------------------------------- chance ------ */

/* Numbers that follow from the first (splitmix64). */
typedef struct chance {
    uint64_t state;
} chance;

static inline uint64_t mix(uint64_t value) {
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static inline uint64_t draw(chance *c) {
    return mix(c->state += UINT64_C(0x9E3779B97F4A7C15));
}

static inline uint64_t below(chance *c, uint64_t bound) {
    return draw(c) % bound;
}

/* True once in so many times. */
static inline bool once_in(chance *c, uint64_t times) {
    return below(c, times) == 0;
}

#define ONE_OF(c, array) ((array)[below((c), sizeof(array) / sizeof *(array))])

/* ------------------------------------------------------------------------------------------------------ calls ------ */

/* Statuses that a function may return, a bit each. */
#define MAY(status) (UINT64_C(1) << -(BIRD_##status))

/* One function of the header. A body draws the arguments, calls, checks, and returns the status. */
typedef struct call {
    const char *name;
    bird_status (*body)(chance *c);
    uint64_t may;
    int weight;
    bool is_fallible; /* returns a bird_status                               */
    bool waits;       /* refused in a handler                                */
    atomic_ullong count;
} call;

void call_register(const char *name, bird_status (*body)(chance *), uint64_t may, int weight, bool is_fallible,
                   bool waits);

#define ANY_CALL(function, may, weight, is_fallible, waits)                                                            \
    static bird_status call_##function(chance *c);                                                                     \
    __attribute__((constructor)) static void register_##function(void) {                                               \
        call_register(#function, call_##function, may, weight, is_fallible, waits);                                    \
    }                                                                                                                  \
    static bird_status call_##function(chance *c)

/* How often a function is called, relative to the others, and the statuses it may return beside BIRD_OK. */
#define CALL(function, weight, may) ANY_CALL(function, MAY(OK) | (may), weight, true, false)
#define WAITING_CALL(function, weight, may) ANY_CALL(function, MAY(OK) | MAY(ERR_CALLBACK) | (may), weight, true, true)
/* One that returns no status. */
#define PLAIN_CALL(function, weight) ANY_CALL(function, MAY(OK), weight, false, false)

/* Calls what the number says, and checks what it returns. */
void call_random(uint64_t number);
/* Calls every function once. */
void call_each(chance *c);
/* Name and count of each; false at the end. */
bool call_at(size_t index, const char **name, unsigned long long *count);

/* Where the calling thread is, which decides what calls may return. */
enum place { PLACE_PLAIN, PLACE_HANDLER, PLACE_DESTRUCTOR, PLACE_LOG };
extern _Thread_local enum place place;
/* Handlers and destructors below this one on the stack. */
extern _Thread_local int depth;

/* An error that the function may tell, and the check of it. */
typedef struct told {
    bird_error *error;
    bool is_wanted;
} told;

#define WANTED(t) ((t).is_wanted ? &(t).error : NULL)
told tell(chance *c);
/* The status again. */
bird_status heard(told *t, bird_status status);

/* ------------------------------------------------------------------------------------------------------ lanes ------ */

/* What a thread has called lately. Written by the thread, read by whoever prints it. */
uint64_t lane_begin(int function, uint64_t number);
void lane_end(uint64_t entry, bird_status status);
/* The call under way takes the handle of this place on a shelf. */
void lane_note(int shelf, int slot);
/* Fails when a call has been under way for longer than PATIENCE_MS. */
void lanes_check(void);
/* From a signal handler too. */
void lanes_print(void);
void lanes_catch_crashes(void);
const char *call_name(int function);

extern uint64_t run_seed;
extern int run_threads, run_seconds;

_Noreturn void torture_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define FAIL(...) torture_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(condition) ((condition) ? (void)0 : FAIL("%s", #condition))

/* -------------------------------------------------------------------------------------------------- shelves ------ */

/* Handles that all threads use. */
enum shelf { OPTIONS, CLIENTS, CHANNELS, QUEUES, LOOPS, BATCHES, REQUESTS, SHELVES };

/* Mostly one from the shelf, which may have ended long ago; sometimes NULL, one of another kind, one that has ended, or no handle. */
void *pick(chance *c, enum shelf shelf);
/* A place on the shelf. */
_Atomic(void *) *slot_of(chance *c, enum shelf shelf);
/* The place number, or NULL beyond the end. */
_Atomic(void *) *slot_at(enum shelf shelf, size_t index);
/* The handle has ended: nobody may ever find anything behind it. */
void bury(enum shelf shelf, void *handle);
void check_graves(void);

/* --------------------------------------------------------------------------------------------------- ledger ------ */

/* What must happen exactly once. */

/* User data of one registration. NULL: too many are registered. */
void *ticket_new(uint64_t number);
/* The registration does without its destructor. */
void ticket_drop(void *user_data);
void ticket_destructor(void *user_data);
/* Around each use; the result is a number for what the handler does. */
uint64_t ticket_enter(void *user_data);
void ticket_leave(void *user_data);
/* How many destructors have not run. */
int tickets_open(void);

/* A client: what is known of it while its records come. */
typedef struct subject subject;
subject *subject_new(int32_t delivery);
uint64_t subject_tag(const subject *s);
void subject_begin(subject *s, bird_client *client);
/* NULL if it is not in the ledger. */
subject *subject_of(bird_client *client);
void subject_connects(subject *s);
/* Before a destroy, and after it. */
void subject_ends(subject *s);
void subject_ended(subject *s);
/* A record that a handler got, or (is_handled false) that lies in a batch. */
void subject_check(const bird_record *record, bool is_handled);
/* The observer that every client has: what it sees is in order and complete. */
void subject_observe(const bird_record *record);

/* The tag of an operation that is about to be asked for; 0: it gets none. */
uint64_t operation_new(subject *s);
void operation_asked(uint64_t tag, bool is_accepted);
/* Those accepted, of clients that were told to connect, without their completion. */
int operations_open(void);

/* -------------------------------------------------------------------------------------------------- callbacks ------ */

void on_record(const bird_record *record, void *user_data);
void on_any_record(const bird_record *record, void *user_data);
void on_log(const bird_log_entry *entry, void *user_data);
void on_batch(const bird_record *records, size_t count, size_t stride);
/* Handlers answer every request now, and call nothing by themselves. */
extern atomic_bool callbacks_are_good;
extern atomic_ullong records_handled, records_drained, log_entries, requests_seen;

/* ----------------------------------------------------------------------------------------------------- texts ------ */

extern const char *const channel_names[];
extern const size_t channel_names_count;
const char *any_name(chance *c);
const char *any_event(chance *c);
/* A client with random options is put on a shelf; the one that was there ends. */
bird_status make_client(chance *c);
void destroy_client(bird_client *client);
extern char log_directory[64];

/* ------------------------------------------------------------------------------------------------------ edge ------ */

void edge_start(uint64_t seed);
int edge_port(void);
/* From now on it does what an edge should. */
void edge_heal(void);
void edge_stop(void);
extern atomic_ullong edge_connections, edge_upgrades;

#endif
