#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <time.h>

#define CASES_MAX 256

static struct {
    const char *name;
    const char *needs;
    harness_case run;
} cases[CASES_MAX];
static int case_count;

static int argument_count;
static char **arguments;

void harness_register(const char *name, const char *needs, harness_case run) {
    if (case_count == CASES_MAX) {
        harness_fail(__FILE__, __LINE__, "more than %d cases", CASES_MAX);
    }
    cases[case_count].name = name;
    cases[case_count].needs = needs;
    cases[case_count].run = run;
    case_count++;
}

const char *harness_argument(int index) {
    if (index >= argument_count) {
        harness_fail(__FILE__, __LINE__, "argument %d is missing", index + 1);
    }
    return arguments[index];
}

void harness_set_options(bird_options *options) {
    for (int i = 0; i < argument_count; i++) {
        char key[64];
        const char *value = strchr(arguments[i], '=');
        if (value != NULL) {
            snprintf(key, sizeof key, "%.*s", (int)(value - arguments[i]), arguments[i]);
            set_option(options, key, value + 1);
        }
    }
}

void harness_fail(const char *file, int line, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    _Exit(1);
}

void harness_check_status(const char *file, int line, const char *text, bird_status got, bird_status wanted) {
    if (got != wanted) {
        harness_fail(file, line, "%s gave %s, not %s", text, bird_status_name(got), bird_status_name(wanted));
    }
}

void harness_check_int(const char *file, int line, const char *text, int64_t got, int64_t wanted) {
    if (got != wanted) {
        harness_fail(file, line, "%s is %lld, not %lld", text, (long long)got, (long long)wanted);
    }
}

void harness_check_text(const char *file, int line, const char *text, const char *got, const char *wanted) {
    if (got == NULL || strcmp(got, wanted) != 0) {
        harness_fail(file, line, "%s is \"%s\", not \"%s\"", text, got ? got : "(NULL)", wanted);
    }
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int count_entries(const char *path) {
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    int count = 0;
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count - 2; /* . and .. */
}

int count_fds(void) {
    return count_entries("/proc/self/fd") - 1; /* the directory itself */
}

/* A thread that was joined may still stand in /proc for a moment: from the kernel's PF_EXITING on it does not count. */
static bool is_ending(const char *task) {
    const unsigned exiting = 0x4;
    char path[64], line[512] = "";
    unsigned flags = exiting;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", task);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        CHECK(errno == ENOENT);
        return true;
    }
    const char *behind_name = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    if (behind_name != NULL) {
        CHECK(sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1);
    }
    fclose(file);
    return (flags & exiting) != 0;
}

int count_threads(void) {
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory != NULL);
    int count = 0;
    for (const struct dirent *task; (task = readdir(directory)) != NULL;) {
        count += task->d_name[0] != '.' && !is_ending(task->d_name);
    }
    closedir(directory);
    return count;
}

long resident_kib(void) {
#ifdef SANITIZED
    return 0;
#endif
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    long total, resident;
    CHECK(fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident * 4;
}

int main(int count, char **values) {
    if (count == 2 && strcmp(values[1], "--list") == 0) {
        for (int i = 0; i < case_count; i++) {
            printf("%s %s\n", cases[i].name, cases[i].needs);
        }
        return 0;
    }
    for (int i = 0; count >= 2 && i < case_count; i++) {
        if (strcmp(values[1], cases[i].name) == 0) {
            argument_count = count - 2;
            arguments = values + 2;
            cases[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: harness --list | harness CASE [HOST:PORT [thread|queue|loop]] [KEY=VALUE ...]\n");
    return 2;
}
