/* Finds each frame's header in what was received, and looks at nothing else. */
#ifndef WALKER_H
#define WALKER_H

#include "limit_connection.h"

struct walker {
    uint64_t frames;
    uint64_t payload_left; /* of the frame that the last bytes belong to */
    size_t header_kept;    /* bytes of an unfinished header at the start of the buffer */
};

/* The first `length` bytes of the buffer, the kept ones of the header before it. */
static inline void walk(struct walker *walker, unsigned char *buffer, size_t length) {
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
        walker->frames++;
    }
}

#endif
