/* The connection of the two limits: upgrade and subscribe, then only bytes. */
#ifndef LIMIT_CONNECTION_H
#define LIMIT_CONNECTION_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "measure.h"

enum { RECEIVE_BUFFER_BYTES = 256 * 1024 };

#define UPGRADE_REQUEST                                                                                                \
    "GET /app/bench?protocol=7 HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"           \
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
/* 53 bytes of text. A masking key of zero leaves it as it is. */
#define SUBSCRIBE_FRAME "\x81\xB5\0\0\0\0{\"event\":\"bird:subscribe\",\"data\":{\"channel\":\"bench\"}}"

/* The header of a frame, header_bytes being 0 while it is not there whole. */
struct frame_header {
    size_t header_bytes;
    uint64_t payload_bytes;
};

static inline struct frame_header parse_header(const unsigned char *at, size_t available) {
    struct frame_header header = {0, 0};
    if (available < 2)
        return header;
    unsigned short_length = at[1] & 0x7Fu;
    size_t extended_bytes = short_length == 127 ? 8 : short_length == 126 ? 2 : 0;
    if (available < 2 + extended_bytes)
        return header;
    header.header_bytes = 2 + extended_bytes;
    header.payload_bytes = extended_bytes == 0 ? short_length : 0;
    for (size_t i = 0; i < extended_bytes; i++)
        header.payload_bytes = header.payload_bytes << 8 | at[2 + i];
    return header;
}

static inline size_t receive(int fd, unsigned char *buffer, size_t size) {
    ssize_t got;
    do
        got = recv(fd, buffer, size, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        fail("the server closed the connection");
    return (size_t)got;
}

static inline void send_all(int fd, const void *data, size_t length) {
    if (send(fd, data, length, MSG_NOSIGNAL) != (ssize_t)length)
        fail("the connection broke while sending");
}

static inline int open_socket(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect to the server");
    return fd;
}

/* A socket on which the upgrade is sent. */
static inline int connect_to(int port) {
    int fd = open_socket(port);
    send_all(fd, UPGRADE_REQUEST, sizeof UPGRADE_REQUEST - 1);
    return fd;
}

static inline void send_subscribe(int fd) {
    send_all(fd, SUBSCRIBE_FRAME, sizeof SUBSCRIBE_FRAME - 1);
}

/* A socket on which nothing but events follows: reads exactly through the answer to the subscribe. */
static inline int connect_and_subscribe(int port) {
    int fd = connect_to(port);
    char response[1024];
    size_t length = 0;
    do {
        if (length + 1 == sizeof response)
            fail("the answer to the upgrade is too long");
        length += receive(fd, (unsigned char *)response + length, 1);
        response[length] = '\0';
    } while (strstr(response, "\r\n\r\n") == NULL);
    if (strncmp(response, "HTTP/1.1 101 ", 13) != 0)
        fail("the server refused the upgrade");

    send_subscribe(fd);
    for (int answers = 0; answers < 2; answers++) { /* the handshake, the answer to the subscribe */
        unsigned char answer[1024];
        size_t have = 0;
        struct frame_header header;
        do {
            have += receive(fd, answer + have, 1);
            header = parse_header(answer, have);
        } while (header.header_bytes == 0);
        if (header.payload_bytes > sizeof answer)
            fail("an answer of the server is too long");
        for (size_t got = 0; got < header.payload_bytes;)
            got += receive(fd, answer, header.payload_bytes - got);
    }
    return fd;
}

#endif
