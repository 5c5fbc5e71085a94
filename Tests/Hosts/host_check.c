/*
 * host_check HOST:PORT ROUNDS [CA_FILE]: what a host notices of the library. Prints one line for each thing that is looked at and nothing else;
 * "wrong" and status 1 if something has changed. The server has to accept connections and may do as it likes with them then.
 */
#include <birdrealtime.h>

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 30000
#define TEXT_BYTES_MAX 65536
#define GROWTH_KIB_MAX 4096

extern char **environ;

static int wrong;

static void report(const char *what, bool is_good, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ----------------------------------------------------------------------------------------------- what is looked at -- */

static int count_entries(const char *path) {
    DIR *directory = opendir(path);
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* 0 where what grows would be a sanitizer. */
static long resident_kib(void) {
#ifdef SANITIZED
    return 0;
#endif
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
        abort();
    }
    fclose(file);
    return resident * 4;
}

/* Each appends to the text what it finds; the texts of before and after are compared. */
typedef void (*look)(char *text);

static void add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void look_at_handlers(char *text) {
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0) {
            add(text, "%d:%lx:%x ", number, (unsigned long)action.sa_handler, (unsigned)action.sa_flags);
        }
    }
    stack_t stack;
    sigaltstack(NULL, &stack);
    add(text, "stack %p %d", stack.ss_sp, stack.ss_flags);
}

static void look_at_mask(char *text) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < NSIG; number++) {
        add(text, "%d", sigismember(&mask, number));
    }
}

/* Without the two signals that the C library keeps for itself: it handles them from the first thread on. */
static void look_at_kernel_masks(char *text) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "Sig", 3) == 0 && strncmp(line, "SigQ", 4) != 0) {
            add(text, "%.6s %llx ", line, strtoull(line + 7, NULL, 16) & 0xfffffffe7fffffff);
        }
    }
    fclose(file);
}

static void look_at_environment(char *text) {
    for (char **entry = environ; *entry != NULL; entry++) {
        add(text, "%p %s\n", (void *)*entry, *entry);
    }
}

static void look_at_locale(char *text) {
    add(text, "%s %p", setlocale(LC_ALL, NULL), (void *)uselocale((locale_t)0));
}

static void look_at_umask_and_directory(char *text) {
    char path[4096];
    const mode_t mask = umask(0);
    umask(mask);
    add(text, "%o %s", mask, getcwd(path, sizeof path));
}

static void look_at_stdio(char *text) {
    FILE *const files[] = {stdin, stdout, stderr};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        add(text, "%zu %d %zu %d ", __fbufsize(files[i]), __flbf(files[i]), __fpending(files[i]),
            fcntl(fileno(files[i]), F_GETFL));
    }
}

static void look_at_numbers(char *text) {
    add(text, "%d %d", fegetround(), fetestexcept(FE_ALL_EXCEPT & ~FE_INEXACT));
}

static void look_at_timers_and_limits(char *text) {
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        struct itimerval timer;
        getitimer((__itimer_which_t)which, &timer);
        add(text, "%ld.%ld ", (long)timer.it_value.tv_sec, (long)timer.it_value.tv_usec);
    }
    for (int which = 0; which < RLIMIT_NLIMITS; which++) {
        struct rlimit limit;
        getrlimit((__rlimit_resource_t)which, &limit);
        add(text, "%lx ", (unsigned long)limit.rlim_cur);
    }
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    add(text, "%s %d %d", name, getpriority(PRIO_PROCESS, 0), (int)prctl(PR_GET_DUMPABLE));
}

static const struct {
    const char *what;
    look look;
} looks[] = {
    {"signal handlers", look_at_handlers},
    {"signal mask", look_at_mask},
    {"signals, as the kernel sees them", look_at_kernel_masks},
    {"environment", look_at_environment},
    {"locale", look_at_locale},
    {"umask and directory", look_at_umask_and_directory},
    {"standard streams", look_at_stdio},
    {"rounding and exceptions of numbers", look_at_numbers},
    {"timers, limits, name, priority", look_at_timers_and_limits},
};
#define LOOKS (sizeof looks / sizeof *looks)

static char texts[2][LOOKS][TEXT_BYTES_MAX];

static void look_at_everything(int moment) {
    for (size_t i = 0; i < LOOKS; i++) {
        texts[moment][i][0] = '\0';
        looks[i].look(texts[moment][i]);
    }
}

/* ----------------------------------------------------------------------------------------------------- the library -- */

static const char *server, *ca_file;

static void need(bird_status status, const char *what) {
    if (status != BIRD_OK) {
        report(what, false, "%s", bird_status_name(status));
        exit(1);
    }
}

static void set(bird_options *options, const char *key, const char *value) {
    need(bird_options_set(options, key, value, NULL), key);
}

static bird_client *create(void) {
    bird_options *options = NULL;
    bird_client *client = NULL;
    need(bird_options_create(&options), "bird_options_create");
    set(options, "app_key", "pk_host");
    set(options, "ws_host", server);
    if (ca_file != NULL) {
        set(options, "ca_file", ca_file);
    } else {
        set(options, "allow_insecure", "1");
    }
    need(bird_client_create(options, &client, NULL), "bird_client_create");
    bird_options_destroy(options);
    return client;
}

static void connect_and_wait(bird_client *client) {
    need(bird_client_connect(client, NULL), "bird_client_connect");
    need(bird_client_wait(client, BIRD_STATE_CONNECTED, WAIT_MS), "bird_client_wait");
}

static bool all_fds_close_on_exec(void) {
    for (int fd = 3; fd < 1024; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (flags != -1 && (flags & FD_CLOEXEC) == 0) {
            return false;
        }
    }
    return true;
}

/* The kernel takes a moment to forget a thread that has been joined. */
static int threads_after_a_moment(int wanted) {
    int count = 0;
    for (int tries = 0; tries < WAIT_MS; tries++) {
        count = count_entries("/proc/self/task");
        if (count == wanted) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return count;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: host_check HOST:PORT ROUNDS [CA_FILE]\n");
        return 2;
    }
    server = argv[1];
    const int rounds = atoi(argv[2]);
    ca_file = argc > 3 ? argv[3] : NULL;
    /* Files that the program was started with are its starter's affair. */
    for (int fd = 3; fd < 1024; fd++) {
        close(fd);
    }
    setlocale(LC_ALL, "C.UTF-8");
    srandom(7);
    const long first_random = random();
    srandom(7);
    printf("left in the buffer:\n");

    look_at_everything(0);
    const int fds = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    bird_client *client = create();
    const int threads_created = count_entries("/proc/self/task"), fds_created = count_entries("/proc/self/fd");
    connect_and_wait(client);
    const int threads_connected = count_entries("/proc/self/task");
    const bool closes_on_exec = all_fds_close_on_exec();
    look_at_everything(1);
    for (size_t i = 0; i < LOOKS; i++) {
        report(looks[i].what, strcmp(texts[0][i], texts[1][i]) == 0, "while connected");
    }
    report("close-on-exec", closes_on_exec, "on every file");
    report("no thread or file before connect", threads_created == threads && fds_created == fds, "%d and %d more",
           threads_created - threads, fds_created - fds);
    report("threads while connected", threads_connected > threads, "%d more", threads_connected - threads);
    need(bird_client_destroy(client), "bird_client_destroy");
    const int threads_left = threads_after_a_moment(threads);
    report("threads after the last destroy", threads_left == threads, "%d more", threads_left - threads);

    long memory = 0;
    int fds_warm = 0;
    for (int round = 0; round < rounds; round++) {
        client = create();
        connect_and_wait(client);
        need(bird_client_destroy(client), "bird_client_destroy");
        if (round == rounds / 10) {
            memory = resident_kib();
            fds_warm = count_entries("/proc/self/fd");
        }
    }
    const int fds_left = count_entries("/proc/self/fd");
    const long growth = resident_kib() - memory;
    report("files after many rounds", fds_left == fds && fds_warm == fds, "%d more", fds_left - fds);
    report("threads after many rounds", threads_after_a_moment(threads) == threads, "%d rounds", rounds);
    report("memory", growth < GROWTH_KIB_MAX, "%ld KiB more over the last %d rounds", growth, rounds - rounds / 10);
    report("random numbers", random() == first_random, "not drawn");
    fflush(stdout);
    look_at_everything(1);
    const size_t stdio = 6; /* what waited in the buffers has been written above */
    for (size_t i = 0; i < LOOKS; i++) {
        report(looks[i].what, i == stdio || strcmp(texts[0][i], texts[1][i]) == 0, "afterwards");
    }
    return wrong;
}

/* ------------------------------------------------------------------------------------------------------------ text -- */

static void add(char *text, const char *format, ...) {
    const size_t length = strlen(text);
    va_list values;
    va_start(values, format);
    vsnprintf(text + length, TEXT_BYTES_MAX - length, format, values);
    va_end(values);
}

static void report(const char *what, bool is_good, const char *format, ...) {
    char found[256] = "";
    va_list values;
    va_start(values, format);
    vsnprintf(found, sizeof found, format, values);
    va_end(values);
    wrong |= !is_good;
    printf("%-36s %-5s %s\n", what, is_good ? "ok" : "wrong", found);
}
