/* The limit of a WebSocket client: finds each frame's header and looks at nothing else. */
#include "limit_connection.h"

struct walker {
    uint64_t events;
    uint64_t payload_left; /* of the frame that the last bytes belong to */
    size_t header_kept;    /* bytes of an unfinished header at the start of the buffer */
};

static unsigned char buffer[RECEIVE_BUFFER_BYTES];

static void walk(struct walker *walker, size_t length) {
    size_t at = 0;
    for (;;) {
        if (walker->payload_left > length - at) {
            walker->payload_left -= length - at;
            walker->header_kept = 0;
            return;
        }
        at += walker->payload_left;
        walker->payload_left = 0;
        struct frame_header header = parse_header(buffer + at, length - at);
        if (header.header_bytes == 0) {
            walker->header_kept = length - at;
            memmove(buffer, buffer + at, walker->header_kept);
            return;
        }
        at += header.header_bytes;
        walker->payload_left = header.payload_bytes;
        walker->events++;
    }
}

static void walk_until(struct walker *walker, int fd, uint64_t events) {
    while (walker->events < events) {
        size_t kept = walker->header_kept;
        walk(walker, kept + receive(fd, buffer + kept, sizeof buffer - kept));
    }
}

int main(int argc, char **argv) {
    struct arguments arguments = parse_arguments(argc, argv);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    struct walker walker = {0};
    int fd = connect_and_subscribe(arguments.port);

    walk_until(&walker, fd, arguments.warmup);
    uint64_t first = walker.events;
    measurement_begin(&measurement);
    walk_until(&walker, fd, first + arguments.events);
    measurement_end(&measurement);
    measurement_print(&measurement, walker.events - first);
    close(fd);
}
