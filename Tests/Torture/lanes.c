/* The latest calls of each thread, for the one who has to find out what went wrong; printed with nothing but write(2). */
#include "torture.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

enum { LANES_MAX = 256, ENTRIES = 32, NAME_BYTES_MAX = 16 };

typedef struct entry {
    atomic_ullong ticket; /* counts the lane's calls from 1 */
    atomic_int function;
    atomic_int status;
    atomic_ullong number, places;
    atomic_llong begun_ms, ended_ms;
} entry;

typedef struct lane {
    atomic_bool is_taken;
    atomic_int thread;
    atomic_ullong count;
    entry entries[ENTRIES];
} lane;

static lane lanes[LANES_MAX];
static _Thread_local lane *mine;
static _Thread_local uint64_t under_way;
static pthread_key_t leaving;

static void give_back(void *value) {
    atomic_store(&((lane *)value)->is_taken, false);
}

__attribute__((constructor)) static void prepare(void) {
    if (pthread_key_create(&leaving, give_back) != 0) {
        abort();
    }
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Threads of the library come and go; more than fit share the last lane. */
static lane *my_lane(void) {
    if (mine != NULL) {
        return mine;
    }
    mine = &lanes[LANES_MAX - 1];
    for (int i = 0; i < LANES_MAX - 1; i++) {
        if (!atomic_exchange(&lanes[i].is_taken, true)) {
            mine = &lanes[i];
            pthread_setspecific(leaving, mine);
            break;
        }
    }
    atomic_store(&mine->thread, (int)gettid());
    return mine;
}

uint64_t lane_begin(int function, uint64_t number) {
    lane *own = my_lane();
    const uint64_t ticket = atomic_fetch_add_explicit(&own->count, 1, memory_order_relaxed) + 1;
    entry *e = &own->entries[ticket % ENTRIES];
    atomic_store_explicit(&e->ended_ms, 0, memory_order_relaxed);
    atomic_store_explicit(&e->begun_ms, now_ms(), memory_order_relaxed);
    atomic_store_explicit(&e->function, function, memory_order_relaxed);
    atomic_store_explicit(&e->number, number, memory_order_relaxed);
    atomic_store_explicit(&e->places, 0, memory_order_relaxed);
    atomic_store_explicit(&e->ticket, ticket, memory_order_relaxed);
    under_way = ticket;
    return ticket;
}

void lane_note(int shelf, int slot) {
    entry *e = &my_lane()->entries[under_way % ENTRIES];
    const uint64_t place_on_shelf = (uint64_t)(shelf + 1) << 8 | (uint64_t)(slot + 1);
    atomic_store_explicit(&e->places, atomic_load_explicit(&e->places, memory_order_relaxed) << 16 | place_on_shelf,
                          memory_order_relaxed);
}

void lane_end(uint64_t ticket, bird_status status) {
    entry *e = &my_lane()->entries[ticket % ENTRIES];
    if (atomic_load_explicit(&e->ticket, memory_order_relaxed) != ticket) {
        return; /* the calls of handlers in between have taken its place */
    }
    const int64_t now = now_ms();
    atomic_store_explicit(&e->status, status, memory_order_relaxed);
    atomic_store_explicit(&e->ended_ms, now, memory_order_relaxed);
    if (now - atomic_load_explicit(&e->begun_ms, memory_order_relaxed) > PATIENCE_MS) {
        FAIL("%s took too long", call_name(atomic_load(&e->function)));
    }
}

void lanes_check(void) {
    const int64_t limit = now_ms() - PATIENCE_MS;
    for (int i = 0; i < LANES_MAX; i++) {
        for (int j = 0; atomic_load(&lanes[i].is_taken) && j < ENTRIES; j++) {
            entry *e = &lanes[i].entries[j];
            const int64_t begun = atomic_load(&e->begun_ms);
            if (begun != 0 && begun < limit && atomic_load(&e->ended_ms) == 0) {
                FAIL("%s does not return", call_name(atomic_load(&e->function)));
            }
        }
    }
}

/* ------------------------------------------------------------------------------------------- safe in signals ------ */

static void put(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        _exit(1);
    }
}

static void put_number(uint64_t number, unsigned base) {
    char text[32];
    size_t at = sizeof text - 1;
    text[at] = '\0';
    do {
        text[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    put(text + at);
}

static void put_entry(entry *e, int64_t now) {
    static const char *const shelves[] = {"options", "client", "channel", "queue", "loop", "batch", "request"};
    put("    ");
    put(call_name(atomic_load(&e->function)));
    for (uint64_t places = atomic_load(&e->places); places != 0; places >>= 16) {
        put(" ");
        put(shelves[((places >> 8) & 0xFF) - 1]);
        put("[");
        if ((places & 0xFF) == 0xFF) {
            put("?");
        } else {
            put_number((places & 0xFF) - 1, 10);
        }
        put("]");
    }
    put(", number 0x");
    put_number(atomic_load(&e->number), 16);
    put(", ");
    const int64_t begun = atomic_load(&e->begun_ms);
    put_number(begun < now ? (uint64_t)(now - begun) : 0, 10);
    put(" ms ago: ");
    put(atomic_load(&e->ended_ms) == 0 ? "has not returned" : bird_status_name(atomic_load(&e->status)));
    put("\n");
}

void lanes_print(void) {
    static atomic_flag is_printing = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&is_printing)) {
        return;
    }
    const int64_t now = now_ms();
    for (int i = 0; i < LANES_MAX; i++) {
        const uint64_t count = atomic_load(&lanes[i].count);
        if (count == 0 || !atomic_load(&lanes[i].is_taken)) {
            continue;
        }
        put("thread ");
        put_number((uint64_t)atomic_load(&lanes[i].thread), 10);
        put(", latest call first:\n");
        for (uint64_t at = count; at > 0 && at + ENTRIES > count; at--) {
            put_entry(&lanes[i].entries[at % ENTRIES], now);
        }
    }
    put("again: make torture SEED=");
    put_number(run_seed, 10);
    put(" THREADS=");
    put_number((uint64_t)run_threads, 10);
    put(" SECONDS=");
    put_number((uint64_t)run_seconds, 10);
    put("\n");
}

static void crashed(int signal_number) {
    put("torture: signal ");
    put_number((uint64_t)signal_number, 10);
    put("\n");
    lanes_print();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* The sanitizers have handlers of their own, and call this at the end of their report. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

void lanes_catch_crashes(void) {
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(lanes_print);
        return;
    }
    const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        signal(deadly[i], crashed);
    }
}

void torture_fail(const char *file, int line, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "torture: %s:%d: %s\n", file, line, text);
    lanes_print();
    _exit(1);
}
