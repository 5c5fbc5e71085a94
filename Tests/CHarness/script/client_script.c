/*
 * usage: client_script [KEY=VALUE | header:NAME=VALUE]...     options of the client, and one of its own:
 *   consume=drain|dispatch|thread|host   how its records are taken: two ways to empty a queue, the library's pool, or a loop of this
 *                                        program's that drives the client
 *
 * Commands, one a line; every one is answered by {"reply": COMMAND, "status": ...}:
 *   connect | disconnect | retry_now | configure KEY VALUE
 *   destroy | close MS | flush MS | wait STATE MS | storm THREADS
 *   subscribe CHANNEL TAG | unsubscribe CHANNEL | trigger CHANNEL EVENT [JSON] | signin TAG FLAGS
 *   grant REQUEST AUTH [MEMBER_DATA] | entrust REQUEST AUTH SHARED_SECRET | refuse REQUEST RETRIABLE MESSAGE
 *   headers REQUEST NAME VALUE | proceed REQUEST MS
 *   crowd COUNT WS_HOST                  COUNT more clients, "#" in WS_HOST being the number of each; destroy ends them too
 *   option KEY VALUE                     an option of the clients that crowd makes from now on
 *   network HINT                         1 up, 2 down, 3 resumed
 *   pause | resume                       stops and goes on consuming; in the pool the next handler waits
 *   bind NUMBER CHANNEL [EVENT]          "*": on the client; no event: every one. Each call is printed as {"record": "bound", ...}
 *   unbind NUMBER | unbind_event CHANNEL EVENT | unbind_all CHANNEL
 *   watch                                an observer of the watchlist, whose calls are printed as {"record": "watched", ...}
 *   channel_state CHANNEL | roster CHANNEL | state | member | statistics | dump
 *   fork                                 what calls on the client give in a child of the process
 * The end of stdin destroys the client.
 */
#include "script.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json_line.h"

#define CHANNELS_MAX 64
#define REQUESTS_MAX 256
#define STORM_THREADS_MAX 32
#define CROWD_MAX 2048
#define BINDINGS_MAX 64
#define LINE_BYTES_MAX 65536
#define DUMP_BYTES_MAX 65536

static bird_options *options;
static bird_client *client;
static bird_client *crowd[CROWD_MAX];
static int crowd_count;
static bird_queue *queue; /* NULL: the pool, or the loop */
static bird_loop *loop;   /* NULL: the library's own */
static bool is_dispatching, is_destroyed;

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pause_ended = PTHREAD_COND_INITIALIZER;
static bool is_paused;

static struct {
    char name[168];
    bird_channel *channel;
} channels[CHANNELS_MAX];
static int channel_count;

static uint64_t bindings[BINDINGS_MAX];

static bird_request *requests[REQUESTS_MAX];
static atomic_ullong request_count; /* requests come on a thread of the library, too */

static void give_up(const char *what) {
    fprintf(stderr, "client_script: %s\n", what);
    exit(2);
}

uint64_t keep_request(bird_request *request) {
    const uint64_t index = atomic_load(&request_count);
    if (index == REQUESTS_MAX) {
        give_up("too many requests");
    }
    requests[index] = request;
    atomic_store(&request_count, index + 1);
    return index;
}

/* The newest reference for the name; NULL, which the library refuses, for an unknown one. */
static bird_channel *channel_named(const char *name) {
    for (int i = channel_count; i-- > 0;) {
        if (strcmp(channels[i].name, name) == 0) {
            return channels[i].channel;
        }
    }
    return NULL;
}

static bird_status subscribe(const char *name, uint64_t tag, bird_error **error) {
    bird_channel *channel = NULL;
    const bird_status status = bird_client_subscribe(client, name, tag, &channel, error);
    if (status != BIRD_OK || channel == channel_named(name)) {
        bird_channel_release(channel);
        return status;
    }
    if (channel_count == CHANNELS_MAX) {
        give_up("too many channels");
    }
    snprintf(channels[channel_count].name, sizeof channels->name, "%s", name);
    channels[channel_count++].channel = channel;
    return status;
}

static void *connect_once(void *argument) {
    (void)argument;
    return (void *)(intptr_t)bird_client_connect(client, NULL);
}

static bird_status storm(int count) {
    pthread_t threads[STORM_THREADS_MAX];
    bird_status worst = BIRD_OK;
    count = count < STORM_THREADS_MAX ? count : STORM_THREADS_MAX;
    for (int i = 0; i < count; i++) {
        if (pthread_create(&threads[i], NULL, connect_once, NULL) != 0) {
            give_up("no thread");
        }
    }
    for (int i = 0; i < count; i++) {
        void *status;
        pthread_join(threads[i], &status);
        worst = (intptr_t)status < worst ? (bird_status)(intptr_t)status : worst;
    }
    return worst;
}

/* Connects `count` more clients with the same options but for the host. */
static bird_status gather(int count, const char *pattern, bird_error **error) {
    const int prefix = (int)strcspn(pattern, "#");
    bird_status status = BIRD_OK;
    for (int i = 0; i < count && status == BIRD_OK; i++) {
        if (crowd_count == CROWD_MAX) {
            give_up("too many clients");
        }
        char host[256];
        if (pattern[prefix] == '#') {
            snprintf(host, sizeof host, "%.*s%d%s", prefix, pattern, i, pattern + prefix + 1);
        } else {
            snprintf(host, sizeof host, "%s", pattern);
        }
        status = bird_options_set(options, "ws_host", host, error);
        if (status == BIRD_OK) {
            status = bird_client_create(options, &crowd[crowd_count], error);
        }
        if (status == BIRD_OK) {
            status = bird_client_connect(crowd[crowd_count++], error);
        }
    }
    return status;
}

static int32_t state_named(const char *name) {
    for (int32_t state = BIRD_STATE_INITIALIZED; state <= BIRD_STATE_FAILED; state++) {
        if (strcmp(bird_state_name(state), name) == 0) {
            return state;
        }
    }
    give_up("unknown state");
    return -1;
}

/* The queries add fields to the reply. */
static bird_status tell_state(void) {
    int32_t state = -1;
    const bird_status status = bird_client_state(client, &state);
    json_string("state", bird_state_name(state));
    return status;
}

static bird_status tell_channel_state(const char *name) {
    int32_t state = -1;
    const bird_status status = bird_channel_state(channel_named(name), &state);
    json_number("state", state);
    return status;
}

static bird_status tell_roster(const char *name) {
    bird_members *members = NULL;
    const bird_status status = bird_channel_members(channel_named(name), &members);
    char ids[4096] = "";
    size_t length = 0;
    for (size_t i = 0; i < bird_members_count(members); i++) {
        const size_t id_length = bird_members_id_length(members, i);
        if (id_length + 1 > sizeof ids - length) {
            break;
        }
        if (i > 0) {
            ids[length++] = ' ';
        }
        memcpy(ids + length, bird_members_id(members, i), id_length);
        length += id_length;
    }
    char my_id[160] = "";
    size_t my_id_length = 0;
    const bird_status has_id = bird_channel_my_id(channel_named(name), my_id, sizeof my_id, &my_id_length);
    json_text("members", ids, length);
    print_roster(members);
    json_text("my_id", my_id, has_id == BIRD_OK ? my_id_length : 0);
    bird_members_free(members);
    return status;
}

static bird_status tell_statistics(void) {
    bird_statistics s = {.struct_size = sizeof s};
    const bird_status status = bird_client_statistics(client, &s);
    json_unsigned("bytes_received", s.bytes_received);
    json_unsigned("messages_received", s.messages_received);
    json_unsigned("events_delivered", s.events_delivered);
    json_unsigned("frames_malformed", s.frames_malformed);
    json_unsigned("frames_unroutable", s.frames_unroutable);
    json_unsigned("bytes_sent", s.bytes_sent);
    json_unsigned("messages_sent", s.messages_sent);
    json_unsigned("client_events_lost", s.client_events_lost);
    json_unsigned("connects", s.connects);
    json_unsigned("attempts", s.attempts);
    json_unsigned("authorizations", s.authorizations);
    json_unsigned("queue_records", s.queue_records);
    json_unsigned("queue_bytes", s.queue_bytes);
    json_unsigned("read_pauses", s.read_pauses);
    json_unsigned("attempts_refused", s.attempts_refused);
    json_unsigned("events_dropped", s.events_dropped);
    json_unsigned("watchlist_entries_malformed", s.watchlist_entries_malformed);
    json_unsigned("network_changes", s.network_changes);
    json_unsigned("reconnects", s.reconnects);
    json_unsigned("connections_lost", s.connections_lost);
    json_unsigned("authorization_failures", s.authorization_failures);
    json_unsigned("pings_sent", s.pings_sent);
    json_unsigned("pongs_missed", s.pongs_missed);
    json_unsigned("round_trip_us", s.round_trip_us);
    json_unsigned("connected_ms", s.connected_ms);
    json_unsigned("connected_total_ms", s.connected_total_ms);
    json_unsigned("outbound_bytes", s.outbound_bytes);
    json_unsigned("channels", s.channels);
    json_unsigned("channels_subscribed", s.channels_subscribed);
    json_unsigned("log_entries_dropped", s.log_entries_dropped);
    json_unsigned("decryption_failures", s.decryption_failures);
    json_unsigned("key_refreshes", s.key_refreshes);
    return status;
}

static bird_status tell_dump(void) {
    static char text[DUMP_BYTES_MAX];
    size_t length = 0;
    const bird_status status = bird_client_dump(client, text, sizeof text, &length);
    json_text("dump", text, status == BIRD_OK ? length : 0);
    return status;
}

static bird_status tell_member(void) {
    char id[160] = "";
    size_t length = 0;
    const bird_status status = bird_client_member_id(client, id, sizeof id, &length);
    json_text("member_id", id, status == BIRD_OK ? length : 0);
    return status;
}

static void print_bound(const bird_record *record, void *user_data) {
    json_begin();
    json_string("record", "bound");
    json_number("binding", (uint64_t *)user_data - bindings);
    json_text("event", record->event, record->event_length);
    json_text("data", record->data, record->data_length);
    if (record->kind == BIRD_RECORD_SUBSCRIBED) {
        print_roster(((const bird_subscription *)record->detail)->members);
    }
    json_end();
    fflush(stdout);
}

static void print_watched(const bird_record *record, void *user_data) {
    (void)user_data;
    json_begin();
    json_string("record", "watched");
    json_text("event", record->event, record->event_length);
    json_text("data", record->data, record->data_length);
    json_end();
    fflush(stdout);
}

static uint64_t *binding_numbered(const char *number) {
    const unsigned long index = strtoul(number, NULL, 10);
    if (index >= BINDINGS_MAX) {
        give_up("too many bindings");
    }
    return &bindings[index];
}

static bird_status bind(const char *number, char *rest, bird_error **error) {
    uint64_t *binding = binding_numbered(number);
    const char *channel = strtok_r(rest, " ", &rest);
    const char *event = *rest != '\0' ? rest : NULL;
    return strcmp(channel, "*") == 0
               ? bird_client_bind(client, event, print_bound, binding, NULL, binding, error)
               : bird_channel_bind(channel_named(channel), event, print_bound, binding, NULL, binding, error);
}

/* The status of a call on the client in a child, which is then gone. */
static bird_status tell_child(void) {
    const pid_t child = fork();
    if (child == 0) {
        int32_t state;
        _exit(-bird_client_state(client, &state));
    }
    int ended = 0;
    if (child < 0 || waitpid(child, &ended, 0) != child || !WIFEXITED(ended)) {
        give_up("the child did not end well");
    }
    json_string("in_child", bird_status_name(-WEXITSTATUS(ended)));
    return BIRD_OK;
}

static void set_paused(bool paused) {
    pthread_mutex_lock(&pause_lock);
    is_paused = paused;
    pthread_cond_broadcast(&pause_ended);
    pthread_mutex_unlock(&pause_lock);
}

static void print_when_not_paused(const bird_record *record, void *user_data) {
    (void)user_data;
    pthread_mutex_lock(&pause_lock);
    while (is_paused) {
        pthread_cond_wait(&pause_ended, &pause_lock);
    }
    pthread_mutex_unlock(&pause_lock);
    print_record(record);
    fflush(stdout);
}

static bird_status destroy(void) {
    is_destroyed = true;
    while (crowd_count > 0) {
        bird_client_destroy(crowd[--crowd_count]);
    }
    return bird_client_destroy(client);
}

static bird_request *request_numbered(const char *number) {
    const uint64_t index = strtoull(number, NULL, 10);
    return index < atomic_load(&request_count) ? requests[index] : NULL;
}

/* `rest` is what follows the first argument, up to the end of the line, or NULL. */
static bird_status execute(const char *command, char *first, char *rest, bird_error **error) {
    if (strcmp(command, "connect") == 0) {
        return bird_client_connect(client, error);
    } else if (strcmp(command, "disconnect") == 0) {
        return bird_client_disconnect(client);
    } else if (strcmp(command, "retry_now") == 0) {
        return bird_client_retry_now(client);
    } else if (strcmp(command, "destroy") == 0) {
        return destroy();
    } else if (strcmp(command, "state") == 0) {
        return tell_state();
    } else if (strcmp(command, "member") == 0) {
        return tell_member();
    } else if (strcmp(command, "statistics") == 0) {
        return tell_statistics();
    } else if (strcmp(command, "fork") == 0) {
        return tell_child();
    } else if (strcmp(command, "dump") == 0) {
        return tell_dump();
    } else if (strcmp(command, "pause") == 0 || strcmp(command, "resume") == 0) {
        set_paused(*command == 'p');
        return BIRD_OK;
    } else if (strcmp(command, "watch") == 0) {
        return bird_client_observe(client, 1u << BIRD_RECORD_WATCHLIST, print_watched, NULL, NULL, NULL, error);
    } else if (first == NULL) {
        give_up("unknown command, or an argument is missing");
    } else if (strcmp(command, "close") == 0) {
        return bird_client_close(client, atoll(first));
    } else if (strcmp(command, "flush") == 0) {
        return bird_client_flush(client, atoll(first));
    } else if (strcmp(command, "network") == 0) {
        return bird_client_network_hint(client, atoi(first));
    } else if (strcmp(command, "storm") == 0) {
        return storm(atoi(first));
    } else if (strcmp(command, "unsubscribe") == 0) {
        return bird_channel_unsubscribe(channel_named(first));
    } else if (strcmp(command, "channel_state") == 0) {
        return tell_channel_state(first);
    } else if (strcmp(command, "roster") == 0) {
        return tell_roster(first);
    } else if (strcmp(command, "unbind_all") == 0) {
        return bird_channel_unbind_all(channel_named(first));
    } else if (strcmp(command, "unbind") == 0) {
        return bird_client_unbind(client, *binding_numbered(first));
    } else if (rest == NULL) {
        give_up("unknown command, or an argument is missing");
    } else if (strcmp(command, "configure") == 0) {
        return bird_client_set(client, first, rest, error);
    } else if (strcmp(command, "option") == 0) {
        return bird_options_set(options, first, rest, error);
    } else if (strcmp(command, "crowd") == 0) {
        return gather(atoi(first), rest, error);
    } else if (strcmp(command, "unbind_event") == 0) {
        return bird_channel_unbind_event(channel_named(first), rest);
    } else if (strcmp(command, "bind") == 0) {
        return bind(first, rest, error);
    } else if (strcmp(command, "wait") == 0) {
        return bird_client_wait(client, state_named(first), atoll(rest));
    } else if (strcmp(command, "subscribe") == 0) {
        return subscribe(first, strtoull(rest, NULL, 10), error);
    } else if (strcmp(command, "signin") == 0) {
        return bird_client_signin(client, (uint32_t)strtoul(rest, NULL, 10), strtoull(first, NULL, 10), error);
    } else if (strcmp(command, "proceed") == 0) {
        return bird_request_proceed(request_numbered(first), atoll(rest), error);
    }
    const char *second = strtok_r(rest, " ", &rest);
    if (*rest == '\0') {
        rest = NULL;
    }
    if (strcmp(command, "trigger") == 0) {
        return bird_channel_trigger(channel_named(first), second, rest, BIRD_NUL, error);
    } else if (strcmp(command, "grant") == 0) {
        return bird_request_authorize(request_numbered(first), second, rest, NULL, error);
    } else if (strcmp(command, "entrust") == 0) {
        return bird_request_authorize(request_numbered(first), second, NULL, rest, error);
    } else if (strcmp(command, "headers") == 0) {
        return bird_request_headers(request_numbered(first), &(bird_header){second, rest != NULL ? rest : ""}, 1,
                                    error);
    } else if (strcmp(command, "refuse") == 0) {
        return bird_request_fail(request_numbered(first), atoi(second), rest, error);
    }
    give_up("unknown command");
    return BIRD_ERR_ARGUMENT;
}

static void perform(char *line) {
    char *rest;
    const char *command = strtok_r(line, " ", &rest);
    char *first = strtok_r(NULL, " ", &rest);
    if (command == NULL) {
        give_up("empty line");
    }
    bird_error *error = NULL;
    json_begin();
    json_string("reply", command);
    const bird_status status = execute(command, first, *rest != '\0' ? rest : NULL, &error);
    json_string("status", bird_status_name(status));
    print_error(error);
    json_end();
    bird_error_free(error);
}

/* Performs the whole lines that stdin gives now; false at its end. */
static bool read_commands(void) {
    static char buffer[LINE_BYTES_MAX];
    static size_t length;
    const ssize_t count = read(STDIN_FILENO, buffer + length, sizeof buffer - length);
    if (count <= 0) {
        return false;
    }
    length += (size_t)count;
    char *end;
    while ((end = memchr(buffer, '\n', length)) != NULL) {
        *end = '\0';
        perform(buffer);
        length -= (size_t)(end + 1 - buffer);
        memmove(buffer, end + 1, length);
    }
    if (length == sizeof buffer) {
        give_up("line too long");
    }
    return true;
}

static void consume(void) {
    if (loop != NULL) {
        if (bird_loop_run_once(loop, 0) != BIRD_OK) {
            give_up("the loop cannot be run");
        }
        return;
    }
    if (is_dispatching) {
        if (bird_queue_dispatch(queue, 0, NULL) != BIRD_OK) {
            give_up("the queue cannot be dispatched");
        }
        return;
    }
    for (;;) {
        bird_batch *batch = NULL;
        const bird_record *records = NULL;
        size_t count, stride;
        if (bird_queue_drain(queue, &batch, &records, &count, &stride) != BIRD_OK) {
            give_up("the queue cannot be drained");
        }
        if (count == 0) {
            return;
        }
        for (size_t i = 0; i < count; i++) {
            print_record((const void *)((const char *)records + i * stride));
        }
        bird_batch_release(batch);
    }
}

static bird_status create(int count, char **settings, bird_error **error) {
    bird_status status = bird_options_create(&options);
    for (int i = 0; i < count && status == BIRD_OK; i++) {
        char *value = strchr(settings[i], '=');
        if (value == NULL) {
            give_up("an option is KEY=VALUE");
        }
        *value++ = '\0';
        if (strcmp(settings[i], "consume") == 0) {
            continue;
        }
        status = strncmp(settings[i], "header:", 7) == 0
                     ? bird_options_set_auth_header(options, settings[i] + 7, value, error)
                     : bird_options_set(options, settings[i], value, error);
    }
    if (status == BIRD_OK && queue != NULL) {
        status = bird_options_set_queue(options, queue);
    }
    if (status == BIRD_OK && loop != NULL) {
        status = bird_options_set(options, "delivery", "loop", error);
        status = status == BIRD_OK ? bird_options_set_loop(options, loop) : status;
    }
    if (status == BIRD_OK) {
        status = bird_client_create(options, &client, error);
    }
    if (status == BIRD_OK && (is_dispatching || queue == NULL)) {
        uint64_t observer;
        status = bird_client_observe(client, UINT64_MAX, print_when_not_paused, NULL, NULL, &observer, error);
    }
    return status;
}

int main(int count, char **settings) {
    bool has_pool = false, is_host = false;
    for (int i = 1; i < count; i++) {
        has_pool = has_pool || strcmp(settings[i], "consume=thread") == 0;
        is_host = is_host || strcmp(settings[i], "consume=host") == 0;
        is_dispatching = is_dispatching || strcmp(settings[i], "consume=dispatch") == 0;
    }
    int32_t fd = -1;
    if (is_host && (bird_loop_create(&loop) != BIRD_OK || bird_loop_fd(loop, &fd) != BIRD_OK)) {
        give_up("no loop");
    }
    if (!has_pool && !is_host && (bird_queue_create(&queue) != BIRD_OK || bird_queue_fd(queue, &fd) != BIRD_OK)) {
        give_up("no queue");
    }
    bird_error *error = NULL;
    const bird_status created = create(count - 1, settings + 1, &error);
    json_begin();
    json_string("reply", "create");
    json_string("status", bird_status_name(created));
    print_error(error);
    json_end();
    bird_error_free(error);
    fflush(stdout);

    bool is_open = created == BIRD_OK;
    while (is_open) {
        struct pollfd entries[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                   {.fd = is_paused ? -1 : fd, .events = POLLIN}};
        if (poll(entries, 2, -1) < 0) {
            give_up("poll");
        }
        if (entries[1].revents != 0) {
            consume();
        }
        if (entries[0].revents != 0) {
            is_open = read_commands();
        }
        fflush(stdout);
    }
    set_paused(false);
    if (created == BIRD_OK && !is_destroyed) {
        destroy();
    }
    while (channel_count > 0) {
        bird_channel_release(channels[--channel_count].channel);
    }
    bird_options_destroy(options);
    return bird_queue_destroy(queue) == BIRD_OK && bird_loop_destroy(loop) == BIRD_OK ? 0 : 1;
}
