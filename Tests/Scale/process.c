#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "scale.h"

void raise_file_limit(size_t wanted) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_max < wanted)
        fail("about %zu open files are needed, and the hard limit of this process is %llu (ulimit -Hn): raise it, or "
             "ask for fewer clients",
             wanted, (unsigned long long)files.rlim_max);
}

/* 0 where what grows would be a sanitizer. */
size_t resident_bytes(void) {
#ifdef SANITIZED
    return 0;
#endif
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long total, resident;
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2)
        fail("/proc/self/statm cannot be read");
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* The number behind the key that a line of the file begins with; 0 if the file has gone. */
static uint64_t number_in(const char *path, const char *key) {
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    char line[256];
    uint64_t number = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            number = strtoull(line + strlen(key), NULL, 10);
    fclose(file);
    return number;
}

size_t anonymous_bytes(void) {
    uint64_t kib = number_in("/proc/self/smaps_rollup", "Anonymous:");
    if (kib == 0)
        fail("/proc/self/smaps_rollup cannot be read");
    return kib * 1024;
}

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

size_t count_threads(void) {
    return count_entries("/proc/self/task");
}

size_t count_files(void) {
    return count_entries("/proc/self/fd") - 1; /* without the one that reads the directory */
}

uint64_t cpu_us(void) {
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

/* 0 if the thread has ended meanwhile. */
static uint64_t sleeps_of(const char *thread) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/status", thread);
    return number_in(path, "voluntary_ctxt_switches:");
}

uint64_t count_sleeps(void) {
    DIR *directory = opendir("/proc/self/task");
    if (directory == NULL)
        fail("/proc/self/task cannot be read");
    uint64_t sleeps = 0;
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != gettid())
            sleeps += sleeps_of(entry->d_name);
    closedir(directory);
    return sleeps;
}
