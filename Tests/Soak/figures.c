#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "soak.h"

enum { BASELINE_DEADLINE_MS = 30000 };

struct counters counters;
static size_t threads_before, files_before;

static size_t count_entries(const char *path) {
    DIR *directory = opendir(path);
    if (directory == NULL)
        fail("%s cannot be read", path);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static size_t count_threads(void) {
    return count_entries("/proc/self/task");
}

static size_t count_files(void) {
    return count_entries("/proc/self/fd") - 1; /* without the one that reads the directory */
}

static size_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long total, resident;
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2)
        fail("/proc/self/statm cannot be read");
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

static int64_t cpu_ms(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

void figures_begin(void) {
    threads_before = count_threads();
    files_before = count_files();
}

void figures_await_baseline(void) {
    const int64_t end = now_ms() + BASELINE_DEADLINE_MS;
    while (count_threads() != threads_before || count_files() != files_before ||
           atomic_load(&counters.log_registrations) != atomic_load(&counters.log_destructors)) {
        if (now_ms() > end)
            fail("after the last destroy there are %zu threads in place of %zu, %zu open files in place of %zu, and "
                 "%lld "
                 "log handlers of which %lld have ended",
                 count_threads(), threads_before, count_files(), files_before, atomic_load(&counters.log_registrations),
                 atomic_load(&counters.log_destructors));
        sleep_ms(5);
    }
    if (atomic_load(&counters.registrations) != atomic_load(&counters.destructors))
        fail("%lld registrations, but %lld destructors", atomic_load(&counters.registrations),
             atomic_load(&counters.destructors));
    if (atomic_load(&counters.accepted) != atomic_load(&counters.completed) + atomic_load(&counters.abandoned))
        fail("%lld operations accepted, %lld completed, %lld open when their client was destroyed",
             atomic_load(&counters.accepted), atomic_load(&counters.completed), atomic_load(&counters.abandoned));
    if (atomic_load(&counters.created) != atomic_load(&counters.destroyed))
        fail("%lld clients created, %lld destroyed", atomic_load(&counters.created), atomic_load(&counters.destroyed));
}

void figures_print(const char *when) {
    const struct {
        const char *name;
        atomic_llong *value;
    } counts[] = {
        {"created", &counters.created},
        {"destroyed", &counters.destroyed},
        {"registrations", &counters.registrations},
        {"destructors", &counters.destructors},
        {"accepted", &counters.accepted},
        {"completed", &counters.completed},
        {"abandoned", &counters.abandoned},
        {"events", &counters.events},
        {"dropped", &counters.dropped},
        {"ambiguous", &counters.ambiguous},
        {"attempts", &counters.attempts},
        {"connects", &counters.connects},
        {"requests", &counters.requests},
        {"requests_unanswered", &counters.requests_unanswered},
        {"log_entries", &counters.log_entries},
        {"actions", &counters.actions},
        {"refused_connects", &counters.refused_connects},
        {"losses_thread", &counters.losses[MODE_THREAD]},
        {"losses_queue", &counters.losses[MODE_QUEUE]},
        {"losses_loop", &counters.losses[MODE_LOOP]},
        {"losses_host", &counters.losses[MODE_HOST]},
    };
    malloc_trim(
        0); /* what the allocator keeps for later is no growth: each of its arenas keeps the most that it ever held */
    const struct mallinfo2 heap = mallinfo2();
    flockfile(stdout);
    printf("{\"when\":\"%s\",\"resident_bytes\":%zu,\"heap_blocks\":%lld,\"heap_bytes\":%lld,\"heap_free_bytes\":%zu,"
           "\"files\":%zu,"
           "\"threads\":%zu,\"cpu_ms\":%lld",
           when, resident_bytes(), heap_blocks(), heap_bytes(), heap.fordblks, count_files(), count_threads(),
           (long long)cpu_ms());
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf(",\"%s\":%lld", counts[i].name, (long long)atomic_load(counts[i].value));
    puts("}");
    fflush(stdout);
    funlockfile(stdout);
}
