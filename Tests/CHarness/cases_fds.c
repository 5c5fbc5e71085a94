/* Hosts that are careless with file descriptors: those that have closed the standard streams, and those that close what is not theirs. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FDS_MAX = 256, FIRST_FD = 3, KEPT_FD = 200 };

/* ----------------------------------------------------------------------------------------------- standard streams ----- */

/* What the host prints goes nowhere, and into nothing of the library's. A place that is held (O_PATH) takes no byte. */
static void check_standard_streams(const char *when) {
    for (int fd = 0; fd < FIRST_FD; fd++) {
        const int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && (flags & O_PATH) == 0) {
            harness_fail(__FILE__, __LINE__, "%s the library has fd %d", when, fd);
        }
    }
}

MODE_CASE(standard_streams_stay_closed) {
    char log_path[] = "/tmp/bird-harness-XXXXXX", url[128];
    const int log_fd = mkstemp(log_path);
    CHECK(log_fd >= 0 && close(log_fd) == 0);
    CHECK(dup2(STDERR_FILENO, KEPT_FD) == KEPT_FD);
    stderr = fdopen(KEPT_FD, "w"); /* what a failure says */
    CHECK(stderr != NULL && setvbuf(stderr, NULL, _IONBF, 0) == 0);
    for (int fd = 0; fd < FIRST_FD; fd++) {
        close(fd);
    }
    snprintf(url, sizeof url, "http://%s/", harness_argument(0));
    bird_options *options = world_options(harness_mode());
    set_option(options, "log_file", log_path);
    set_option(options, "log_file_bytes_max", "2000"); /* rolls now and then */
    set_option(options, "log_file_level", "verbose");
    set_option(options, "log_console", "verbose");
    set_option(options, "authorizer", "0");
    set_option(options, "auth_endpoint", url);
    CHECK_STATUS(bird_options_set_auth_header(options, "X-Token", "open", NULL), BIRD_OK);
    harness_set_options(options);
    world w = world_open_with(harness_mode(), options);
    check_standard_streams("before the connect");
    CHECK_STATUS(bird_client_connect(w.client, NULL), BIRD_OK);
    const int64_t end = now_ms() + DEADLINE_MS;
    while (client_state(w.client) != BIRD_STATE_CONNECTED && now_ms() < end) {
        check_standard_streams("while it connects");
        world_turn(&w);
    }
    w.control = world_join(&w, "private-control");
    check_standard_streams("subscribed");
    bird_statistics s = {.struct_size = sizeof s};
    world_drop(&w);
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.connects == 2 &&
                  channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    world_settle(&w);
    check_standard_streams("connected again");
    world_close(&w);
    check_standard_streams("after the client");
    for (int number = 0; number < 8; number++) {
        char path[sizeof log_path + 8];
        snprintf(path, sizeof path, number == 0 ? "%s" : "%s.%d", log_path, number);
        unlink(path);
    }
}

/* ------------------------------------------------------------------------------------------- fds of the library's ----- */

static atomic_int fd_errors;

static void note_error(const bird_record *record, void *user_data) {
    (void)user_data;
    const bird_error *error = ((const bird_failure *)record->detail)->error;
    if (bird_error_status(error) == BIRD_ERR_SYSTEM && strcmp(bird_error_field(error), "fd") == 0) {
        atomic_fetch_add(&fd_errors, 1);
    }
}

static bool leads_to(int fd, const char *wanted) {
    char path[64], target[256] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return readlink(path, target, sizeof target - 1) > 0 && strstr(target, wanted) != NULL;
}

/* Closes what leads to this ("" is everything) and did not before; gives how many. */
static int close_fds(const char *wanted, const bool *is_hosts, int *closed) {
    int count = 0;
    for (int fd = FIRST_FD; fd < FDS_MAX; fd++) {
        if (!is_hosts[fd] && leads_to(fd, wanted)) {
            CHECK(close(fd) == 0);
            closed[count++] = fd;
        }
    }
    return count;
}

static int64_t cpu_us(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * INT64_C(1000000) + usage.ru_utime.tv_usec +
           usage.ru_stime.tv_usec;
}

static void check_is_quiet(world *w) {
    const int64_t before = cpu_us(), end = now_ms() + 500;
    while (now_ms() < end) {
        world_turn(w);
    }
    CHECK(cpu_us() - before < 100000 * SLOWNESS);
}

static world open_and_note(bool *is_hosts) {
    for (int fd = 0; fd < FDS_MAX; fd++) {
        is_hosts[fd] = fcntl(fd, F_GETFD) >= 0;
    }
    world w = world_open(harness_mode());
    CHECK_STATUS(bird_client_observe(w.client, 1u << BIRD_RECORD_ERROR, note_error, NULL, NULL, NULL, NULL), BIRD_OK);
    world_connect(&w);
    world_settle(&w);
    return w;
}

/* Its clients are ended with an error, nothing waits for ever, and another client works. */
static void check_is_over(world *w) {
    CHECK_STATUS(bird_client_retry_now(w->client), BIRD_OK); /* any call makes the reactor look */
    UNTIL(w, client_state(w->client) == BIRD_STATE_DISCONNECTED && atomic_load(&fd_errors) == 1);
    CHECK_STATUS(bird_client_wait(w->client, BIRD_STATE_CONNECTED, -1), BIRD_ERR_SYSTEM);
    check_is_quiet(w);
    CHECK_STATUS(bird_client_connect(w->client, NULL), BIRD_OK);
    UNTIL(w, atomic_load(&fd_errors) == 2 && client_state(w->client) == BIRD_STATE_DISCONNECTED);
    CHECK_STATUS(bird_client_flush(w->client, -1), BIRD_OK);
    CHECK_STATUS(bird_client_close(w->client, -1), BIRD_OK);
    bird_channel_release(w->control);
    world_close(w);
}

static void check_another_client(void) {
    world other = world_open(harness_mode());
    world_connect(&other);
    world_settle(&other);
    world_close(&other);
}

static void lose(const char *wanted) {
    bool is_hosts[FDS_MAX];
    int closed[FDS_MAX];
    world w = open_and_note(is_hosts);
    CHECK(close_fds(wanted, is_hosts, closed) > 0);
    check_is_over(&w);
    check_another_client();
}

MODE_CASE(host_closes_every_fd) {
    lose("");
}

MODE_CASE(host_closes_the_epoll_fd) {
    lose("[eventpoll]");
}

/* Between its own fds the reactor does without one. */
static void do_without(const char *wanted) {
    bool is_hosts[FDS_MAX];
    int closed[FDS_MAX];
    world w = open_and_note(is_hosts);
    close_fds(wanted, is_hosts, closed);
    world_settle(&w);
    check_is_quiet(&w);
    world_close(&w);
    check_another_client();
}

MODE_CASE(host_closes_the_event_fds) {
    do_without("[eventfd]");
}

MODE_CASE(host_closes_the_timer_fd) {
    do_without("[timerfd]");
}

/* The connection is lost like any other, as soon as something is to be written. */
MODE_CASE(host_closes_the_sockets) {
    bool is_hosts[FDS_MAX];
    int closed[FDS_MAX];
    world w = open_and_note(is_hosts);
    CHECK(close_fds("socket:", is_hosts, closed) > 0);
    bird_statistics s = {.struct_size = sizeof s};
    world_drop(&w);
    UNTIL(&w, bird_client_statistics(w.client, &s) == BIRD_OK && s.connects == 2 &&
                  channel_state(w.control) == BIRD_CHANNEL_SUBSCRIBED);
    world_settle(&w);
    CHECK_INT(atomic_load(&fd_errors), 0);
    world_close(&w);
}

/* Files of the host's under the numbers that it has closed: nothing is written to them, read from them, and they stay open. */
MODE_CASE(host_reuses_every_fd) {
    static const char text[] = "what the host has written";
    bool is_hosts[FDS_MAX];
    int closed[FDS_MAX];
    world w = open_and_note(is_hosts);
    char path[] = "/tmp/bird-harness-XXXXXX", found[sizeof text];
    const int file = mkstemp(path);
    int pair[2];
    CHECK(file >= 0 && unlink(path) == 0 && write(file, text, sizeof text) == sizeof text);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(write(pair[1], text, sizeof text) == sizeof text);
    is_hosts[file] = is_hosts[pair[0]] = is_hosts[pair[1]] = true;
    const int count = close_fds("", is_hosts, closed);
    for (int i = 0; i < count; i++) {
        CHECK(dup2(i % 2 == 0 ? file : pair[0], closed[i]) == closed[i]);
    }
    check_is_over(&w);
    check_another_client();
    struct stat status;
    for (int i = 0; i < count; i++) {
        CHECK(fstat(closed[i], &status) == 0);
        CHECK_INT(S_ISREG(status.st_mode) != 0, i % 2 == 0);
    }
    CHECK(fstat(file, &status) == 0);
    CHECK_INT(status.st_size, sizeof text);
    CHECK_INT(lseek(file, 0, SEEK_CUR), sizeof text);
    CHECK(recv(pair[0], found, sizeof found, MSG_DONTWAIT) == sizeof text);
    CHECK(recv(pair[1], found, sizeof found, MSG_DONTWAIT) < 0 && errno == EAGAIN);
}
