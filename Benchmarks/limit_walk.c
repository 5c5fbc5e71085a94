/* The limit of a WebSocket client: finds each frame's header and looks at nothing else. */
#include "walker.h"

static unsigned char buffer[RECEIVE_BUFFER_BYTES];

static void walk_until(struct walker *walker, int fd, uint64_t frames) {
    while (walker->frames < frames) {
        size_t kept = walker->header_kept;
        walk(walker, buffer, kept + receive(fd, buffer + kept, sizeof buffer - kept));
    }
}

int main(int argc, char **argv) {
    struct arguments arguments = parse_arguments(argc, argv);
    struct measurement measurement = {0};
    measurement_prepare(&measurement);
    struct walker walker = {0};
    int fd = connect_and_subscribe(arguments.port);

    walk_until(&walker, fd, arguments.warmup);
    uint64_t first = walker.frames;
    measurement_begin(&measurement);
    walk_until(&walker, fd, first + arguments.events);
    measurement_end(&measurement);
    measurement_print(&measurement, walker.frames - first);
    close(fd);
}
