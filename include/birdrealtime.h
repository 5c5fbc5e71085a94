/*
 * birdrealtime.h: the C interface of bird-realtime, a client for Bird Realtime.
 *
 * This file is the single source of truth for the ABI: the Swift exports are type-checked against it, the linker
 * script is generated from it, and a test compares it with the exported symbols in both directions.
 *
 * CONVENTIONS
 *   Status      Every fallible call returns a bird_status: BIRD_OK (0) or a negative BIRD_ERR_* value. Tolerate unknown
 *               values. Success of a call that talks to the network means "accepted", not "arrived".
 *   Errors      A nullable bird_error ** receives an object that says more; free it with bird_error_free().
 *   Handles     Opaque values (client, channel, options, queue, loop, batch, request). They carry an index and generation and are
 *               never dereferenced: NULL, stale, foreign and destroyed handles give BIRD_ERR_HANDLE, never undefined behaviour.
 *   Strings     Names and option values are NUL-terminated UTF-8. Payloads are pointer and length; pass BIRD_NUL as the length of
 *               a NUL-terminated one. Strings in records have a length and a NUL behind it.
 *   Copy-out    Functions with (buffer, size, length) copy a string with its NUL and set *length to its length without the NUL.
 *               With too small a buffer nothing is copied and BIRD_ERR_SPACE is returned, *length being set all the same. length
 *               may be NULL.
 *   Times       int64_t milliseconds, suffix _ms; -1 is infinite.
 *   user_data   Comes with an optional destructor that runs exactly once, after the last call that could use it: on the
 *               delivery context after an unbind; on the calling thread before the call returns if the registration failed; on the
 *               destroying thread before bird_client_destroy() returns (in a callback: right after the client's that is running).
 *   Threads     Every function may be called from any thread and from every callback, except where its comment says what it returns
 *               instead. No lock is held while your code runs.
 *   Order       One total order per client over its records; none across clients. A success record precedes the channel's events.
 *               Nothing is delivered before the first bird_client_connect().
 *
 * THREAD TABLE: on which thread your code runs, and what it may not do there
 *   The delivery context of a client is
 *     BIRD_DELIVERY_THREAD  a thread "bird-delivery" of the library's pool; one client is on one of them at a time
 *     BIRD_DELIVERY_QUEUE   the thread inside bird_queue_dispatch() or, for destructors, bird_queue_drain()
 *     BIRD_DELIVERY_LOOP    the thread "bird-reactor" or, with bird_options_set_loop(), the one inside bird_loop_run_once()
 *
 *   your code                                     runs on                                              rules
 *   handlers of channels and of the client        the delivery context                                 1
 *   observers, request records                    the delivery context                                 1
 *   the log handler                               any thread that uses the client, or "bird-log"       3
 *   destructors
 *     after an unbind                             the delivery context                                 1
 *       before the first connect (not QUEUE)      the thread that unbinds, before it returns           as there
 *     of a failed registration                    the thread that registers, before it returns         as there
 *     at bird_client_destroy()                    the thread that destroys, before it returns          as there, 2
 *       in a handler, while a handler of that     the delivery context of that client, right after     1, 2
 *       client runs (this one or another)         the handler
 *
 *   1  bird_client_wait, _flush and _close (of any client): BIRD_ERR_CALLBACK. bird_queue_drain and _dispatch of the queue, and
 *      bird_loop_run_once of the loop, that this thread is inside of: BIRD_ERR_BUSY. bird_client_destroy() waits for no handler.
 *   3  Every call that takes a handle: BIRD_ERR_CALLBACK; the destroy functions, but for bird_options_destroy(), do nothing then either.
 *   2  Every call on the client: BIRD_ERR_HANDLE. Every call on its channels but bird_channel_release(): BIRD_ERR_CLOSED.
 *   All other calls do there what they do anywhere.
 *   Blocking in a callback holds up: THREAD, the client and one thread of the pool; QUEUE, the dispatch; LOOP, every client of the reactor
 *   or loop, their pings, and who destroys one of them.
 *   Threads of the library block all signals but those of faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP). While your code runs on one,
 *   the thread has the signal mask of the thread whose bird_client_connect() started it; afterwards it blocks again. None runs before the first bird_client_connect(), none after the last client but one that
 *   destroyed it in a handler and returns from there, a "bird-resolver" that a silent name server holds up, and a "bird-log" that a disk
 *   holds up. "bird-log" writes what log_console and log_file want.
 */
#ifndef BIRDREALTIME_H
#define BIRDREALTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One of the values in the section "status". */
typedef int32_t bird_status;

/* ---------------------------------------------------------------------------------------------------- version ------ */

#define BIRD_VERSION_MAJOR 0
#define BIRD_VERSION_MINOR 1
#define BIRD_VERSION_PATCH 0
#define BIRD_VERSION_STRING "0.1.0"
/* major * 1 000 000 + minor * 1 000 + patch */
#define BIRD_VERSION_NUMBER 1000
#define BIRD_VERSION_AT_LEAST(major, minor, patch) (BIRD_VERSION_NUMBER >= (major) * 1000000 + (minor) * 1000 + (patch))

/* The version of the loaded library as a number (compare with BIRD_VERSION_NUMBER) and as text. Cannot fail. */
int32_t bird_version_number(void);
const char *bird_version_string(void);
/* BIRD_OK if a program compiled with a header of this number can use the loaded library; BIRD_ERR_UNSUPPORTED if the library is older, or of
   another major version (below 1.0: another minor version). */
bird_status bird_version_check(int32_t header_number);
/* At the start of a program: the check for the header it was compiled with. At compile time use #if BIRD_VERSION_AT_LEAST(...). */
#define BIRD_VERSION_CHECK() bird_version_check(BIRD_VERSION_NUMBER)

/* ----------------------------------------------------------------------------------------------------- status ------ */

#define BIRD_OK 0
#define BIRD_ERR_ARGUMENT (-1) /* NULL, too long, malformed or out of range; the error names the argument       */
#define BIRD_ERR_HANDLE (-2)   /* not a handle of the wanted kind, or no longer one                              */
#define BIRD_ERR_CLOSED (-3)   /* the client was closed or its destruction has begun                             */
#define BIRD_ERR_OPTION (-4)   /* unknown option key                                                             */
#define BIRD_ERR_VALUE (-5)    /* the option is known, the value is not acceptable                               */
#define BIRD_ERR_STATE (-6)    /* not possible in the present connection state                                   */
#define BIRD_ERR_NAME (-7)     /* a channel or event name that the protocol does not allow (Bird protocol 1)     */
#define BIRD_ERR_NOT_SUBSCRIBED (-8) /* the channel is not subscribed now; wait for its success record                */
#define BIRD_ERR_UNSUBSCRIBED (-9) /* the channel was unsubscribed; subscribe again for a new reference              */
#define BIRD_ERR_PAYLOAD (-10)     /* a payload that is not JSON                                                     */
#define BIRD_ERR_SIZE (-11)        /* larger than the limit that the error names                                     */
#define BIRD_ERR_FULL (-12)        /* a bounded queue is full; retriable                                             */
#define BIRD_ERR_BUSY (-13)        /* the queue is being drained or dispatched by another thread                     */
#define BIRD_ERR_CALLBACK (-14)    /* a waiting call made inside a handler                                           */
#define BIRD_ERR_TIMEOUT (-15)     /* the time given, or a deadline of the library, has passed                       */
#define BIRD_ERR_FORKED (-16)      /* the handle belongs to the parent process                                       */
#define BIRD_ERR_SPACE (-17)       /* the caller's buffer is too small                                               */
#define BIRD_ERR_ANSWERED (-18)    /* the request has been answered, or its deadline has passed                      */
#define BIRD_ERR_UNSUPPORTED (-19) /* not available for this kind of channel or in this build                        */
#define BIRD_ERR_SYSTEM (-20)      /* the operating system refused a resource (the message says which)               */
#define BIRD_ERR_WOKEN (-21)       /* bird_queue_wake() ended the wait                                               */
#define BIRD_ERR_DENIED (-30)      /* the authorizer or the edge said no; final until asked again                    */
#define BIRD_ERR_AUTH (-31)        /* the authorizer could not be reached or gave no usable answer                   */
#define BIRD_ERR_REFUSED (-32)     /* the edge refused the connection (close codes 4000-4099); terminal              */
#define BIRD_ERR_LOST (-33)        /* the connection was lost before the answer                                      */
#define BIRD_ERR_RESOLVE (-34)     /* the host name could not be resolved                                            */
#define BIRD_ERR_CONNECT (-35)     /* no TCP connection                                                              */
#define BIRD_ERR_TLS (-36)         /* no verified TLS session                                                        */
#define BIRD_ERR_PROXY (-37)       /* the proxy could not be reached, or refused or broke the connection             */
#define BIRD_ERR_UPGRADE (-38)     /* the server did not accept the WebSocket upgrade                                */
#define BIRD_ERR_PROTOCOL (-39)    /* the server broke RFC 6455 or the Bird protocol                                 */
#define BIRD_ERR_SERVER (-40)      /* the edge reported an error that names no channel (Bird protocol 16)            */
#define BIRD_ERR_DECRYPTION (-41)  /* an event of an encrypted channel could not be opened                          */
#define BIRD_ERR_GAVE_UP (-42)     /* as many reconnects as reconnect_attempts_max were in vain; connect begins anew */
#define BIRD_ERR_IDENTITY (-43)    /* the edge accepted a signin without saying which member signed in               */
#define BIRD_ERR_MALFORMED (-44)   /* a message of the edge was malformed and is lost                                */

/* The constant's name ("BIRD_ERR_NAME") and a sentence. Never NULL; unknown values give a text that says so. */
const char *bird_status_name(bird_status status);
const char *bird_status_message(bird_status status);

/* ------------------------------------------------------------------------------------------------------ error ------ */

/* What went wrong. In a record it belongs to the record; from an out-parameter it is the caller's. Accessors accept NULL. */
typedef struct bird_error bird_error;

#define BIRD_AREA_ARGUMENT 1 /* the call itself: argument, option, handle, state */
#define BIRD_AREA_CONNECTION 2
#define BIRD_AREA_CHANNEL 3
#define BIRD_AREA_AUTHORIZATION 4
#define BIRD_AREA_SIGNIN 5
#define BIRD_AREA_SYSTEM 6

bird_status bird_error_status(const bird_error *error);
int32_t bird_error_area(const bird_error *error);
/* The option, argument or step concerned ("ws_host", "event", "tls", ...), or "". Valid as long as the error. */
const char *bird_error_field(const bird_error *error);
/* A sentence for a person. Valid as long as the error. */
const char *bird_error_message(const bird_error *error);
/* The code of the wire: a WebSocket close code or the code of a bird:error frame; 0 if there is none. */
int32_t bird_error_code(const bird_error *error);
/* The HTTP status of the upgrade, the proxy or the authorizer; 0 if there is none. */
int32_t bird_error_http_status(const bird_error *error);
/* The CURLcode of libcurl; 0 if there is none. */
int32_t bird_error_curl_code(const bird_error *error);
/* The URL of the authorizer asked, or "". Valid as long as the error. */
const char *bird_error_endpoint(const bird_error *error);
/* The name of the channel that failed or that the edge names in its error, or "". Valid as long as the error. */
const char *bird_error_channel(const bird_error *error);
/* 1 if the library tries again by itself or the same call may succeed later, else 0. */
int32_t bird_error_retriable(const bird_error *error);
/* Frees an error from an out-parameter; NULL is fine. Not for errors found in records. */
void bird_error_free(bird_error *error);

/* ---------------------------------------------------------------------------------------------------- handles ------ */

typedef struct bird_options bird_options;
typedef struct bird_client bird_client;
typedef struct bird_channel bird_channel;
typedef struct bird_queue bird_queue;
typedef struct bird_loop bird_loop;
typedef struct bird_batch bird_batch;
typedef struct bird_request bird_request;
typedef struct bird_members bird_members;

typedef struct bird_record bird_record;
typedef void (*bird_handler)(const bird_record *record, void *user_data);
typedef void (*bird_destructor)(void *user_data);

#define BIRD_NUL SIZE_MAX /* length of a payload that ends at its NUL */

/* ---------------------------------------------------------------------------------------------------- options ------ */

#define BIRD_DELIVERY_THREAD 0 /* default: handlers run on the shared pool          */
#define BIRD_DELIVERY_QUEUE 1  /* the program drains or dispatches a bird_queue     */
#define BIRD_DELIVERY_LOOP 2   /* handlers run on the reactor thread                */

/* OPTION KEYS: written by scripts/write-options from the table of the library */
/*
 * The key (type, default): the problem that it solves. docs/options.md has units and ranges too. Those
 * marked live can be changed on a client that exists.
 *   app_key (text)                        Says which app the connection is for; public, and required.
 *   region (text)                         Where the edge is: its host name follows from it. One of region and ws_host is required.
 *   ws_host (text)                        An edge of another name instead of a region: one of your own, or the local one.
 *   dialect (text, "bird")                For servers that speak Pusher Channels protocol 7 instead of Bird's: names, keys and
 *                                         authorization requests are theirs, see docs/pusher.md.
 *   allow_insecure (bool, 0)              Lets tests do without certificates: plaintext for exactly localhost, 127.0.0.1 and [::1]; every
 *                                         other host gets TLS all the same.
 *   address (text)                        Connects to this address, also behind a proxy, where the name of the edge cannot or should not be
 *                                         resolved.
 *   auth_endpoint (text)                  Is asked by POST whether this connection may join a private or presence channel.
 *   member_auth_endpoint (text)           Is asked by POST as which member this connection may sign in.
 *   authorizer (bool, 0)                  For programs that authorize channels by other means than a POST: they are asked by a request
 *                                         record instead.
 *   member_authorizer (bool, 0)           The same for signin.
 *   header_provider (bool, 0)             For tokens that expire: the program is asked by a request record for the headers of each
 *                                         authorization POST.
 *   ca_file (text)                        Trusts the CA certificates of this file instead of the system's: for a CA of your own. What
 *                                         cannot be read, here and below, is refused when the client is created.
 *   ca_path (text)                        The same for a directory of certificates under the names that OpenSSL gives them (openssl
 *                                         rehash).
 *   client_cert_file (text)               For edges and proxies that ask their clients for a certificate.
 *   client_key_file (text)                The key of client_cert_file, unless that file has it too.
 *   tls_min_version (text)                Refuses servers that speak only older versions of TLS. Unset: 1.2, or 1.3 where the machine's
 *                                         OpenSSL configuration demands it (MinProtocol).
 *   tls_verify_name (text)                The name that the edge's certificate must be for, and that is sent as SNI, where it is not the
 *                                         host's; the upgrade goes to the host all the same. Names outside ASCII in their xn-- form.
 *   proxy (text)                          The way out where there is no direct one; URL with [USER:PASSWORD@]HOST[:PORT], user and password
 *                                         percent-encoded. Unset: https_proxy, all_proxy and no_proxy as they are when the client is
 *                                         created.
 *   connect_timeout_ms (int, 15000)       A host that swallows packets: an attempt ends this long after its start unless the handshake has
 *                                         come.
 *   auth_timeout_ms (int, 10000)          An authorizer that hangs: one authorization, POST or request record, may take this long.
 *   answer_timeout_ms (int, 30000)        An edge that does not answer a subscribe or signin: it counts as failed for now this long after
 *                                         the frame was written.
 *   message_timeout_ms (int, 60000)       An edge that stops in the middle of a message: it must be complete this long after its first
 *                                         byte.
 *   preset (text, "default", live)        Settings that belong together, which later ones override. staged, as XMPP clients do: reconnect
 *                                         staged with the default reconnect_stages, activity_timeout_ms 20000, pong_timeout_ms 10000,
 *                                         pong_misses_max 2. default: these as they are when nothing is set.
 *   activity_timeout_ms (int, live)       Connections that die without a word: after so much silence a ping is sent. Unset: the edge's
 *                                         value, 120000 until it names one; the edge's is used too if it is smaller.
 *   pong_timeout_ms (int, 30000, live)    Silence after a ping before it counts as missed.
 *   pong_misses_max (int, 1, live)        Links that lose packets: pings missed in a row, each sent as soon as the one before is missed,
 *                                         before the connection counts as dead and the next attempt begins.
 *   reconnect (text, "jitter", live)      How long to wait before each attempt. jitter: drawn from windows that double, so that many
 *                                         clients do not come back in step; fixed: reconnect_delay_ms; staged: reconnect_stages.
 *   backoff_base_ms (int, 1000, live)     Keeps many clients from coming back at once: the first wait of jitter is drawn between 0 and
 *                                         this, and each failed attempt doubles it. Authorizers that fail are asked again in the same way.
 *   backoff_max_ms (int, 30000, live)     The longest wait that is drawn: how soon clients are back after a long outage.
 *   reconnect_delay_ms (int, 3000, live)  The wait of reconnect fixed.
 *   reconnect_stages (text, "5x3000,5x9000,5x15000", live) The waits of reconnect staged, for people who wait in front of a screen: soon at
 *                                         first, then patient. After the last stage the schedule begins again.
 *   reconnect_attempts_max (int, 0, live) For programs that would rather ask their user: attempts in a row, made or refused, that are in
 *                                         vain before the client gives up until it is told to connect. 0: never.
 *   flap_guard (bool, 1, live)            Slows reconnects of connections that keep dying young, whatever their close code and the policy
 *                                         say.
 *   network_watch (bool, 1)               Connections that a change of the network has cut off, and waits that it has made needless:
 *                                         listens to the kernel (rtnetlink), pings at once when the default route or the connection's own
 *                                         address has gone, and tries at once to connect when there is one again.
 *   may_reconnect (bool, 0)               For programs that know when it makes no sense: they are asked by a request record before each
 *                                         planned attempt; no answer for 1 s is a yes.
 *   message_bytes_max (int, 16777216)     Bounds what the edge can make this process allocate: a larger message closes the connection with
 *                                         1009.
 *   client_event_bytes_max (int, 10240)   The edge closes connections for client events that are too large: larger ones are refused here.
 *   outbound_bytes_max (int, 1048576)     A network that is slower than the program: more bytes waiting to be written are refused (full).
 *   delivery (text, "thread")             Where handlers run: on the library's pool, on the threads that empty a bird_queue (implied by
 *                                         bird_options_set_queue), or on the reactor.
 *   queue_bytes_max (int, 8388608)        Bounds the memory of a program that does not keep up (QUEUE and THREAD): bytes of records not yet
 *                                         consumed, beyond which overflow decides.
 *   queue_records_max (int, 65536)        The same in records.
 *   overflow (text, "pause")              For a program that does not keep up: stop reading the socket, which loses nothing while the edge
 *                                         keeps the connection, or drop application events, the oldest or the newest. Without effect in
 *                                         LOOP, which has no queue.
 *   records (int, 262142)                 Mask of (1 << kind): the kinds of records that reach the program; the default is every kind of
 *                                         this version.
 *   log_level (text, live)                What the program itself is told of what the library does, by its log handler or, without one, by
 *                                         log records. Unset: info for a handler, else off.
 *   log_areas (text, "all", live)         Keeps every log to what is looked into: the areas that entries come from. Verbose wire is an
 *                                         entry for each message.
 *   log_console (text, "off", live)       What goes to standard error, a line an entry.
 *   log_file (text)                       A log that is there when something has gone wrong: a file for entries, made with mode 0600, that
 *                                         begins anew when it is old or large; the older ones are log_file.1, log_file.2 and so on. Several
 *                                         processes may share it.
 *   log_file_level (text, "info", live)   What goes to log_file.
 *   log_file_bytes_max (int, 10485760)    Keeps a log from filling the disk: a file that would become larger begins anew. 0: no limit.
 *   log_file_age_max_ms (int, 86400000)   A file for each day, or whatever time: an entry that comes this long after a file's first begins
 *                                         a new one. 0: no limit.
 *   log_files_kept (int, 7)               How far the log goes back: files that are kept, the newest included.
 */
/* OPTION KEYS: end */

/*
 * SLOW PROGRAMS (QUEUE and THREAD)
 *   An event is taken while the queue is below both of its bounds; one alone may be larger than queue_bytes_max. Beyond that, overflow
 *   decides: reading pauses until half of the queue is free, or events are dropped, those that have waited longest (and were not drained
 *   yet) or those that come. What is dropped is counted in events_dropped, and told once per episode by an error record (BIRD_ERR_FULL, field
 *   "overflow"); an episode ends when less than half of the bounds is used.
 *   Records of every other kind, and bird:cache_miss, are never dropped and may exceed the bounds by the room reserved for them.
 *   When that is used up too, reading pauses under every policy, and bird_client_connect, _subscribe and _signin return BIRD_ERR_FULL.
 *   While reading pauses pings go out, no planned attempt begins and no authorization is asked for. An edge that is silent although
 *   all that it sent has been read is given up after pong_timeout_ms. The memory behind the records may be a few times their bytes.
 */
#define BIRD_QUEUE_RESERVED_RECORDS 1024
#define BIRD_QUEUE_RESERVED_BYTES 1048576

/* New options with every default. Destroy with bird_options_destroy(); creating a client copies them. */
bird_status bird_options_create(bird_options **options);
void bird_options_destroy(bird_options *options);
/* Sets one option from text, number ("5000") and bool ("0", "1", "true", "false") included. BIRD_ERR_OPTION: unknown key;
   BIRD_ERR_VALUE: unacceptable value, the error says what is acceptable. */
bird_status bird_options_set(bird_options *options, const char *key, const char *value, bird_error **error);
/* The same for numbers and booleans; BIRD_ERR_VALUE for an option of type text. */
bird_status bird_options_set_int(bird_options *options, const char *key, int64_t value, bird_error **error);

#define BIRD_OPTION_TEXT 0
#define BIRD_OPTION_INT 1
#define BIRD_OPTION_BOOL 2

#define BIRD_GROUP_EDGE 0
#define BIRD_GROUP_AUTHORIZATION 1
#define BIRD_GROUP_TLS 2 /* and proxies */
#define BIRD_GROUP_DEADLINES 3
#define BIRD_GROUP_RECONNECT 4 /* and keep-alive */
#define BIRD_GROUP_LIMITS 5
#define BIRD_GROUP_DELIVERY 6
#define BIRD_GROUP_OBSERVABILITY 7

/* One option, for programs that offer them all. Set struct_size to sizeof before the call. Strings are valid for ever, never NULL. */
typedef struct bird_option {
    uint32_t struct_size;
    int32_t type; /* BIRD_OPTION_*                                                             */
    const char *key;
    const char *unit;         /* "ms", "bytes", "records", "mask", "path", "URL" or ""                     */
    const char *default_text; /* as bird_options_set takes it; "": unset, and purpose says what holds then */
    const char *accepts;      /* text: what is accepted, for a person; else ""                             */
    int64_t minimum;          /* int and bool                                                              */
    int64_t maximum;
    int32_t group;       /* BIRD_GROUP_*                                                              */
    int32_t is_live;     /* 1: can be changed on a client that exists                                 */
    const char *purpose; /* the problem that it solves                                                */
} bird_option;

/* How many options there are, and each of them, in the order of the list above. BIRD_ERR_ARGUMENT: no such index. */
size_t bird_options_count(void);
bird_status bird_options_describe(size_t index, bird_option *option);
/* A header sent with each authorization POST; the same name again replaces it. Values never appear in messages. */
bird_status bird_options_set_auth_header(bird_options *options, const char *name, const char *value,
                                         bird_error **error);
/* Delivers to this queue (implies "delivery" = "queue"). The queue must outlive the client. */
bird_status bird_options_set_queue(bird_options *options, bird_queue *queue);
/* The client's sockets and timers are driven by this loop instead of the reactor thread, in every delivery mode. The loop must outlive
   the client. */
bird_status bird_options_set_loop(bird_options *options, bird_loop *loop);
/* A number of the program's that every record of the client carries. */
bird_status bird_options_set_tag(bird_options *options, uint64_t tag);

/* --------------------------------------------------------------------------------------------------------- log ------ */

/* Levels: how much an entry matters, or how much a sink wants. */
#define BIRD_LOG_OFF 0
#define BIRD_LOG_ERROR 1   /* the library cannot go on by itself      */
#define BIRD_LOG_WARN 2    /* something failed and is tried again     */
#define BIRD_LOG_INFO 3    /* what an operator follows a client by    */
#define BIRD_LOG_VERBOSE 4 /* every step                              */

/* Areas, a bit each: what an entry is about. */
#define BIRD_LOG_AREA_CONNECTION 1 /* attempts, states, plans, pings                       */
#define BIRD_LOG_AREA_CHANNEL 2
#define BIRD_LOG_AREA_AUTHORIZATION 4
#define BIRD_LOG_AREA_SIGNIN 8
#define BIRD_LOG_AREA_DELIVERY 16 /* the way of records to the program                    */
#define BIRD_LOG_AREA_NETWORK 32  /* what the machine's network does                      */
#define BIRD_LOG_AREA_WIRE 64     /* verbose: every message, without its contents         */
#define BIRD_LOG_AREA_PROCESS 128 /* forks, the end of the process, the log itself        */

/* One entry. It holds no secret: no signature, shared secret, member_data, payload, header value, credential or query of a URL. Valid
   until the handler returns or, as the detail of a BIRD_RECORD_LOG record, as long as that. Fields are only added at the end. */
typedef struct bird_log_entry {
    uint32_t struct_size;
    int32_t level;      /* BIRD_LOG_ERROR to BIRD_LOG_VERBOSE                             */
    int32_t area;       /* one BIRD_LOG_AREA_*                                            */
    bird_status status; /* of the failure that it tells, BIRD_OK if it tells none         */
    int64_t time_ms;    /* milliseconds since 1970, UTC                                   */
    uint64_t client_tag;
    uint64_t client_number; /* of this process, from 1: tells clients apart that have no tag  */
    const char *message;    /* one line, at most 2048 bytes                                   */
    size_t message_length;
    const char *channel_name; /* "" if it is about none                                       */
} bird_log_entry;

typedef void (*bird_log_handler)(const bird_log_entry *entry, void *user_data);

/* Calls the handler for each entry that the options log_level and log_areas want. It runs at once on the thread where something happens,
   the library's or one that calls it, and on several at a time; it must be quick, and must not call the library (see the thread table). The
   destructor runs when the options and every client made from them have ended: in the last bird_options_destroy() or
   bird_client_destroy(), or right after a call of the handler that another thread is inside of then. Setting another handler replaces it. */
bird_status bird_options_set_log(bird_options *options, bird_log_handler handler, void *user_data,
                                 bird_destructor destructor);
/* "off", "error", "warn", "info", "verbose" and "connection", "channel", ..., as options take them; "unknown" for other numbers. */
const char *bird_log_level_name(int32_t level);
const char *bird_log_area_name(int32_t area);

/* ----------------------------------------------------------------------------------------------------- client ------ */

#define BIRD_STATE_INITIALIZED 0
#define BIRD_STATE_CONNECTING 1
#define BIRD_STATE_CONNECTED 2
#define BIRD_STATE_UNAVAILABLE 3  /* dropped, a reconnect is planned           */
#define BIRD_STATE_DISCONNECTED 4 /* by bird_client_disconnect(), or given up  */
#define BIRD_STATE_FAILED 5       /* refused by the edge; no retry             */

/* Creates a client in state initialized; no thread, no socket yet. BIRD_ERR_VALUE with the option's name in the error's field. */
bird_status bird_client_create(bird_options *options, bird_client **client, bird_error **error);
/* Ends the client at once: closes the socket, waits for a handler of the client that is running (not when called from a handler), never
   for the network; runs the destructors left. No record and no call of a handler begins after it. NULL is fine. */
bird_status bird_client_destroy(bird_client *client);
/* Opens a connection, now if one is only planned; that needs no permission. No effect when connecting or connected. */
bird_status bird_client_connect(bird_client *client, bird_error **error);
/* Closes and plans nothing; channels and bindings stay for a later connect. */
bird_status bird_client_disconnect(bird_client *client);
/* State unavailable: the planned attempt begins now, without asking (may_reconnect), and the schedule of the attempts after it begins
   again. No effect in every other state: only bird_client_connect() leaves initialized, disconnected and failed. */
bird_status bird_client_retry_now(bird_client *client);
/* Changes an option that is marked "live" above, as bird_options_set() and _set_int() do. It takes effect in order with the other calls, on
   the attempt that is planned, planned anew from the end of the one before, and on the ping that is due or waits for its answer, at
   once. BIRD_ERR_OPTION, _VALUE; BIRD_ERR_STATE: the option is fixed when the client is created. */
bird_status bird_client_set(bird_client *client, const char *key, const char *value, bird_error **error);
bird_status bird_client_set_int(bird_client *client, const char *key, int64_t value, bird_error **error);

#define BIRD_NETWORK_UP 1      /* there is a network (again)                    */
#define BIRD_NETWORK_DOWN 2    /* it has gone, or is another one now            */
#define BIRD_NETWORK_RESUMED 3 /* the machine was suspended and goes on         */

/* What the library sees by itself (option network_watch; a suspend always), from a host that knows better. UP, RESUMED: the planned attempt
   of an unavailable client begins now, or as soon as the attempt under way has failed; may_reconnect is asked as always. DOWN, RESUMED:
   a connected client pings now and is unavailable unless something comes within 5 s (or pong_timeout_ms, if that is shorter). Both
   at most once a second; the attempts of more than 8 clients on one reactor are spread over a second, of more than 1000 over
   longer. No effect otherwise. BIRD_ERR_ARGUMENT: there is no such hint. */
bird_status bird_client_network_hint(bird_client *client, int32_t hint);
/* Waits until the client is in the state, at most timeout_ms. BIRD_ERR_TIMEOUT; if another state was asked for, BIRD_ERR_REFUSED when it
   has failed and BIRD_ERR_GAVE_UP when it has given up; BIRD_ERR_CALLBACK in a handler. */
bird_status bird_client_wait(bird_client *client, int32_t state, int64_t timeout_ms);
/* Waits until everything accepted so far has been written to the socket. BIRD_ERR_TIMEOUT; BIRD_ERR_CALLBACK in a handler. */
bird_status bird_client_flush(bird_client *client, int64_t timeout_ms);
/* Sends what is queued, closes with 1000 and ends: later calls but destroy give BIRD_ERR_CLOSED. BIRD_OK: the edge has answered the close,
   or there was no connection. BIRD_ERR_TIMEOUT if it did not within timeout_ms, or within 2 s, the longest that the library waits for it;
   BIRD_ERR_LOST if the connection broke first. The client is closed all the same. BIRD_ERR_CALLBACK in a handler. */
bird_status bird_client_close(bird_client *client, int64_t timeout_ms);

bird_status bird_client_state(bird_client *client, int32_t *state);
const char *bird_state_name(int32_t state);
/* The connection id, "" when there is none. Copy-out. */
bird_status bird_client_connection_id(bird_client *client, char *buffer, size_t size, size_t *length);

/* Subscribes (idempotent) and gives a counted reference, the same for the same name; release it with bird_channel_release(). With a tag
   other than 0 exactly one completion record follows: success (at once on a subscribed channel), denial, or the end of the wish. */
bird_status bird_client_subscribe(bird_client *client, const char *name, uint64_t tag, bird_channel **channel,
                                  bird_error **error);

#define BIRD_SIGNIN_REFRESH 1u /* sign in again although signed in (for a changed watchlist) */

/* Signs in as a member, now and again on each later connection. Concurrent calls share one frame. BIRD_ERR_STATE in states failed and
   disconnected. With a tag other than 0 exactly one completion record follows; data is the member_data as JSON. */
bird_status bird_client_signin(bird_client *client, uint32_t flags, uint64_t tag, bird_error **error);
/* The id of the member signed in, "" when there is none. Copy-out. */
bird_status bird_client_member_id(bird_client *client, char *buffer, size_t size, size_t *length);
/* The member channel: events sent to the member signed in. A counted reference; it can be bound before signin, and neither
   triggered on nor unsubscribed. */
bird_status bird_client_member_channel(bird_client *client, bird_channel **channel);

/* ---------------------------------------------------------------------------------------------------- channel ------ */

#define BIRD_CHANNEL_PUBLIC 0
#define BIRD_CHANNEL_PRIVATE 1
#define BIRD_CHANNEL_PRESENCE 2
#define BIRD_CHANNEL_ENCRYPTED 3
#define BIRD_CHANNEL_MEMBER 4

#define BIRD_CHANNEL_IDLE 0        /* wanted, not connected                      */
#define BIRD_CHANNEL_AUTHORIZING 1 /* the authorizer is being asked              */
#define BIRD_CHANNEL_PENDING 2     /* the edge has been asked                    */
#define BIRD_CHANNEL_SUBSCRIBED 3
#define BIRD_CHANNEL_FAILED 4 /* denied; subscribe again to retry           */
#define BIRD_CHANNEL_UNSUBSCRIBED 5

/* Gives one reference back. It never unsubscribes; bindings stay. */
void bird_channel_release(bird_channel *channel);
/* Unsubscribes for all holders: later calls on the reference give BIRD_ERR_UNSUBSCRIBED, its bindings are removed. */
bird_status bird_channel_unsubscribe(bird_channel *channel);
/* Sends a client event ("client-...") to the other subscribers. data is JSON, NULL for none. Accepted means queued; what was
   not written when the connection is lost is counted and never replayed. BIRD_ERR_NAME, _PAYLOAD, _SIZE, _NOT_SUBSCRIBED, _FULL, and
   _UNSUPPORTED on public, encrypted and member channels. */
bird_status bird_channel_trigger(bird_channel *channel, const char *event, const void *data, size_t length,
                                 bird_error **error);
bird_status bird_channel_state(bird_channel *channel, int32_t *state);
bird_status bird_channel_kind(bird_channel *channel, int32_t *kind);
/* Copy-out. */
bird_status bird_channel_name(bird_channel *channel, char *buffer, size_t size, size_t *length);
/* A number of the program's that later records of the channel carry. */
bird_status bird_channel_set_tag(bird_channel *channel, uint64_t tag);

/* Presence. The roster advances as records are delivered: inside a handler it is that record's roster (QUEUE with drain: that of the
   end of the batch; for the roster of each record, begin with the members of bird_subscription, then add and remove those of later
   records). BIRD_ERR_UNSUPPORTED on other kinds of channel. */
/* The member id of this connection, "" when not subscribed. Copy-out. */
bird_status bird_channel_my_id(bird_channel *channel, char *buffer, size_t size, size_t *length);
bird_status bird_channel_member_count(bird_channel *channel, size_t *count);
/* A snapshot of the roster, in order of arrival; free it with bird_members_free(). */
bird_status bird_channel_members(bird_channel *channel, bird_members **members);
size_t bird_members_count(const bird_members *members);
/* The id, and the member_info as JSON ("" when there is none), of one member; valid until bird_members_free(). "" beyond the end. */
const char *bird_members_id(const bird_members *members, size_t index);
const char *bird_members_info(const bird_members *members, size_t index);
/* The length of the id, which may contain a NUL; 0 beyond the end. */
size_t bird_members_id_length(const bird_members *members, size_t index);
void bird_members_free(bird_members *members);

/* --------------------------------------------------------------------------------------------------- bindings ------ */

/* Handlers get what is delivered after the call. How things stand is told late as well, once and before anything else that the handler
   gets: a handler that is bound to bird:subscription_succeeded or bird:subscription_error of a channel when that is how its subscription
   stands gets the record again; an observer of BIRD_RECORD_WATCHLIST gets who is online now and who is offline. Nothing else is told
   late: what the edge sends with its answer (a cached event, the first count) may be delivered before a handler is bound to a channel
   subscribed while connected. Bind before bird_client_connect(), or to the client, whose handlers get it. binding may be NULL. */
/* Calls the handler for each record of the channel with this event name, application events and bird:subscription_succeeded,
   bird:subscription_error, bird:member_added, bird:member_removed, bird:connection_count, bird:error and bird:decryption_error alike;
   event NULL means every application event. bird:error is an error of the edge that names the channel, such as a client event that it
   refused: the record is a BIRD_RECORD_ERROR, which observers get as well, and its data are those of the edge's message. Handlers of one event run in this order: the channel's named ones, the client's named ones, then those for every
   event, the channel's and the client's, each in order of binding. What is told besides application events has the names of both
   dialects: bird:member_added and pusher:member_added are one event, and its records have the name of the client's dialect. */
bird_status bird_channel_bind(bird_channel *channel, const char *event, bird_handler handler, void *user_data,
                              bird_destructor destructor, uint64_t *binding, bird_error **error);
/* The same for every channel of the client. */
bird_status bird_client_bind(bird_client *client, const char *event, bird_handler handler, void *user_data,
                             bird_destructor destructor, uint64_t *binding, bird_error **error);
/* Calls the handler for each record whose kind is in the mask (1 << kind), after the bindings of its event. */
bird_status bird_client_observe(bird_client *client, uint64_t kinds, bird_handler handler, void *user_data,
                                bird_destructor destructor, uint64_t *binding, bird_error **error);
/* Removes a binding or an observer of the client or of one of its channels. Never waits: at most one call that is already running ends
   after it. BIRD_ERR_ARGUMENT: no such binding (any more). */
bird_status bird_client_unbind(bird_client *client, uint64_t binding);
/* Removes the bindings of one event, event NULL: those for every application event; of a channel, or of the client for all its channels.
   BIRD_OK also when there was none. Never waits, as above. */
bird_status bird_channel_unbind_event(bird_channel *channel, const char *event);
bird_status bird_client_unbind_event(bird_client *client, const char *event);
/* Removes all bindings of a channel, or all of the client's for all its channels. Observers stay. */
bird_status bird_channel_unbind_all(bird_channel *channel);
bird_status bird_client_unbind_all(bird_client *client);
/* The id that records with this event name carry in event_id from now on, until the client ends; for programs that drain and route by
   number. FULL (retriable) when 65 536 names have ids; those of names that were only bound are given back with their last binding. */
bird_status bird_client_intern(bird_client *client, const char *event, uint32_t *event_id, bird_error **error);

/* ---------------------------------------------------------------------------------------------------- records ------ */

#define BIRD_RECORD_EVENT 1              /* an application event, on a channel or on the member channel       */
#define BIRD_RECORD_SUBSCRIBED 2         /* bird:subscription_succeeded; detail: bird_subscription            */
#define BIRD_RECORD_SUBSCRIPTION_ERROR 3 /* bird:subscription_error; detail: bird_subscription                */
#define BIRD_RECORD_MEMBER_ADDED 4       /* bird:member_added; detail: bird_member                            */
#define BIRD_RECORD_MEMBER_REMOVED 5     /* bird:member_removed; detail: bird_member                          */
#define BIRD_RECORD_CONNECTION_COUNT 6   /* bird:connection_count                                             */
#define BIRD_RECORD_STATE 7              /* detail: bird_state_change                                         */
#define BIRD_RECORD_ERROR 8              /* detail: bird_failure; of a channel if the edge named it, see below */
#define BIRD_RECORD_SIGNIN_ERROR 9       /* an automatic signin failed; detail: bird_failure                  */
#define BIRD_RECORD_COMPLETION 10        /* the end of an operation with a tag; detail: bird_completion       */
#define BIRD_RECORD_REQUEST 11           /* the library asks the program; detail: bird_question               */
#define BIRD_RECORD_SIGNED_IN 12         /* every successful signin; detail: bird_member, data: member_data   */
#define BIRD_RECORD_CONNECTION_LOST 13   /* once per loss                                                     */
#define BIRD_RECORD_CONNECTING_IN 14     /* an attempt is planned, or put off; detail: bird_state_change      */
#define BIRD_RECORD_DECRYPTION_ERROR 15  /* an encrypted event is lost; detail: bird_failure, data: its names   */
#define BIRD_RECORD_WATCHLIST 16         /* watched members came or went; detail: bird_watchlist              */
#define BIRD_RECORD_LOG 17 /* option log_level without a handler; detail: bird_log_entry, data: its message */

#define BIRD_DATA_NONE 0   /* no data                                                                         */
#define BIRD_DATA_STRING 1 /* a string with its one level of encoding undone; mostly JSON, see bird_data_is_json() */
#define BIRD_DATA_VALUE 2  /* a JSON value as it stood in the frame                                           */

/* Read-only. Valid until the handler returns or bird_batch_release(). Strings are never NULL. Fields are only added at the end.
   sender: edges name it with client events of presence channels (user_id or member_id beside the event's data); not signed by anyone. */
struct bird_record {
    uint32_t struct_size; /* bytes of this struct in the loaded library; arrays have the stride that drain reports */
    uint32_t kind;        /* BIRD_RECORD_*                                                            */
    bird_client *client;
    uint64_t client_tag;
    bird_channel *channel; /* NULL: belongs to no channel. Borrowed: no release is due  */
    uint64_t channel_tag;
    const char *channel_name;
    const char *event;
    const char *data;
    size_t data_length;
    uint32_t channel_name_length;
    uint32_t event_length;
    uint32_t event_id; /* see bird_client_intern(); 0: not interned when the record was made */
    uint32_t data_kind;
    uint64_t operation_tag; /* completion records: the tag of the call                          */
    const void *detail;
    const char *sender;     /* client events: the id of the member that sent it; "" if unknown  */
    uint32_t sender_length; /* an id may contain a NUL                                          */
    uint32_t reserved;
};

/* attempt: attempts since the last handshake, or since the program's own call began one, this one included; in a BIRD_RECORD_CONNECTING_IN
   record the number of the one that is planned. */
typedef struct bird_state_change {
    uint32_t struct_size;
    int32_t previous;
    int32_t current;
    int32_t close_code; /* WebSocket close code, 0 if none         */
    int32_t attempt;    /* see above                           */
    bird_status reason; /* BIRD_OK for the program's own calls     */
    int64_t delay_ms;   /* until the next attempt; -1: none is planned */
    const char *reason_text;
    const char *connection_id; /* "" unless connected */
    const char *policy;        /* option reconnect, when an attempt is planned; else "" */
} bird_state_change;

/* A success: the payload is the record's data as it came. One of more than 2 MiB is left out (NONE), and one of more than 256 KiB is not
   kept for handlers that are bound later: ask for the roster. A roster holds 100 000 members and 4 MiB of ids and infos; of a larger one
   the first members are kept, and an error record (SIZE) says so. */
typedef struct bird_subscription {
    uint32_t struct_size;
    int32_t is_resubscribe;  /* 1: subscribed before in this client; refetch what was missed */
    int64_t interrupted_ms;  /* how long events could be missed; 0 for a first subscribe     */
    int32_t will_retry;      /* errors: 1 if the library tries again by itself                */
    uint32_t member_count;   /* presence: members in the roster                               */
    const char *my_id;       /* presence: member id of this connection        */
    const bird_error *error; /* errors: the cause                             */
    size_t my_id_length;
    /* Presence, successes: the roster that the edge sent, as bird_channel_members() gives it, valid as long as the record: not for
       bird_members_free(). Else NULL. */
    const bird_members *members;
} bird_subscription;

/* member_info is the record's data (VALUE or NONE). */
typedef struct bird_member {
    uint32_t struct_size;
    uint32_t id_length;
    const char *id;
} bird_member;

/* Members of the watchlist that the signin carried: all of them after a signin, later those that change. The record's event is "online" or
   "offline", its data the ids as a JSON array. */
typedef struct bird_watchlist {
    uint32_t struct_size;
    uint32_t id_count;
    const char *const *ids;
    const size_t *id_lengths; /* of each of the ids */
} bird_watchlist;

typedef struct bird_failure {
    uint32_t struct_size;
    uint32_t reserved;
    const bird_error *error;
} bird_failure;

#define BIRD_OPERATION_SUBSCRIBE 1
#define BIRD_OPERATION_SIGNIN 2

typedef struct bird_completion {
    uint32_t struct_size;
    int32_t operation;
    bird_status status;
    uint32_t reserved;
    const bird_error *error; /* NULL on success */
} bird_completion;

/* 1 if the bytes are one JSON value (RFC 8259), 0 if not or NULL. */
int32_t bird_data_is_json(const void *data, size_t length);

/* --------------------------------------------------------------------------------------------------- requests ------ */

#define BIRD_REQUEST_AUTHORIZE_CHANNEL 1 /* option authorizer: bird_request_authorize()                        */
#define BIRD_REQUEST_AUTHORIZE_MEMBER 2  /* option member_authorizer: bird_request_authorize()                 */
#define BIRD_REQUEST_HEADERS 3           /* option header_provider: bird_request_headers()                     */
#define BIRD_REQUEST_RECONNECT 4         /* option may_reconnect: bird_request_proceed()                       */

/* What a request record asks. Answer once, from any thread, in the handler or later, within the deadline; every kind can be refused by
   bird_request_fail(). No answer: an authorization, its headers included, has failed for now and is tried again; a reconnect goes
   ahead. The option records of a client that asks must include BIRD_RECORD_REQUEST. */
typedef struct bird_question {
    uint32_t struct_size;
    int32_t request_kind;
    bird_request *request;     /* ends with its answer, its deadline, its cause (the connection) or the client */
    int64_t deadline_ms;       /* time left when the record was made                                     */
    const char *connection_id; /* "" for a reconnect                                                     */
    const char *channel_name;  /* "" for a signin and its headers, and for a reconnect                   */
    const char *endpoint;      /* headers: the URL they are sent to; else ""                             */
    const bird_error *cause;   /* reconnect: how the attempt or the connection before it ended; else NULL */
    int32_t attempt; /* reconnect: attempts since the last handshake, this and refused ones included; else 0 */
    uint32_t reserved;
} bird_question;

typedef struct bird_header {
    const char *name;
    const char *value;
} bird_header;

/* The answers. BIRD_ERR_ANSWERED: this one is the second or comes too late; BIRD_ERR_ARGUMENT: the request is of another kind, or an
   argument is not acceptable, and the request stays open. */
/* Authorizes. auth is required; member_data belongs to presence channels and signin; shared_secret to encrypted channels. With dialect
   pusher, member_data is what Pusher's server libraries call channel_data (presence channels) and user_data (signin). */
bird_status bird_request_authorize(bird_request *request, const char *auth, const char *member_data,
                                   const char *shared_secret, bird_error **error);
/* Has the authorization POST carry these headers (at most 64, else BIRD_ERR_SIZE) beside those of bird_options_set_auth_header(), which
   they replace where names are equal. headers may be NULL when count is 0. Values never appear in messages. */
bird_status bird_request_headers(bird_request *request, const bird_header *headers, size_t count, bird_error **error);
/* Has the attempt begin, at once or after delay_ms (0 to 86400000; a BIRD_RECORD_CONNECTING_IN record tells it, and it is not asked
   about again). */
bird_status bird_request_proceed(bird_request *request, int64_t delay_ms, bird_error **error);
/* Refuses. Authorizations and headers: retriable 0 is a denial, 1 a transient failure that is tried again; message is for the error
   record. Reconnect: this attempt is skipped and counted, the next one is planned as after a failure and asked about again; retriable
   says nothing, message is for the BIRD_RECORD_CONNECTING_IN record. message may be NULL. */
bird_status bird_request_fail(bird_request *request, int32_t retriable, const char *message, bird_error **error);

/* ------------------------------------------------------------------------------------------------------ queue ------ */

/* A queue of records that the program empties, for one or several clients. */
bird_status bird_queue_create(bird_queue **queue);
/* BIRD_ERR_BUSY while a client uses it or a batch is held. NULL is fine. */
bird_status bird_queue_destroy(bird_queue *queue);
/* An fd that is readable while records wait (it may be readable once too often). Poll it, never read or close it. */
bird_status bird_queue_fd(bird_queue *queue, int32_t *fd);
/* Waits for records. BIRD_ERR_TIMEOUT after timeout_ms; BIRD_ERR_WOKEN: bird_queue_wake() was called, and records may wait as well. */
bird_status bird_queue_wait(bird_queue *queue, int64_t timeout_ms);
/* Ends one bird_queue_wait(), present or next, from any thread, even while records wait. Not for signal handlers. */
bird_status bird_queue_wake(bird_queue *queue);
/* Takes the oldest batch, all of one client: *count records, *stride bytes apart. Nothing waiting: BIRD_OK, count 0 and batch NULL.
   Several batches may be held; release each. Take a bounded number of batches for each wake-up, then go round your loop: while events
   come faster than they are handled, the queue is never empty. BIRD_ERR_BUSY: another thread drains or dispatches. */
bird_status bird_queue_drain(bird_queue *queue, bird_batch **batch, const bird_record **records, size_t *count,
                             size_t *stride);
bird_status bird_batch_release(bird_batch *batch);
/* Runs the handlers of what waits on the calling thread, about records_max records (0: all that wait now); *count receives how many. */
bird_status bird_queue_dispatch(bird_queue *queue, size_t records_max, size_t *count);

/* ------------------------------------------------------------------------------------------------------- loop ------ */

/*
 * A loop of the program's drives its clients: no thread of the library runs for them (but a resolver thread while a name is looked up, and
 * the pool if they deliver with BIRD_DELIVERY_THREAD). Poll the fd for input next to your own and call bird_loop_run_once(loop, 0) when it is
 * readable; timers make it readable too. Any thread may run it, one at a time. The thread that created the loop or ran it last is its owner:
 * there bird_client_wait, _flush and _close run it while they wait. On other threads they wait for somebody to run it.
 */
bird_status bird_loop_create(bird_loop **loop);
/* BIRD_ERR_BUSY while a client uses it or a thread runs it. NULL is fine. */
bird_status bird_loop_destroy(bird_loop *loop);
/* An fd that is readable when there is something to do (it may be readable once too often). Poll it, never read or close it. */
bird_status bird_loop_fd(bird_loop *loop, int32_t *fd);
/* The time until something is due by itself; 0: now, -1: nothing is planned. For hosts that cannot poll the fd. */
bird_status bird_loop_deadline(bird_loop *loop, int64_t *deadline_ms);
/* Waits at most timeout_ms for something to do (0: does not wait, -1: as long as it takes; a signal or bird_loop_wake() ends the wait), does
   what there is, and returns. BIRD_ERR_BUSY: another thread runs the loop, or the call comes from a handler that it runs. */
bird_status bird_loop_run_once(bird_loop *loop, int64_t timeout_ms);
/* Ends one wait of bird_loop_run_once(), present or next, from any thread. Not for signal handlers. */
bird_status bird_loop_wake(bird_loop *loop);

/* ------------------------------------------------------------------------------------------------- statistics ------ */

/* Counters since creation and gauges of now. Set struct_size to sizeof before the call. */
typedef struct bird_statistics {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t bytes_received;
    uint64_t messages_received;
    uint64_t events_delivered;  /* application events for the delivery, dropped ones included           */
    uint64_t frames_malformed;  /* messages that are no JSON object with a string event                 */
    uint64_t frames_unroutable; /* events for channels not subscribed here                              */
    uint64_t bytes_sent;
    uint64_t messages_sent;               /* written to the socket                                              */
    uint64_t client_events_lost;          /* accepted by bird_channel_trigger, not written when the connection went */
    uint64_t connects;                    /* handshakes                                                           */
    uint64_t attempts;                    /* connections tried                                                    */
    uint64_t authorizations;              /* authorizations asked for                                             */
    uint64_t queue_records;               /* gauge: records not yet consumed                                      */
    uint64_t queue_bytes;                 /* gauge: their bytes                                                   */
    uint64_t read_pauses;                 /* times that reading paused for a slow consumer                        */
    uint64_t attempts_refused;            /* planned attempts that the program refused (may_reconnect)            */
    uint64_t events_dropped;              /* application events dropped (overflow)                                */
    uint64_t watchlist_entries_malformed; /* malformed, or beyond 1024 entries or 10 000 ids of a frame */
    uint64_t network_changes;        /* changes of the network that concerned the client, hints and suspends included */
    uint64_t reconnects;             /* handshakes but the first                                             */
    uint64_t connections_lost;       /* connections that ended without the program's doing, and were not refused */
    uint64_t authorization_failures; /* of them refused, unusable, or unanswered in time                 */
    uint64_t pings_sent;
    uint64_t pongs_missed;        /* pings that were not answered in time                                 */
    uint64_t round_trip_us;       /* gauge: from the last ping to its pong, in microseconds; 0: none yet  */
    uint64_t connected_ms;        /* gauge: how long the present connection has lasted                    */
    uint64_t connected_total_ms;  /* how long all of them have lasted                                     */
    uint64_t outbound_bytes;      /* gauge: client events not yet written                                 */
    uint64_t channels;            /* gauge: channels wanted, that of the member left out                  */
    uint64_t channels_subscribed; /* gauge: those of them that are subscribed                            */
    uint64_t log_entries_dropped; /* entries that a sink, or the program's queue, had no room for        */
    uint64_t decryption_failures; /* bird:decryption_error records                                        */
    uint64_t key_refreshes;       /* times the key of a subscribed channel was asked for again            */
} bird_statistics;

bird_status bird_client_statistics(bird_client *client, bird_statistics *statistics);
/* All that a bug report should say of a client, as one JSON object: versions, the options set, state, latest changes and errors, connection,
   plan, channels (at most 100), statistics. Secrets and the values of headers are "***". In every state, also after bird_client_close(), and
   in every callback but the log handler; it waits for nothing. Texts of the edge and values of options are cut to 2048 bytes, and the whole
   has at most BIRD_DUMP_BYTES_MAX bytes. Copy-out. */
#define BIRD_DUMP_BYTES_MAX 2097152
bird_status bird_client_dump(bird_client *client, char *buffer, size_t size, size_t *length);

/* ---------------------------------------------------------------------------------------------------- process ------ */

/* FORK: the library rests while the process forks (at most a second, if a LOOP handler does not return). In the child every call on an
   inherited handle returns BIRD_ERR_FORKED, and new handles work. The destroy functions of clients, queues and loops are the exception: they
   close the child's copies of the fds and return BIRD_OK; the parent's connections are not touched, and no destructor runs. A child that was
   forked inside a handler should not return from it: nothing more is delivered there, and a thread of the library's ends with it. */

/* Threads of the shared pool for BIRD_DELIVERY_THREAD (1 to 64, default 4). BIRD_ERR_STATE once the pool has started. */
bird_status bird_set_delivery_threads(int32_t threads);

#ifdef __cplusplus
}
#endif

#endif /* BIRDREALTIME_H */
