/* The encoded frames of a flood. */
#ifndef FLOOD_BLOCK_H
#define FLOOD_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "server_side.h"

enum { BLOCK_BYTES_MIN = 1024 * 1024 }; /* stays in the cache of one core */

/* Whole frames, all of one size. */
struct block {
    char *bytes; /* NULL: out of memory */
    size_t frame_bytes;
    size_t total_bytes;
    size_t data_at; /* in a frame: where the data's own text begins, behind its first quote */
};

/* The JSON text that a handler sees: exactly `bytes` long. */
static inline char *make_data(size_t bytes, bool is_dense) {
    char *data = malloc(bytes + 1);
    if (data == NULL)
        return NULL;
    memset(data, 'x', bytes);
    data[bytes] = '\0';
    if (is_dense) { /* ["xxxx","xxxx","xxxxxxx"], the last string taking what is left */
        data[0] = '[';
        data[1] = '"';
        for (size_t at = 6; at + 7 < bytes - 2; at += 7)
            memcpy(data + at, "\",\"", 3);
        data[bytes - 2] = '"';
        data[bytes - 1] = ']';
    } else {
        data[0] = '"';
        data[bytes - 1] = '"';
    }
    return data;
}

static inline struct block make_block(size_t data_bytes, bool is_dense) {
    static const char before[] = "{\"event\":\"tick\",\"channel\":\"bench\",\"data\":\"";
    static const char after[] = "\"}";
    struct block block = {0};
    char *data = make_data(data_bytes, is_dense);
    if (data == NULL)
        return block;
    size_t quotes = 0;
    for (const char *at = data; *at != '\0'; at++)
        quotes += *at == '"';
    size_t payload_bytes = sizeof before - 1 + data_bytes + quotes + sizeof after - 1;

    char header[SERVER_HEADER_BYTES_MAX];
    size_t header_bytes = put_header(header, OPCODE_TEXT, payload_bytes);
    block.frame_bytes = header_bytes + payload_bytes;
    block.data_at = header_bytes + sizeof before - 1 + sizeof "\\\"" - 1;
    size_t frames = (BLOCK_BYTES_MIN + block.frame_bytes - 1) / block.frame_bytes;
    block.total_bytes = frames * block.frame_bytes;
    block.bytes = malloc(block.total_bytes);
    if (block.bytes != NULL) {
        char *out = block.bytes;
        memcpy(out, header, header_bytes);
        out += header_bytes;
        memcpy(out, before, sizeof before - 1);
        out += sizeof before - 1;
        for (const char *at = data; *at != '\0'; at++) {
            if (*at == '"')
                *out++ = '\\';
            *out++ = *at;
        }
        memcpy(out, after, sizeof after - 1);
        for (size_t frame = 1; frame < frames; frame++)
            memcpy(block.bytes + frame * block.frame_bytes, block.bytes, block.frame_bytes);
    }
    free(data);
    return block;
}

#endif
