/* Signals are the host's: its handlers run on its threads, no call of the library returns early for them, and none comes from the library. */
#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV: blocked, they would kill a process that handles them. */
#define FAULTS UINT64_C(0x4d8)
/* But SIGKILL and SIGSTOP, and the two that the C library keeps for itself: it handles them from the first thread on. */
#define EVERY_SIGNAL 0xfffffffe7ffbfeffu

static _Thread_local bool is_hosts_thread;
/* A handler on a thread of the library's has the mask of the thread that connected: what that does not block may come there. */
static bool may_come_in_handlers;
static atomic_int alarms, on_foreign_thread;
static atomic_bool is_enough, is_sender_ready;

static void note_signal(int number) {
    if (number == SIGALRM) {
        atomic_fetch_add(&alarms, 1);
    }
    if (!is_hosts_thread && (number == SIGUSR1 || !may_come_in_handlers)) {
        atomic_fetch_add(&on_foreign_thread, 1);
    }
}

static void handle_signals(int flags) {
    static const int numbers[] = {SIGALRM, SIGCHLD, SIGUSR1};
    is_hosts_thread = true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK(sigaction(numbers[i], &(struct sigaction){.sa_handler = note_signal, .sa_flags = flags}, NULL) == 0);
    }
}

static void set_alarm(suseconds_t period_us) {
    const struct timeval period = {.tv_usec = period_us};
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){period, period}, NULL) == 0);
}

/* Aims at the process, so that the kernel chooses among all threads that do not block the signal. */
static void *send_signals(void *argument) {
    is_hosts_thread = true;
    atomic_store(&is_sender_ready, true);
    while (!atomic_load(&is_enough)) {
        kill(getpid(), SIGUSR1);
        kill(getpid(), SIGCHLD);
        usleep(200);
    }
    return argument;
}

static void check_waits(world *w) {
    const int before = atomic_load(&alarms);
    int64_t began = now_ms();
    CHECK_STATUS(bird_client_wait(w->client, BIRD_STATE_DISCONNECTED, 200), BIRD_ERR_TIMEOUT);
    CHECK(now_ms() - began >= 200);
    if (w->queue != NULL) {
        began = now_ms();
        bird_status status;
        while ((status = bird_queue_wait(w->queue, 200)) == BIRD_OK) {
            size_t count;
            CHECK_STATUS(bird_queue_dispatch(w->queue, 0, &count), BIRD_OK);
            began = now_ms();
        }
        CHECK_STATUS(status, BIRD_ERR_TIMEOUT);
        CHECK(now_ms() - began >= 200);
    }
    CHECK(atomic_load(&alarms) > before + 20); /* the waits were disturbed often */
    CHECK_STATUS(bird_client_flush(w->client, DEADLINE_MS), BIRD_OK);
}

static void be_disturbed(int flags) {
    pthread_t sender;
    handle_signals(flags);
    /* No thread of the host's takes SIGUSR1: only one of the library's could, if it did not block it. */
    sigset_t user;
    sigemptyset(&user);
    sigaddset(&user, SIGUSR1);
    CHECK(sigprocmask(SIG_BLOCK, &user, NULL) == 0);
    const int32_t mode = harness_mode();
    may_come_in_handlers = mode == BIRD_DELIVERY_THREAD || mode == BIRD_DELIVERY_LOOP;
    world w = world_open(mode);
    world_connect(&w);
    CHECK(pthread_create(&sender, NULL, send_signals, NULL) == 0);
    UNTIL(&w, atomic_load(&is_sender_ready));
    set_alarm(500);
    check_waits(&w);
    world_stream(&w);
    const int before = atomic_load(&alarms);
    UNTIL(&w, world_streamed() > 20000 && atomic_load(&alarms) > before + 100);
    world_end_stream(&w);
    CHECK_STATUS(bird_client_close(w.client, DEADLINE_MS), BIRD_OK);
    world_close(&w);
    set_alarm(0);
    atomic_store(&is_enough, true);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK_INT(atomic_load(&on_foreign_thread), 0);
}

MODE_CASE(calls_are_not_disturbed_by_signals) {
    be_disturbed(0);
}

MODE_CASE(calls_are_not_disturbed_by_restarting_signals) {
    be_disturbed(SA_RESTART);
}

/* Run by test_process.py, which stops and continues the process meanwhile. */
MODE_CASE(stream_for_a_while) {
    world w = world_open(harness_mode());
    world_connect(&w);
    world_stream(&w);
    UNTIL(&w, world_streamed() > 20000);
    world_end_stream(&w);
    world_close(&w);
}

/* ------------------------------------------------------------------------------------------------------ masks ------ */

static uint64_t mask_of(const char *status_path, const char *field) {
    char line[256];
    uint64_t mask = 0;
    bool is_found = false;
    FILE *file = fopen(status_path, "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            mask = strtoull(line + strlen(field), NULL, 16);
            is_found = true;
        }
    }
    fclose(file);
    CHECK(is_found);
    return mask & EVERY_SIGNAL;
}

/* The threads that are there now, but the caller. */
static int check_foreign_threads_block_everything(void) {
    int count = 0;
    DIR *directory = opendir("/proc/self/task");
    CHECK(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != getpid()) {
            char path[300];
            snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
            uint64_t blocked = mask_of(path, "SigBlk:");
            /* The C library starts a thread with every signal blocked, and the thread itself takes its own mask. */
            while (blocked == EVERY_SIGNAL) {
                sched_yield();
                blocked = mask_of(path, "SigBlk:");
            }
            if (blocked != (EVERY_SIGNAL & ~FAULTS)) {
                harness_fail(__FILE__, __LINE__, "a thread blocks %llx", (unsigned long long)blocked);
            }
            count++;
        }
    }
    closedir(directory);
    return count;
}

MODE_CASE(signals_are_left_as_they_were) {
    static const char *const fields[] = {"SigBlk:", "SigIgn:", "SigCgt:", "SigPnd:"};
    uint64_t before[sizeof fields / sizeof *fields];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        before[i] = mask_of("/proc/self/status", fields[i]);
    }
    world w = world_open(harness_mode());
    world_connect(&w);
    world_settle(&w);
    /* The reactor, and the pool. */
    const int wanted = w.delivery == DELIVERY_HOST ? 0 : w.delivery == BIRD_DELIVERY_THREAD ? 5 : 1;
    CHECK_INT(check_foreign_threads_block_everything(), wanted);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
            CHECK_INT(mask_of("/proc/self/status", fields[i]), before[i]);
        }
        if (round == 0) {
            world_close(&w);
        }
    }
}

/* ---------------------------------------------------------------------------------------------------- SIGPIPE ------ */

static void need_default_sigpipe(void) {
    struct sigaction action;
    CHECK(sigaction(SIGPIPE, NULL, &action) == 0);
    CHECK(action.sa_handler == SIG_DFL);
    CHECK((mask_of("/proc/self/status", "SigBlk:") & (1u << (SIGPIPE - 1))) == 0);
}

/* Each round writes into a connection that the peer has just ended. */
MODE_CASE(peers_that_go_away_raise_no_signal) {
    need_default_sigpipe();
    world w = world_open(harness_mode());
    world_connect(&w);
    for (int round = 0; round < 20; round++) {
        bird_statistics s = {.struct_size = sizeof s};
        CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
        const uint64_t connects = s.connects;
        CHECK_STATUS(bird_channel_trigger(w.control, round % 2 ? "client-reset" : "client-drop", NULL, 0, NULL),
                     BIRD_OK);
        while (s.connects == connects) {
            /* Refused when the loss has been noticed. */
            bird_channel_trigger(w.control, "client-more", "\"into the void\"", BIRD_NUL, NULL);
            world_turn(&w);
            CHECK_STATUS(bird_client_statistics(w.client, &s), BIRD_OK);
        }
        UNTIL(&w, channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    }
    need_default_sigpipe();
    world_close(&w);
}

static void count_failures(const bird_record *record, void *user_data) {
    (void)record;
    atomic_fetch_add((atomic_int *)user_data, 1);
}

/* HOST:PORT MODE auth_endpoint=... of a server that ends each connection before it has read the request. */
LOAD_CASE(authorizers_that_go_away_raise_no_signal) {
    enum { CHANNELS = 30 };
    need_default_sigpipe();
    world w = {.delivery = harness_mode()};
    atomic_int failures = 0;
    uint64_t binding;
    bird_options *options = world_options(w.delivery);
    set_option(options, "authorizer", "0");
    /* Longer than what one write of libcurl's takes, so that it writes again into the connection that has ended. */
    for (int i = 0; i < 16; i++) {
        char name[8], value[8000];
        snprintf(name, sizeof name, "X-%d", i);
        memset(value, 'x', sizeof value - 1);
        value[sizeof value - 1] = '\0';
        CHECK_STATUS(bird_options_set_auth_header(options, name, value, NULL), BIRD_OK);
    }
    w = world_open_with(w.delivery, options);
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_SUBSCRIPTION_ERROR, count_failures, &failures, NULL,
                                     &binding, NULL),
                 BIRD_OK);
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    for (int i = 0; i < CHANNELS; i++) {
        char name[32];
        bird_channel *channel = NULL;
        snprintf(name, sizeof name, "private-%d", i);
        CHECK_STATUS(bird_client_subscribe(w.client, name, 0, &channel, NULL), BIRD_OK);
        bird_channel_release(channel);
    }
    bird_statistics s = {.struct_size = sizeof s};
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.authorizations >= CHANNELS &&
                  atomic_load(&failures) > 0);
    need_default_sigpipe();
    world_close(&w);
}
