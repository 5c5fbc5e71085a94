/*
 * A server that is never the bottleneck: it accepts WebSocket upgrades on 127.0.0.1, answers the handshake and the subscribes, and after
 * a connection's first subscribe floods its channel "bench" with encoded events from one large block. The app "pusher" is served in the
 * Pusher protocol. Prints its port. Ends with SIGTERM.
 *
 * usage: flood_server [--bytes N] [--events N] [--dense] [--close] [--rate N] [--idle]
 *   --bytes N   bytes of each event's data as a handler sees it (256)
 *   --events N  then nothing more follows (0: without end)
 *   --dense     data is an array of short strings, so that every few bytes are escaped, in place of one long string
 *   --close     closes the connection with 1000 after the last event
 *   --rate N    N events a second, each at its time, in place of a flood, to the connection that subscribed last. The data's first 20
 *               characters are the nanoseconds of CLOCK_MONOTONIC when the event was written. The server's core is busy all the while.
 *               When the connection ends, a line says how many events it was sent and how many were late by more than an interval or,
 *               since the client was too slow, left out.
 *   --idle      no events
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

#include "flood_block.h"
#include "server_side.h"
#include "stream.h"

enum {
    DATA_BYTES_MIN = 16,
    DATA_BYTES_MAX = 8 * 1024 * 1024,
    INPUT_BYTES_MAX = 8 * 1024,
    REPLY_BYTES_MAX = 8 * 1024,
    READY_MAX = 64,
    STAMP_DIGITS = 20,
    PACED_BYTES_MIN = STAMP_DIGITS + 2,
    PACED_BYTES_MAX = 4096, /* several frames fit into a reply */
    RATE_MAX = 1000000,
};

struct connection {
    int fd;
    struct stream *stream;
    bool upgraded;
    bool is_pusher;
    bool flooding;
    bool closing; /* the close frame is queued; what the client still sends is discarded until it closes */
    bool ended;   /* the close frame is written */
    bool is_wanting_output;
    uint64_t bytes_left; /* of the flood; UINT64_MAX: without end */
    size_t block_at;
    size_t input_length;
    size_t reply_length;
    char input[INPUT_BYTES_MAX];
    char reply[REPLY_BYTES_MAX]; /* goes out between two frames of the flood */
};

struct server {
    int epoll;
    struct block block;
    uint64_t events;
    bool closes;
    bool is_idle;
    uint64_t interval_ns; /* 0: floods */
    struct connection *paced;
    uint64_t next_ns; /* when its next event is due */
    uint64_t sent;
    uint64_t late;
};

static void fail(const char *what) {
    fprintf(stderr, "flood_server: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- input ---- */

static bool add_reply(struct connection *connection, const void *bytes, size_t length) {
    if (length > sizeof connection->reply - connection->reply_length)
        return false;
    memcpy(connection->reply + connection->reply_length, bytes, length);
    connection->reply_length += length;
    return true;
}

static bool add_frame(struct connection *connection, int opcode, const char *payload, size_t length) {
    char header[SERVER_HEADER_BYTES_MAX];
    return add_reply(connection, header, put_header(header, opcode, length)) && add_reply(connection, payload, length);
}

static bool add_text(struct connection *connection, const char *text) {
    return add_frame(connection, OPCODE_TEXT, text, strlen(text));
}

static void drop_input(struct connection *connection, size_t length) {
    connection->input_length -= length;
    memmove(connection->input, connection->input + length, connection->input_length);
}

/* Consumes the request once it is whole. False: not a WebSocket upgrade. */
static bool read_upgrade(struct connection *connection) {
    char answer[UPGRADE_ANSWER_BYTES_MAX];
    connection->input[connection->input_length] = '\0';
    ssize_t length = answer_upgrade(connection->input, answer);
    if (length <= 0)
        return length == 0;
    static const char pusher_app[] = "GET /app/pusher?";
    connection->is_pusher = strncmp(connection->input, pusher_app, sizeof pusher_app - 1) == 0;
    drop_input(connection, (size_t)length);
    connection->upgraded = true;
    char handshake[128];
    snprintf(handshake, sizeof handshake,
             "{\"event\":\"%s:connection_established\",\"data\":\"{\\\"%s_id\\\":\\\"1.1\\\",\\\"activity_timeout\\\":"
             "120}\"}",
             connection->is_pusher ? "pusher" : "bird", connection->is_pusher ? "socket" : "connection");
    return add_reply(connection, answer, strlen(answer)) && add_text(connection, handshake);
}

/* The subscribes of a benchmark name a channel without escapes. */
static bool handle_text(struct connection *connection, struct server *server, const char *text) {
    if (strstr(text, "\"bird:ping\"") != NULL)
        return add_text(connection, "{\"event\":\"bird:pong\"}");
    if (strstr(text, connection->is_pusher ? "\"pusher:subscribe\"" : "\"bird:subscribe\"") == NULL)
        return true;
    size_t name_length;
    const char *name = channel_in(text, &name_length);
    if (name == NULL)
        return false;
    char answer[512];
    int length = snprintf(answer, sizeof answer,
                          "{\"event\":\"%s_internal:subscription_succeeded\",\"channel\":\"%.*s\",\"data\":\"{}\"}",
                          connection->is_pusher ? "pusher" : "bird", (int)name_length, name);
    if ((size_t)length >= sizeof answer)
        return false;
    if (server->interval_ns > 0) {
        server->paced = connection;
        server->next_ns = now_ns() + server->interval_ns;
        server->sent = server->late = 0;
    } else if (!server->is_idle && !connection->flooding) {
        connection->flooding = true;
        connection->bytes_left = server->events == 0 ? UINT64_MAX : server->events * server->block.frame_bytes;
    }
    return add_text(connection, answer);
}

/* Consumes one client frame. 1: done; 0: more input is needed; -1: the connection ends. */
static int read_frame(struct connection *connection, struct server *server) {
    struct client_frame frame;
    int found = next_client_frame(connection->input, connection->input_length, &frame);
    if (found != 1)
        return found;
    char payload[INPUT_BYTES_MAX];
    memcpy(payload, frame.payload, frame.payload_bytes);
    payload[frame.payload_bytes] = '\0';
    drop_input(connection, frame.total_bytes);

    bool good = true;
    if (frame.opcode == OPCODE_TEXT)
        good = handle_text(connection, server, payload);
    else if (frame.opcode == OPCODE_PING)
        good = add_frame(connection, OPCODE_PONG, payload, frame.payload_bytes);
    else if (frame.opcode == OPCODE_CLOSE) {
        good = add_frame(connection, OPCODE_CLOSE, payload, frame.payload_bytes < 2 ? 0 : 2);
        connection->closing = true;
    }
    return good ? 1 : -1;
}

/* False: the connection ends. */
static bool read_input(struct connection *connection, struct server *server) {
    for (;;) { /* poll does not see what TLS holds */
        ssize_t got = stream_receive(connection->stream, connection->input + connection->input_length,
                                     INPUT_BYTES_MAX - 1 - connection->input_length);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR;
        if (got == 0)
            return false;
        if (connection->closing)
            continue;
        connection->input_length += (size_t)got;
        if (!connection->upgraded && !read_upgrade(connection))
            return false;
        int step = 1;
        while (connection->upgraded && !connection->closing && step == 1)
            step = read_frame(connection, server);
        if (step < 0 || connection->input_length == INPUT_BYTES_MAX - 1)
            return false;
    }
}

/* ---- output ---- */

/* Bytes written, 0 when the socket is full, -1 when the connection ends. */
static ssize_t write_some(struct connection *connection, const char *bytes, size_t length) {
    ssize_t sent = stream_send(connection->stream, bytes, length);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    return sent;
}

/* Writes what is due until the socket is full. False: the connection ends. */
static bool write_output(struct connection *connection, struct server *server) {
    const struct block *block = &server->block;
    for (;;) {
        if (stream_is_pending(connection->stream)) {
            ssize_t sent = write_some(connection, "", 0);
            if (sent < 0 || stream_is_pending(connection->stream))
                return sent == 0;
        }
        size_t frame_at = connection->block_at % block->frame_bytes;
        if (frame_at == 0 && connection->reply_length > 0) {
            ssize_t sent = write_some(connection, connection->reply, connection->reply_length);
            if (sent <= 0)
                return sent == 0;
            connection->reply_length -= (size_t)sent;
            memmove(connection->reply, connection->reply + sent, connection->reply_length);
            continue;
        }
        if (frame_at == 0 && connection->closing) {
            if (!connection->ended)
                stream_finish(connection->stream);
            connection->ended = true;
            return true;
        }
        if (!connection->flooding || connection->bytes_left == 0)
            return true;

        size_t length = block->total_bytes - connection->block_at;
        if (connection->reply_length > 0 || connection->closing)
            length = block->frame_bytes - frame_at;
        if (length > connection->bytes_left)
            length = (size_t)connection->bytes_left;
        ssize_t sent = write_some(connection, block->bytes + connection->block_at, length);
        if (sent <= 0)
            return sent == 0;
        connection->block_at = (connection->block_at + (size_t)sent) % block->total_bytes;
        if (connection->bytes_left != UINT64_MAX)
            connection->bytes_left -= (size_t)sent;
        if (connection->bytes_left == 0 && server->closes) {
            connection->closing = true;
            if (!add_frame(connection, OPCODE_CLOSE, "\x03\xE8", 2))
                return false;
        }
    }
}

/* ---- loop ---- */

/* Thousands of idle clients need as many files. */
static void allow_files(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

static bool is_output_due(const struct connection *connection) {
    return !connection->ended && (connection->reply_length > 0 || stream_is_pending(connection->stream) ||
                                  (connection->flooding && connection->bytes_left > 0));
}

static void accept_connections(struct server *server, int listener) {
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        /* What is written after an answer must not wait until the client has acknowledged that. */
        const int yes = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct connection *connection = calloc(1, sizeof *connection);
        if (connection == NULL || (connection->stream = stream_accept(fd)) == NULL)
            fail("out of memory");
        connection->fd = fd;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        if (epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
            fail("epoll_ctl");
    }
}

static void end_connection(struct connection *connection, struct server *server) {
    if (connection == server->paced) {
        printf("%llu %llu\n", (unsigned long long)server->sent, (unsigned long long)server->late);
        fflush(stdout);
        server->paced = NULL;
    }
    stream_close(connection->stream);
    free(connection);
}

static void serve(struct connection *connection, struct server *server, uint32_t ready) {
    bool stays = (ready & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0 || read_input(connection, server);
    if (!stays || !write_output(connection, server)) {
        end_connection(connection, server);
        return;
    }
    if (is_output_due(connection) != connection->is_wanting_output) {
        connection->is_wanting_output = !connection->is_wanting_output;
        struct epoll_event event = {.events = EPOLLIN | (connection->is_wanting_output ? EPOLLOUT : 0u),
                                    .data.ptr = connection};
        if (epoll_ctl(server->epoll, EPOLL_CTL_MOD, connection->fd, &event) != 0)
            fail("epoll_ctl");
    }
}

/* Sends the paced connection the event that is due, if one is. */
static void pace(struct server *server) {
    uint64_t now = now_ns();
    if (now < server->next_ns)
        return;
    char frame[PACED_BYTES_MAX + 256];
    char stamp[STAMP_DIGITS + 1];
    memcpy(frame, server->block.bytes, server->block.frame_bytes);
    snprintf(stamp, sizeof stamp, "%0*llu", STAMP_DIGITS, (unsigned long long)now);
    memcpy(frame + server->block.data_at, stamp, STAMP_DIGITS);
    bool is_taken = add_reply(server->paced, frame, server->block.frame_bytes);
    server->sent += is_taken;
    server->late += !is_taken || now - server->next_ns > server->interval_ns;
    server->next_ns += server->interval_ns;
    serve(server->paced, server, 0);
}

static int listen_on_loopback(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        fail("cannot listen on 127.0.0.1");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
        fprintf(stderr, "flood_server: --%s takes a number from %llu to %llu\n", option, (unsigned long long)least,
                (unsigned long long)most);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"bytes", required_argument, NULL, 'b'},
                                            {"events", required_argument, NULL, 'e'},
                                            {"dense", no_argument, NULL, 'd'},
                                            {"close", no_argument, NULL, 'c'},
                                            {"rate", required_argument, NULL, 'r'},
                                            {"idle", no_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    size_t data_bytes = 256;
    bool is_dense = false;
    struct server server = {0};
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'b':
            data_bytes = parse_number("bytes", optarg, DATA_BYTES_MIN, DATA_BYTES_MAX);
            break;
        case 'e':
            server.events = parse_number("events", optarg, 0, UINT32_MAX);
            break;
        case 'd':
            is_dense = true;
            break;
        case 'c':
            server.closes = true;
            break;
        case 'r':
            server.interval_ns = 1000000000 / parse_number("rate", optarg, 1, RATE_MAX);
            break;
        case 'i':
            server.is_idle = true;
            break;
        default:
            fputs("usage: flood_server [--bytes N] [--events N] [--dense] [--close] [--rate N] [--idle]\n", stderr);
            return 2;
        }
    }
    if (server.interval_ns > 0 && (data_bytes < PACED_BYTES_MIN || data_bytes > PACED_BYTES_MAX || is_dense))
        fail("--rate needs --bytes from 22 to 4096, without --dense");
    allow_files();
    const char *wrong = stream_prepare();
    if (wrong != NULL)
        fail(wrong);
    server.block = make_block(data_bytes, is_dense);
    if (server.block.bytes == NULL)
        fail("out of memory");
    server.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (server.epoll < 0)
        fail("epoll_create1");
    int listener = listen_on_loopback();
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(server.epoll, EPOLL_CTL_ADD, listener, &event) != 0)
        fail("epoll_ctl");

    for (;;) {
        struct epoll_event ready[READY_MAX];
        int count = epoll_wait(server.epoll, ready, READY_MAX, server.paced != NULL ? 0 : -1);
        if (count < 0 && errno != EINTR)
            fail("epoll_wait");
        for (int i = 0; i < count; i++) {
            if (ready[i].data.ptr == NULL)
                accept_connections(&server, listener);
            else
                serve(ready[i].data.ptr, &server, ready[i].events);
        }
        if (server.paced != NULL)
            pace(&server);
    }
}
