/* What the servers written in C share: the answer to an upgrade, and frames from and to a client (RFC 6455). */
#ifndef SERVER_SIDE_H
#define SERVER_SIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "accept_key.h"

enum { OPCODE_TEXT = 1, OPCODE_CLOSE = 8, OPCODE_PING = 9, OPCODE_PONG = 10 };
enum { SERVER_HEADER_BYTES_MAX = 10, UPGRADE_ANSWER_BYTES_MAX = 256 };

static inline size_t put_header(char *at, int opcode, size_t payload_bytes) {
    at[0] = (char)(0x80 | opcode);
    int extended_bytes = payload_bytes < 126 ? 0 : payload_bytes <= UINT16_MAX ? 2 : 8;
    at[1] = (char)(extended_bytes == 0 ? payload_bytes : extended_bytes == 2 ? 126 : 127);
    for (int i = 0; i < extended_bytes; i++)
        at[2 + i] = (char)((uint64_t)payload_bytes >> (8 * (extended_bytes - 1 - i)));
    return 2 + (size_t)extended_bytes;
}

/* Writes the answer to the upgrade request at the start of the NUL-terminated input. Bytes of the request; 0: more input is needed;
   -1: it is no WebSocket upgrade. */
static inline ssize_t answer_upgrade(const char *input, char answer[UPGRADE_ANSWER_BYTES_MAX]) {
    static const char key_name[] = "\r\nSec-WebSocket-Key:";
    const char *end = strstr(input, "\r\n\r\n");
    if (end == NULL)
        return 0;
    const char *key = strcasestr(input, key_name);
    if (key == NULL || key > end)
        return -1;
    key += sizeof key_name - 1;
    key += strspn(key, " ");
    if (end - key < KEY_LENGTH)
        return -1;
    char accept[ACCEPT_LENGTH + 1];
    accept_for_key(key, accept);
    snprintf(answer, UPGRADE_ANSWER_BYTES_MAX,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %s\r\n\r\n",
             accept);
    return end + 4 - input;
}

struct client_frame {
    int opcode;
    char *payload; /* unmasked, in place */
    size_t payload_bytes;
    size_t total_bytes;
};

/* Unmasks the client frame at the start of the input. 1: there it is; 0: more input is needed; -1: unmasked, or 64 KiB and more. */
static inline int next_client_frame(char *bytes, size_t length, struct client_frame *frame) {
    const unsigned char *input = (const unsigned char *)bytes;
    if (length < 2)
        return 0;
    size_t payload_bytes = input[1] & 0x7F;
    size_t header_bytes = 6;
    if (payload_bytes == 126) {
        if (length < 4)
            return 0;
        payload_bytes = (size_t)input[2] << 8 | input[3];
        header_bytes = 8;
    }
    if ((input[1] & 0x80) == 0 || (input[1] & 0x7F) == 127)
        return -1;
    if (length < header_bytes + payload_bytes)
        return 0;
    *frame = (struct client_frame){input[0] & 0x0F, bytes + header_bytes, payload_bytes, header_bytes + payload_bytes};
    for (size_t i = 0; i < payload_bytes; i++)
        frame->payload[i] = (char)(input[header_bytes + i] ^ input[header_bytes - 4 + i % 4]);
    return 1;
}

/* The channel that a client's JSON names, as it stands there; NULL if there is none. */
static inline const char *channel_in(const char *message, size_t *length) {
    static const char key[] = "\"channel\":";
    const char *name = strstr(message, key);
    if (name == NULL)
        return NULL;
    name += sizeof key - 1;
    name += strspn(name, " ");
    if (*name++ != '"')
        return NULL;
    *length = strcspn(name, "\"");
    return name;
}

#endif
