#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "soak.h"

struct settings settings = {.seed = 1, .clients = 20};

void fail(const char *format, ...) {
    /* One report: other threads may find more of the same. */
    static pthread_mutex_t only = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&only);
    fprintf(stderr, "soak: seed %llu: ", (unsigned long long)settings.seed);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(NULL);
    _Exit(1);
}

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms) {
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

void settings_read(int argc, char **argv) {
    const struct {
        const char *name;
        const char **text;
    } texts[] = {
        {"--plain", &settings.plain},
        {"--named", &settings.named},
        {"--tls", &settings.tls},
        {"--dead", &settings.dead},
        {"--ca-file", &settings.ca_file},
        {"--auth", &settings.auth},
        {"--member-auth", &settings.member_auth},
        {"--app-key", &settings.app_key},
        {"--app-secret", &settings.app_secret},
        {"--master-key", &settings.master_key},
        {"--log-file", &settings.log_file},
    };
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--keep") == 0) {
            settings.keeps = true;
            continue;
        }
        if (i + 1 == argc)
            fail("%s: unknown, or without a value", argv[i]);
        const char *name = argv[i], *value = argv[++i];
        bool is_known = true;
        if (strcmp(name, "--seed") == 0)
            settings.seed = strtoull(value, NULL, 10);
        else if (strcmp(name, "--clients") == 0)
            settings.clients = (unsigned)strtoul(value, NULL, 10);
        else
            is_known = false;
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
            if (strcmp(name, texts[k].name) == 0) {
                *texts[k].text = value;
                is_known = true;
            }
        if (!is_known)
            fail("%s: unknown", name);
    }
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (*texts[k].text == NULL)
            fail("%s is missing", texts[k].name);
    if (settings.clients == 0 || settings.clients > UINT16_MAX)
        fail("--clients: 1 to %d", UINT16_MAX);
}
