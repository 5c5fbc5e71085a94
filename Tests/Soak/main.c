/*
 * A long life for the library: clients in every delivery mode do what programs do, at random but from a seed, while the servers that
 * Tests/integration/soak.py has started let them down. What the program sees is checked at once; figures go out as lines of JSON.
 *
 * It obeys lines on standard input and ends with it:
 *   live                    clients live at random
 *   settle                  all are connected and have their channels: answers "settled" (every answer is a line of figures)
 *   marks NAME NUMBER ...   all have seen these last events of their channels: "marked"
 *   strip                   all are connected and have nothing: "stripped"
 *   destroy                 all have ended, and with them threads and files: "destroyed"
 *   figures                 "figures"
 */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { WORKERS = 2, PHASE_DEADLINE_MS = 240000, LINE_BYTES_MAX = 4096 };

struct phase {
    const char *command, *answer; /* answer NULL: it goes on until the next command */
    bool (*work)(struct slot *slot);
    bool is_calm;
};

static const struct phase phases[] = {
    {"live", NULL, life_act, false},           {"settle", "settled", life_settle, true},
    {"marks", "marked", life_has_marks, true}, {"strip", "stripped", life_strip, true},
    {"destroy", "destroyed", life_end, true},
};

atomic_bool is_calm;
static struct slot *slots;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static const struct phase *phase; /* NULL: rest */
static unsigned phases_begun;
static int busy_workers;
static bool is_serving;

struct slot *slot_of(uint64_t client_tag) {
    const unsigned index = client_tag & UINT16_MAX;
    if (index >= settings.clients)
        fail("a record has the tag %llx", (unsigned long long)client_tag);
    return &slots[index];
}

static const struct phase *phase_now(void) {
    pthread_mutex_lock(&lock);
    const struct phase *now = phase;
    pthread_mutex_unlock(&lock);
    return now;
}

static void live(unsigned worker, const struct phase *now) {
    struct chance chance = {.state = settings.seed * 31 + worker};
    const unsigned own = (settings.clients - worker + WORKERS - 1) / WORKERS;
    while (own > 0 && phase_now() == now) {
        now->work(&slots[worker + WORKERS * (unsigned)chance_between(&chance, 0, own - 1)]);
        sleep_ms(chance_between(&chance, 0, 6));
    }
}

/* Until all are there at the same time. */
static void get_there(unsigned worker, const struct phase *now) {
    const int64_t end = now_ms() + PHASE_DEADLINE_MS;
    for (;;) {
        struct slot *missing = NULL;
        for (unsigned i = worker; i < settings.clients; i += WORKERS)
            if (!now->work(&slots[i]))
                missing = &slots[i];
        if (missing == NULL)
            return;
        if (now_ms() > end) {
            life_describe(missing);
            fail("\"%s\" is not reached", now->answer);
        }
        sleep_ms(10);
    }
}

static void *work(void *argument) {
    const unsigned worker = (unsigned)(uintptr_t)argument;
    for (unsigned begun = 0;;) {
        pthread_mutex_lock(&lock);
        while (phases_begun == begun)
            pthread_cond_wait(&changed, &lock);
        begun = phases_begun;
        const struct phase *now = phase;
        pthread_mutex_unlock(&lock);
        if (now->answer == NULL)
            live(worker, now);
        else
            get_there(worker, now);
        pthread_mutex_lock(&lock);
        busy_workers--;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void await_workers(void) {
    while (busy_workers > 0)
        pthread_cond_wait(&changed, &lock);
}

static void begin_phase(const struct phase *next) {
    pthread_mutex_lock(&lock);
    phase = NULL; /* ends "live" */
    await_workers();
    atomic_store(&is_calm, next->is_calm);
    phase = next;
    phases_begun++;
    busy_workers = WORKERS;
    pthread_cond_broadcast(&changed);
    if (next->answer != NULL)
        await_workers();
    pthread_mutex_unlock(&lock);
}

static void read_marks(char *text) {
    for (char *rest, *name = strtok_r(text, " ", &rest); name != NULL; name = strtok_r(NULL, " ", &rest)) {
        const char *number = strtok_r(NULL, " ", &rest);
        const size_t index = names_find(name);
        if (index == names_count || number == NULL)
            fail("marks: %s", name);
        marks[index] = strtoll(number, NULL, 10);
    }
}

static void obey(char *line) {
    line[strcspn(line, "\n")] = '\0';
    char *arguments = line + strcspn(line, " ");
    if (*arguments != '\0')
        *arguments++ = '\0';
    if (strcmp(line, "figures") == 0) {
        figures_print("figures");
        return;
    }
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (strcmp(phases[i].command, line) != 0)
            continue;
        if (phases[i].work == life_has_marks)
            read_marks(arguments);
        if (!is_serving)
            servers_start(settings.seed);
        is_serving = true;
        begin_phase(&phases[i]);
        if (phases[i].work == life_end) {
            servers_stop();
            is_serving = false;
            figures_await_baseline();
        }
        if (phases[i].answer != NULL)
            figures_print(phases[i].answer);
        return;
    }
    fail("there is no command %s", line);
}

int main(int argc, char **argv) {
    settings_read(argc, argv);
    if (sodium_init() < 0)
        fail("libsodium does not start");
    if (BIRD_VERSION_CHECK() != BIRD_OK)
        fail("the library is another one than the header");
    slots = calloc(settings.clients, sizeof *slots);
    if (slots == NULL)
        fail("out of memory");
    for (unsigned i = 0; i < settings.clients; i++) {
        slots[i].index = i;
        slots[i].mode = i % MODES;
        slots[i].chance.state = settings.seed << 16 | i;
        pthread_mutex_init(&slots[i].lock, NULL);
        pthread_mutex_init(&slots[i].turn, NULL);
        for (size_t name = 0; name < names_count; name++)
            atomic_store(&slots[i].views[name].last, -1);
    }
    for (uintptr_t i = 0; i < WORKERS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)i) != 0)
            fail("no thread");
    }
    figures_begin();
    char line[LINE_BYTES_MAX];
    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    return 0;
}
