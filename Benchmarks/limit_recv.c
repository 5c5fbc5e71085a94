/* The upper limit of any client: reads the events' bytes and does nothing with them. */
#include "limit_connection.h"

static unsigned char buffer[RECEIVE_BUFFER_BYTES];

int main(int argc, char **argv) {
    struct arguments arguments = parse_arguments(argc, argv);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    int fd = connect_and_subscribe(arguments.port);

    /* All events are of one size, which the first one tells. */
    if (recv(fd, buffer, 10, MSG_PEEK | MSG_WAITALL) != 10)
        fail("the server sends no events");
    struct frame_header header = parse_header(buffer, 10);
    uint64_t event_bytes = header.header_bytes + header.payload_bytes;

    uint64_t received = 0;
    while (received < arguments.warmup * event_bytes)
        received += receive(fd, buffer, sizeof buffer);
    uint64_t first = received;
    measurement_begin(&measurement);
    while (received < first + arguments.events * event_bytes)
        received += receive(fd, buffer, sizeof buffer);
    measurement_end(&measurement);
    measurement_print(&measurement, (received - first) / event_bytes);
    close(fd);
}
