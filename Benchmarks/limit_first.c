/* The same steps as client_first by hand: connect, upgrade, handshake, subscribe, its answer, the first event. */
#include "first.h"
#include "limit_connection.h"

struct input {
    int fd;
    size_t length;
    unsigned char bytes[8192];
};

static void receive_more(struct input *input) {
    if (input->length == sizeof input->bytes)
        fail("the server sends too much");
    input->length += receive(input->fd, input->bytes + input->length, sizeof input->bytes - input->length);
}

static void consume(struct input *input, size_t length) {
    input->length -= length;
    memmove(input->bytes, input->bytes + length, input->length);
}

static void receive_answer(struct input *input) {
    static const char end[] = "\r\n\r\n";
    const unsigned char *found;
    while ((found = memmem(input->bytes, input->length, end, sizeof end - 1)) == NULL)
        receive_more(input);
    if (memcmp(input->bytes, "HTTP/1.1 101 ", 13) != 0)
        fail("the server refused the upgrade");
    consume(input, (size_t)(found - input->bytes) + sizeof end - 1);
}

static void receive_message(struct input *input, const char *event) {
    for (;;) {
        struct frame_header header = parse_header(input->bytes, input->length);
        size_t total = header.header_bytes + header.payload_bytes;
        if (header.header_bytes > 0 && input->length >= total) {
            if (memmem(input->bytes, total, event, strlen(event)) == NULL)
                fail("the server sent another message than the one that was due");
            consume(input, total);
            return;
        }
        receive_more(input);
    }
}

static double receive_first(int port) {
    double start = clock_seconds();
    struct input input = {.fd = connect_to(port)};
    receive_answer(&input);
    receive_message(&input, "connection_established");
    send_subscribe(input.fd);
    receive_message(&input, "subscription_succeeded");
    receive_message(&input, "tick");
    return clock_seconds() - start;
}

int main(int argc, char **argv) {
    print_firsts(parse_first(argc, argv), receive_first);
}
