/*
 * A server for one client at a time that is never the bottleneck: it answers the handshake, pings and subscribes, counts
 * client events, and answers the client event "client-last" with "counted", whose data is how many there were. Prints its
 * port. Ends with SIGTERM.
 *
 * usage: many_server [CHANNELS BYTES ACTIVE]
 *   After CHANNELS subscribes it floods ACTIVE of the channels, "many-000000" and so on, with "tick" in a random order. The
 *   data are strings of BYTES bytes with their quotes. Without, it floods nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "many_channels.h"
#include "server_side.h"

/* As many for one channel as for all: what the kernel copies must not depend on them. */
enum { FLOOD_FRAMES = 1 << 17, INPUT_BYTES_MAX = 256 * 1024, TEXT_BYTES_MAX = 4096, DATA_BYTES_MAX = 65536 };

struct text {
    char *bytes;
    size_t length, capacity;
};

struct session {
    int fd;
    uint64_t subscribed, client_events;
    struct text output;
    size_t input_length;
    char input[INPUT_BYTES_MAX];
};

static void fail(const char *what) {
    fprintf(stderr, "many_server: %s\n", what);
    exit(1);
}

static void add(struct text *text, const void *bytes, size_t length) {
    if (text->capacity - text->length < length) {
        text->capacity = 2 * (text->capacity + length);
        text->bytes = realloc(text->bytes, text->capacity);
        if (text->bytes == NULL)
            fail("out of memory");
    }
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
}

static void add_frame(struct text *text, int opcode, const char *payload, size_t length) {
    char header[SERVER_HEADER_BYTES_MAX];
    add(text, header, put_header(header, opcode, length));
    add(text, payload, length);
}

static struct text make_flood(size_t channels, size_t data_bytes) {
    static char data[DATA_BYTES_MAX + 1], payload[DATA_BYTES_MAX + 256];
    struct text flood = {0};
    memset(data, 'x', data_bytes - 2);
    uint64_t random = 88172645463325252; /* xorshift64 (Marsaglia 2003) */
    for (int i = 0; i < FLOOD_FRAMES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        char name[MANY_NAME_BYTES];
        int length =
            snprintf(payload, sizeof payload, "{\"event\":\"tick\",\"channel\":\"%s\",\"data\":\"\\\"%s\\\"\"}",
                     many_name(name, random % channels), data);
        add_frame(&flood, OPCODE_TEXT, payload, (size_t)length);
    }
    return flood;
}

static bool send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0)
            return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* False: the session ends. */
static bool take_text(struct session *session, const char *text) {
    char answer[TEXT_BYTES_MAX];
    size_t name_length;
    const char *name = channel_in(text, &name_length);
    int length = 0;
    if (strstr(text, "\"event\":\"bird:ping\"") != NULL) {
        length = snprintf(answer, sizeof answer, "{\"event\":\"bird:pong\",\"data\":\"{}\"}");
    } else if (name == NULL) {
        return false;
    } else if (strstr(text, "\"event\":\"bird:subscribe\"") != NULL) {
        session->subscribed++;
        length = snprintf(answer, sizeof answer,
                          "{\"event\":\"bird_internal:subscription_succeeded\",\"channel\":\"%.*s\",\"data\":\"{}\"}",
                          (int)name_length, name);
    } else if (strstr(text, "\"event\":\"client-last\"") != NULL) {
        length = snprintf(answer, sizeof answer, "{\"event\":\"counted\",\"channel\":\"%.*s\",\"data\":\"%llu\"}",
                          (int)name_length, name, (unsigned long long)session->client_events);
    } else {
        session->client_events++;
    }
    if (length > 0)
        add_frame(&session->output, OPCODE_TEXT, answer, (size_t)length);
    return (size_t)length < sizeof answer;
}

/* Bytes of the input that were consumed, -1: the session ends. */
static ssize_t take_frames(struct session *session) {
    size_t at = 0;
    struct client_frame frame;
    int found;
    while ((found = next_client_frame(session->input + at, session->input_length - at, &frame)) == 1) {
        at += frame.total_bytes;
        if (frame.opcode == OPCODE_CLOSE)
            return -1;
        if (frame.opcode == OPCODE_PING)
            add_frame(&session->output, OPCODE_PONG, frame.payload, frame.payload_bytes);
        if (frame.opcode != OPCODE_TEXT)
            continue;
        char payload[TEXT_BYTES_MAX];
        if (frame.payload_bytes >= sizeof payload)
            return -1;
        memcpy(payload, frame.payload, frame.payload_bytes);
        payload[frame.payload_bytes] = '\0';
        if (!take_text(session, payload))
            return -1;
    }
    return found == 0 ? (ssize_t)at : -1;
}

static ssize_t take_upgrade(struct session *session) {
    static const char handshake[] = "{\"event\":\"bird:connection_established\",\"data\":\"{\\\"connection_id\\\":"
                                    "\\\"1.1\\\",\\\"activity_timeout\\\":120}\"}";
    char answer[UPGRADE_ANSWER_BYTES_MAX];
    session->input[session->input_length] = '\0';
    ssize_t length = answer_upgrade(session->input, answer);
    if (length > 0) {
        add(&session->output, answer, strlen(answer));
        add_frame(&session->output, OPCODE_TEXT, handshake, sizeof handshake - 1);
    }
    return length;
}

static void serve(struct session *session, size_t channels, const struct text *flood) {
    bool is_upgraded = false;
    for (;;) {
        ssize_t got = recv(session->fd, session->input + session->input_length,
                           sizeof session->input - 1 - session->input_length, 0);
        if (got <= 0)
            return;
        session->input_length += (size_t)got;
        ssize_t used = is_upgraded ? take_frames(session) : take_upgrade(session);
        if (used < 0)
            return;
        is_upgraded = is_upgraded || used > 0;
        session->input_length -= (size_t)used;
        memmove(session->input, session->input + used, session->input_length);
        if (!send_all(session->fd, session->output.bytes, session->output.length))
            return;
        session->output.length = 0;
        if (channels > 0 && session->subscribed == channels)
            while (send_all(session->fd, flood->bytes, flood->length)) {
            }
    }
}

static size_t parse(const char *text, size_t least, size_t most) {
    char *end;
    size_t value = strtoull(text, &end, 10);
    if (*end != '\0' || value < least || value > most)
        fail("usage: many_server [CHANNELS BYTES ACTIVE], 1 to 1000000 channels, 2 to 65536 bytes");
    return value;
}

int main(int argc, char **argv) {
    if (argc != 1 && argc != 4)
        fail("usage: many_server [CHANNELS BYTES ACTIVE]");
    size_t channels = 0;
    struct text flood = {0};
    if (argc == 4) {
        channels = parse(argv[1], 1, MANY_MAX);
        flood = make_flood(parse(argv[3], 1, channels), parse(argv[2], 2, DATA_BYTES_MAX));
    }

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, SOMAXCONN) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        fail("cannot listen on 127.0.0.1");
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);

    static struct session session;
    for (;;) {
        session.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        const int yes = 1;
        if (session.fd < 0 || setsockopt(session.fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) != 0)
            fail("a connection could not be accepted");
        session.subscribed = session.client_events = 0;
        session.input_length = session.output.length = 0;
        serve(&session, channels, &flood);
        close(session.fd);
    }
}
