/* The limit of a client with an event loop: waits in epoll, receives, finds each frame and reads the stamp in its data. */
#include <stdbool.h>
#include <sys/epoll.h>

#include "limit_connection.h"

static const char before_stamp[] = "\"data\":\"\\\"";
static unsigned char buffer[RECEIVE_BUFFER_BYTES];

struct client {
    struct arguments arguments;
    struct measurement measurement;
    uint64_t received;
    size_t stamp_at; /* in a payload, the same in all; 0: unknown */
};

/* True with the last one. */
static bool take_event(struct client *client, const unsigned char *payload, size_t length) {
    if (client->stamp_at == 0) {
        const unsigned char *found = memmem(payload, length, before_stamp, sizeof before_stamp - 1);
        if (found == NULL)
            fail("an event without a stamp was received");
        client->stamp_at = (size_t)(found - payload) + sizeof before_stamp - 1;
    }
    client->received++;
    if (client->received > client->arguments.warmup)
        measurement_arrived(&client->measurement, (const char *)payload + client->stamp_at);
    if (client->received == client->arguments.warmup)
        measurement_begin(&client->measurement);
    return client->received == client->arguments.warmup + client->arguments.events;
}

/* Takes the whole frames of `*length` bytes and leaves the rest at the start of the buffer. True with the last event. */
static bool take_frames(struct client *client, size_t *length) {
    size_t at = 0;
    bool is_done = false;
    while (!is_done) {
        struct frame_header header = parse_header(buffer + at, *length - at);
        if (header.header_bytes == 0 || header.payload_bytes > *length - at - header.header_bytes)
            break;
        is_done = take_event(client, buffer + at + header.header_bytes, header.payload_bytes);
        at += header.header_bytes + header.payload_bytes;
    }
    *length -= at;
    memmove(buffer, buffer + at, *length);
    return is_done;
}

int main(int argc, char **argv) {
    struct client client = {.arguments = parse_arguments(argc, argv)};
    measurement_prepare(&client.measurement);
    int fd = connect_and_subscribe(client.arguments.port);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        fail("epoll refuses the socket");

    size_t length = 0;
    do {
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue;
        length += receive(fd, buffer + length, sizeof buffer - length);
    } while (!take_frames(&client, &length));
    measurement_end(&client.measurement);
    measurement_print(&client.measurement, client.arguments.events);
    close(fd);
}
