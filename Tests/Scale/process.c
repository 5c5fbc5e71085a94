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

size_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long total, resident;
    if (file == NULL || fscanf(file, "%lu %lu", &total, &resident) != 2)
        fail("/proc/self/statm cannot be read");
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
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

static uint64_t sleeps_of(const char *thread) {
    static const char key[] = "voluntary_ctxt_switches:";
    char line[256];
    snprintf(line, sizeof line, "/proc/self/task/%.20s/status", thread);
    FILE *file = fopen(line, "re");
    if (file == NULL)
        return 0; /* it has ended meanwhile */
    uint64_t sleeps = 0;
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, sizeof key - 1) == 0)
            sleeps = strtoull(line + sizeof key - 1, NULL, 10);
    fclose(file);
    return sleeps;
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
