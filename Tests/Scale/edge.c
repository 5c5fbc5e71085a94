/*
 * The edge of the scale program: one process, one port of 127.0.0.1, thousands of connections. It answers upgrades, handshakes, pings
 * and subscribes, and does what lines on stdin say; it ends with its input, so that none is left behind. Over TLS if it is linked so
 * (Benchmarks/stream.h).
 *
 * usage: scale_edge PORT ACTIVITY_TIMEOUT_S
 *   event TEXT  the event "news" with this data on the channel of each connection
 *   flood       "tick" on the channel "loud", as fast as its subscriber reads, until
 *   calm        ends that
 *   arrivals    prints when each connection since the last such line was accepted: ms of CLOCK_MONOTONIC on one line
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../../Benchmarks/server_side.h"
#include "../../Benchmarks/stream.h"

enum {
    INPUT_BYTES_MAX = 2048,
    NAME_BYTES_MAX = 64,
    LINE_BYTES_MAX = 256,
    FLOOD_FRAMES = 512,
    READY_MAX = 256,
    ARRIVALS_MAX = 65536,
};

struct connection {
    int fd;
    struct stream *stream;
    bool is_upgraded;
    bool wants_output;
    char name[NAME_BYTES_MAX]; /* "" until it has subscribed */
    char *output;
    size_t output_bytes;
    struct connection *next, *previous;
    size_t input_bytes;
    char input[INPUT_BYTES_MAX];
};

static int epoll_fd, listener;
static int activity_timeout_s;
static bool is_flooding;
static struct connection all = {.next = &all, .previous = &all};
static uint64_t arrivals_ms[ARRIVALS_MAX];
static size_t arrivals;

static void fail(const char *what) {
    fprintf(stderr, "scale_edge: %s\n", what);
    exit(1);
}

static void watch(int operation, int fd, uint32_t events, void *subject) {
    struct epoll_event event = {.events = events, .data.ptr = subject};
    if (epoll_ctl(epoll_fd, operation, fd, &event) != 0)
        fail("epoll_ctl");
}

/* ---- output ---- */

static void add(struct connection *connection, const void *bytes, size_t length) {
    connection->output = realloc(connection->output, connection->output_bytes + length);
    if (connection->output == NULL)
        fail("out of memory");
    memcpy(connection->output + connection->output_bytes, bytes, length);
    connection->output_bytes += length;
}

static void add_frame(struct connection *connection, int opcode, const char *payload, size_t length) {
    char header[SERVER_HEADER_BYTES_MAX];
    add(connection, header, put_header(header, opcode, length));
    add(connection, payload, length);
}

static void add_text(struct connection *connection, const char *text) {
    add_frame(connection, OPCODE_TEXT, text, strlen(text));
}

static void add_event(struct connection *connection, const char *event, const char *data) {
    char text[NAME_BYTES_MAX + LINE_BYTES_MAX + 64];
    snprintf(text, sizeof text, "{\"event\":\"%s\",\"channel\":\"%s\",\"data\":\"%s\"}", event, connection->name, data);
    add_text(connection, text);
}

static bool is_flooded(const struct connection *connection) {
    return is_flooding && strcmp(connection->name, "loud") == 0;
}

/* False: the connection ends. */
static bool flush(struct connection *connection) {
    for (;;) {
        if (connection->output_bytes == 0 && is_flooded(connection))
            for (int i = 0; i < FLOOD_FRAMES; i++)
                add_event(connection, "tick", "a flood that never ends");
        if (connection->output_bytes == 0 && !stream_is_pending(connection->stream))
            break;
        ssize_t sent = stream_send(connection->stream, connection->output, connection->output_bytes);
        if (sent < 0 && errno == EAGAIN)
            break;
        if (sent < 0)
            return false;
        connection->output_bytes -= (size_t)sent;
        memmove(connection->output, connection->output + sent, connection->output_bytes);
        if (is_flooded(connection))
            break; /* the others have their turn */
    }
    bool wants_output = connection->output_bytes > 0 || stream_is_pending(connection->stream) || is_flooded(connection);
    if (wants_output != connection->wants_output) {
        connection->wants_output = wants_output;
        watch(EPOLL_CTL_MOD, connection->fd, EPOLLIN | (wants_output ? EPOLLOUT : 0u), connection);
    }
    if (!wants_output) {
        free(connection->output);
        connection->output = NULL;
    }
    return true;
}

/* ---- input ---- */

static void take_text(struct connection *connection, const char *text) {
    if (strstr(text, "\"event\":\"bird:ping\"") != NULL)
        add_text(connection, "{\"event\":\"bird:pong\",\"data\":\"{}\"}");
    size_t length;
    const char *name = channel_in(text, &length);
    if (strstr(text, "\"event\":\"bird:subscribe\"") == NULL || name == NULL || length >= NAME_BYTES_MAX)
        return;
    memcpy(connection->name, name, length);
    connection->name[length] = '\0';
    add_event(connection, "bird_internal:subscription_succeeded", "{}");
}

static void drop_input(struct connection *connection, size_t length) {
    connection->input_bytes -= length;
    memmove(connection->input, connection->input + length, connection->input_bytes);
}

/* False: the connection ends. */
static bool take_upgrade(struct connection *connection) {
    static uint64_t connections;
    char answer[UPGRADE_ANSWER_BYTES_MAX], handshake[256];
    connection->input[connection->input_bytes] = '\0';
    ssize_t length = answer_upgrade(connection->input, answer);
    if (length <= 0)
        return length == 0;
    drop_input(connection, (size_t)length);
    connection->is_upgraded = true;
    add(connection, answer, strlen(answer));
    snprintf(handshake, sizeof handshake,
             "{\"event\":\"bird:connection_established\",\"data\":\"{\\\"connection_id\\\":\\\"%d.%llu\\\","
             "\\\"activity_timeout\\\":%d}\"}",
             (int)getpid(), (unsigned long long)++connections, activity_timeout_s);
    add_text(connection, handshake);
    return true;
}

/* False: the connection ends. */
static bool take_frames(struct connection *connection) {
    struct client_frame frame;
    int found;
    while ((found = next_client_frame(connection->input, connection->input_bytes, &frame)) == 1) {
        char payload[INPUT_BYTES_MAX];
        memcpy(payload, frame.payload, frame.payload_bytes);
        payload[frame.payload_bytes] = '\0';
        drop_input(connection, frame.total_bytes);
        if (frame.opcode == OPCODE_CLOSE)
            return false;
        if (frame.opcode == OPCODE_PING)
            add_frame(connection, OPCODE_PONG, payload, frame.payload_bytes);
        if (frame.opcode == OPCODE_TEXT)
            take_text(connection, payload);
    }
    return found == 0;
}

/* All there is: what TLS has read ahead, epoll does not tell. False: the connection ends. */
static bool take_input(struct connection *connection) {
    for (;;) {
        ssize_t got = stream_receive(connection->stream, connection->input + connection->input_bytes,
                                     INPUT_BYTES_MAX - 1 - connection->input_bytes);
        if (got <= 0)
            return got < 0 && errno == EAGAIN;
        connection->input_bytes += (size_t)got;
        if (!((connection->is_upgraded || take_upgrade(connection)) &&
              (!connection->is_upgraded || take_frames(connection)) && connection->input_bytes < INPUT_BYTES_MAX - 1))
            return false;
    }
}

/* ---- loop ---- */

static void accept_all(void) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (arrivals < ARRIVALS_MAX)
            arrivals_ms[arrivals++] = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
        struct connection *connection = calloc(1, sizeof *connection);
        if (connection == NULL)
            fail("out of memory");
        connection->fd = fd;
        connection->stream = stream_accept(fd);
        if (connection->stream == NULL)
            fail("out of memory");
        connection->next = &all;
        connection->previous = all.previous;
        all.previous->next = connection;
        all.previous = connection;
        watch(EPOLL_CTL_ADD, fd, EPOLLIN, connection);
    }
    if (errno != EAGAIN && errno != ECONNABORTED)
        fail("accept4");
}

static void end(struct connection *connection) {
    connection->previous->next = connection->next;
    connection->next->previous = connection->previous;
    stream_close(connection->stream);
    free(connection->output);
    free(connection);
}

static void carry_out(const char *line) {
    if (strcmp(line, "arrivals") == 0) {
        for (size_t i = 0; i < arrivals; i++)
            printf("%llu ", (unsigned long long)arrivals_ms[i]);
        puts("");
        fflush(stdout);
        arrivals = 0;
        return;
    }
    if (strcmp(line, "flood") == 0)
        is_flooding = true;
    else if (strcmp(line, "calm") == 0)
        is_flooding = false;
    for (struct connection *one = all.next, *next; one != &all; one = next) {
        next = one->next;
        if (strncmp(line, "event ", 6) == 0 && one->name[0] != '\0')
            add_event(one, "news", line + 6);
        if (!flush(one))
            end(one);
    }
}

static void take_commands(void) {
    static char lines[LINE_BYTES_MAX];
    static size_t length;
    ssize_t got = read(STDIN_FILENO, lines + length, sizeof lines - length);
    if (got <= 0)
        exit(0);
    length += (size_t)got;
    for (char *end; (end = memchr(lines, '\n', length)) != NULL;) {
        *end = '\0';
        carry_out(lines);
        length -= (size_t)(end + 1 - lines);
        memmove(lines, end + 1, length);
    }
    if (length == sizeof lines)
        fail("a command is too long");
}

int main(int argc, char **argv) {
    if (argc != 3)
        fail("usage: scale_edge PORT ACTIVITY_TIMEOUT_S");
    activity_timeout_s = atoi(argv[2]);
    const char *problem = stream_prepare();
    if (problem != NULL)
        fail(problem);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    /* Next to the socket with which the scale program holds the port, and to connections that have not ended yet. */
    const int yes = 1;
    if (epoll_fd < 0 || listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0 ||
        bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, SOMAXCONN) != 0)
        fail("cannot listen");
    watch(EPOLL_CTL_ADD, listener, EPOLLIN, &listener);
    watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, NULL);
    puts("ready");
    fflush(stdout);

    for (;;) {
        struct epoll_event ready[READY_MAX];
        int count = epoll_wait(epoll_fd, ready, READY_MAX, -1);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        bool has_commands = false; /* last, since they may end connections that are in this round */
        for (int i = 0; i < count; i++) {
            struct connection *connection = ready[i].data.ptr;
            if (ready[i].data.ptr == &listener)
                accept_all();
            else if (connection == NULL)
                has_commands = true;
            else if (((ready[i].events & ~(uint32_t)EPOLLOUT) != 0 && !take_input(connection)) || !flush(connection))
                end(connection);
        }
        if (has_commands)
            take_commands();
    }
}
