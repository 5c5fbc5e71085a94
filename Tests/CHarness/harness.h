/*
 * The frame of the C harness: named cases, checks that end the process at the first failure, and a "world" (one client and
 * what it needs) for cases that talk to an edge.
 *
 * The edge of a case is Tests/integration/command_edge.py: it grants every signature and obeys client events on
 * "private-control" (see world_emit), so that a case decides what the server sends and when.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <birdrealtime.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many times longer everything takes: a build for valgrind says so. */
#ifndef SLOWNESS
#define SLOWNESS 1
#endif
/* No case takes nearly so long; it only ends one that hangs. */
#define DEADLINE_MS (30000 * SLOWNESS)

/* ------------------------------------------------------------------------------------------------------- cases ------ */

typedef void (*harness_case)(void);

#define HARNESS_CASE(name, needs)                                                                                      \
    static void name(void);                                                                                            \
    __attribute__((constructor)) static void register_##name(void) {                                                   \
        harness_register(#name, needs, name);                                                                          \
    }                                                                                                                  \
    static void name(void)

#define CASE(name) HARNESS_CASE(name, "nothing")   /* runs alone                                     */
#define EDGE_CASE(name) HARNESS_CASE(name, "edge") /* HOST:PORT of a command edge                    */
#define MODE_CASE(name) HARNESS_CASE(name, "mode") /* the same, once for each delivery mode          */
#define LOAD_CASE(name) HARNESS_CASE(name, "load") /* a server and arguments that its comment tells  */

void harness_register(const char *name, const char *needs, harness_case run);
/* Argument number `index` behind the case's name; ends the process when it is missing. */
const char *harness_argument(int index);
/* Sets the options that the command line names as KEY=VALUE, over those of the case. */
void harness_set_options(bird_options *options);

/* ------------------------------------------------------------------------------------------------------ checks ------ */

#define CHECK(condition) ((condition) ? (void)0 : harness_fail(__FILE__, __LINE__, "%s", #condition))
#define CHECK_STATUS(call, wanted) harness_check_status(__FILE__, __LINE__, #call, (call), (wanted))
#define CHECK_INT(value, wanted) harness_check_int(__FILE__, __LINE__, #value, (int64_t)(value), (int64_t)(wanted))
#define CHECK_TEXT(value, wanted) harness_check_text(__FILE__, __LINE__, #value, (value), (wanted))

_Noreturn void harness_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void harness_check_status(const char *file, int line, const char *text, bird_status got, bird_status wanted);
void harness_check_int(const char *file, int line, const char *text, int64_t got, int64_t wanted);
void harness_check_text(const char *file, int line, const char *text, const char *got, const char *wanted);

int64_t now_ms(void);
/* Of this process, from /proc; a thread that is ending does not count. */
int count_fds(void);
int count_threads(void);
/* 0 where what grows would be a sanitizer. */
long resident_kib(void);

/* ------------------------------------------------------------------------------------------------------- world ------ */

/* LOOP mode on a loop that `world_turn` runs on the calling thread. */
#define DELIVERY_HOST 3

/* One client with what it needs. In QUEUE mode `world_turn` dispatches its records on the calling thread. */
typedef struct world {
    int32_t delivery;
    bird_queue *queue; /* QUEUE mode only */
    bird_loop *loop;   /* DELIVERY_HOST only */
    bird_client *client;
    bird_channel *control;
} world;

/* The delivery mode that the runner chose for a MODE_CASE. */
int32_t harness_mode(void);

/* Options for the edge of the case and those of the command line, without queue; the caller destroys them. */
bird_options *world_options(int32_t delivery);
void set_option(bird_options *options, const char *key, const char *value);
/* A client from these options (destroyed by it), delivering to `queue` when that is not NULL. */
bird_client *client_from(bird_options *options, bird_queue *queue);
/* A client with world_options; every authorization is granted by an observer. */
world world_open(int32_t delivery);
/* The same, from options made by the caller and without the observer that grants. */
world world_open_with(int32_t delivery, bird_options *options);
void world_grant_requests(bird_client *client);
/* Connects and joins "private-control". */
void world_connect(world *w);
bird_channel *world_join(world *w, const char *name);
void world_close(world *w);

/* Lets time pass: a dispatch in QUEUE mode, a round of the host's loop, else a short sleep inside the caller's polling loop. */
void world_turn(world *w);
#define UNTIL(w, condition)                                                                                            \
    do {                                                                                                               \
        const int64_t until_end = now_ms() + DEADLINE_MS;                                                              \
        while (!(condition)) {                                                                                         \
            if (now_ms() > until_end) {                                                                                \
                harness_fail(__FILE__, __LINE__, "never became true: %s", #condition);                                 \
            }                                                                                                          \
            world_turn(w);                                                                                             \
        }                                                                                                              \
    } while (0)

int32_t client_state(bird_client *client);
int32_t channel_state(bird_channel *channel);

/* The edge sends this frame, byte for byte. */
void world_emit(world *w, const char *frame);
/* The edge sends an event with this JSON as data. */
void world_emit_event(world *w, const char *channel, const char *event, const char *data);
/* The edge ends the connection without a close frame; the client comes back by itself. */
void world_drop(world *w);
/* Returns when everything that the edge had sent before has been handed to handlers. */
void world_settle(world *w);
/* The edge floods "private-control" with numbered events until the stream is ended; then every one of them must have come, in order, on the
   same connection. */
void world_stream(world *w);
void world_end_stream(world *w);
/* How many events of the stream have come. */
int64_t world_streamed(void);

/* ---------------------------------------------------------------------------------------------------- recorder ------ */

#define JOURNAL_ENTRIES_MAX 64

/* What handlers did, in order; written and read from any thread. */
void journal_add(const char *format, ...) __attribute__((format(printf, 1, 2)));
int journal_count(void);
/* "" when there is no such entry. */
const char *journal_entry(int index);
void journal_clear(void);
/* All entries with a blank between them. */
const char *journal_text(void);

/* Both add user_data, a text, to the journal. */
void note_handler(const bird_record *record, void *user_data);
void note_destructor(void *user_data);

#endif
