/*
 * Two clients on one reactor: an innocent one, whose edge sends a tick every few milliseconds, and one whose edge is hostile. Tells what the
 * hostile edge costs: the memory of the process, and how long the reactor was with one client before the other had its turn, in its own CPU
 * time, which does not count what else the machine does.
 *
 * Usage: hostile_host INNOCENT_EDGE, and a command a line:
 *   start EDGE DELIVERY [OPTION=VALUE ...]   creates and connects the client of the hostile edge; memory counts from here on
 *   subscribe CHANNEL | signin
 *   churn COUNT CHANNEL                      subscribes and unsubscribes, and answers how many calls were refused with FULL
 *   report                                   answers a line of JSON
 */
#include <birdrealtime.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES_MAX = 4096, KINDS = 32, WORDS_MAX = 16 };

static atomic_long ticks, turn_us, silence_us, kinds[KINDS], members, error_bytes;
static atomic_int is_measuring;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char error_text[4096]; /* of the latest error; guarded by lock */
static bird_channel *presence;

static _Noreturn void fail(const char *what, bird_status status, const bird_error *error) {
    fprintf(stderr, "%s: %s %s\n", what, bird_status_name(status), error ? bird_error_message(error) : "");
    exit(1);
}

static void must(const char *what, bird_status status, bird_error *error) {
    if (status != BIRD_OK) {
        fail(what, status, error);
    }
}

static long microseconds(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (long)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void keep_longest(atomic_long *longest, long us) {
    if (us > atomic_load(longest)) {
        atomic_store(longest, us);
    }
}

/* On the reactor. */
static void on_tick(const bird_record *record, void *user_data) {
    static long cpu_us, wall_us;
    const long cpu = microseconds(CLOCK_THREAD_CPUTIME_ID);
    const long wall = microseconds(CLOCK_MONOTONIC);
    (void)record;
    (void)user_data;
    if (atomic_load(&is_measuring)) {
        keep_longest(&turn_us, cpu - cpu_us);
        keep_longest(&silence_us, wall - wall_us);
    }
    cpu_us = cpu;
    wall_us = wall;
    atomic_fetch_add(&ticks, 1);
}

static void on_record(const bird_record *record, void *user_data) {
    (void)user_data;
    if (record->kind < KINDS) {
        atomic_fetch_add(&kinds[record->kind], 1);
    }
    if (record->kind == BIRD_RECORD_SUBSCRIBED) {
        atomic_store(&members, ((const bird_subscription *)record->detail)->member_count);
    }
    if (record->kind == BIRD_RECORD_ERROR) {
        const char *message = bird_error_message(((const bird_failure *)record->detail)->error);
        if ((long)strlen(message) > atomic_load(&error_bytes)) {
            atomic_store(&error_bytes, (long)strlen(message));
        }
        pthread_mutex_lock(&lock);
        snprintf(error_text, sizeof error_text, "%s", message);
        pthread_mutex_unlock(&lock);
    }
}

static long status_kib(const char *key) {
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = atol(line + strlen(key));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib;
}

/* The largest memory so far is forgotten. */
static void forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0) {
        fail("clear_refs", BIRD_OK, NULL);
    }
}

static void set(bird_options *options, const char *key, const char *value) {
    bird_error *error = NULL;
    must(key, bird_options_set(options, key, value, &error), error);
}

static bird_client *connect_to(const char *edge, const char *delivery, char **words, int count) {
    bird_options *options = NULL;
    bird_client *client = NULL;
    bird_error *error = NULL;
    must("options", bird_options_create(&options), NULL);
    set(options, "app_key", "k");
    set(options, "allow_insecure", "1");
    set(options, "ws_host", edge);
    set(options, "delivery", delivery);
    for (int i = 0; i < count; i++) {
        char *value = strchr(words[i], '=');
        if (value == NULL) {
            fail(words[i], BIRD_ERR_VALUE, NULL);
        }
        *value = 0;
        set(options, words[i], value + 1);
    }
    must("create", bird_client_create(options, &client, &error), error);
    bird_options_destroy(options);
    return client;
}

static void report(bird_client *client, long start_kib) {
    size_t dump_bytes = 0;
    size_t roster = 0;
    bird_statistics statistics = {.struct_size = sizeof statistics};
    if (client != NULL) {
        (void)bird_client_dump(client, NULL, 0, &dump_bytes);
        must("statistics", bird_client_statistics(client, &statistics), NULL);
    }
    if (presence != NULL) {
        (void)bird_channel_member_count(presence, &roster);
    }
    printf("{\"start_kib\": %ld, \"peak_kib\": %ld, \"rss_kib\": %ld, \"turn_us\": %ld, \"silence_us\": %ld, "
           "\"ticks\": %ld, "
           "\"members\": %ld, \"roster\": %zu, \"dump_bytes\": %zu, \"error_bytes\": %ld, \"messages_sent\": %llu, "
           "\"malformed\": %llu, \"queued\": %llu, \"kinds\": {",
           start_kib, status_kib("VmHWM:"), status_kib("VmRSS:"), atomic_load(&turn_us), atomic_load(&silence_us),
           atomic_load(&ticks), atomic_load(&members), roster, dump_bytes, atomic_load(&error_bytes),
           (unsigned long long)statistics.messages_sent, (unsigned long long)statistics.watchlist_entries_malformed,
           (unsigned long long)statistics.queue_records);
    for (int kind = 0; kind < KINDS; kind++) {
        printf("%s\"%d\": %ld", kind ? ", " : "", kind, atomic_load(&kinds[kind]));
    }
    printf("}, \"error\": \"");
    pthread_mutex_lock(&lock);
    for (const char *byte = error_text; *byte != 0; byte++) {
        if (*byte != '"' && *byte != '\\' && (unsigned char)*byte >= 0x20) {
            putchar(*byte);
        }
    }
    pthread_mutex_unlock(&lock);
    printf("\"}\n");
}

static void churn(bird_client *client, long count, const char *name) {
    long full = 0;
    for (long i = 0; i < count; i++) {
        bird_channel *channel = NULL;
        const bird_status status = bird_client_subscribe(client, name, 0, &channel, NULL);
        if (status == BIRD_ERR_FULL) {
            full++;
            continue;
        }
        must("subscribe", status, NULL);
        must("unsubscribe", bird_channel_unsubscribe(channel), NULL);
        bird_channel_release(channel);
    }
    printf("{\"full\": %ld}\n", full);
}

int main(int argc, char **argv) {
    char line[LINE_BYTES_MAX];
    bird_client *client = NULL;
    bird_channel *channel = NULL;
    bird_error *error = NULL;
    long start_kib = 0;
    if (argc != 2) {
        return 2;
    }
    bird_client *innocent = connect_to(argv[1], "loop", NULL, 0);
    must("subscribe", bird_client_subscribe(innocent, "ticks", 0, &channel, &error), error);
    must("bind", bird_channel_bind(channel, "tick", on_tick, NULL, NULL, NULL, &error), error);
    must("connect", bird_client_connect(innocent, &error), error);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[WORDS_MAX];
        int count = 0;
        for (char *word = strtok(line, " \n"); word != NULL && count < WORDS_MAX; word = strtok(NULL, " \n")) {
            words[count++] = word;
        }
        if (count >= 3 && strcmp(words[0], "start") == 0) {
            client = connect_to(words[1], words[2], words + 3, count - 3);
            must("observe", bird_client_observe(client, UINT64_MAX, on_record, NULL, NULL, NULL, &error), error);
            forget_peak();
            start_kib = status_kib("VmRSS:");
            atomic_store(&is_measuring, 1);
            must("connect", bird_client_connect(client, &error), error);
        } else if (count == 2 && strcmp(words[0], "subscribe") == 0) {
            must("subscribe", bird_client_subscribe(client, words[1], 0, &channel, &error), error);
            presence = strncmp(words[1], "presence-", 9) == 0 ? channel : presence;
        } else if (count == 1 && strcmp(words[0], "signin") == 0) {
            must("signin", bird_client_signin(client, 0, 0, &error), error);
        } else if (count == 3 && strcmp(words[0], "churn") == 0) {
            churn(client, atol(words[1]), words[2]);
        } else if (count == 1 && strcmp(words[0], "report") == 0) {
            report(client, start_kib);
        } else {
            return 2;
        }
        fflush(stdout);
    }
    bird_client_destroy(client);
    bird_client_destroy(innocent);
    return 0;
}
