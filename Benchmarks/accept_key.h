/* The answer to a WebSocket key (RFC 6455 section 4.2.2): base64 of the SHA-1 of the key and a fixed text. */
#ifndef ACCEPT_KEY_H
#define ACCEPT_KEY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KEY_LENGTH = 24, ACCEPT_LENGTH = 28, SHA1_BYTES = 20, SHA1_BLOCK_BYTES = 64 };

static inline uint32_t rotate_left(uint32_t value, int bits) {
    return value << bits | value >> (32 - bits);
}

/* RFC 3174, for messages of less than two blocks less the padding. */
static inline void sha1_short(const unsigned char *message, size_t length, unsigned char digest[SHA1_BYTES]) {
    unsigned char blocks[2 * SHA1_BLOCK_BYTES] = {0};
    memcpy(blocks, message, length);
    blocks[length] = 0x80;
    size_t total = length + 9 <= SHA1_BLOCK_BYTES ? SHA1_BLOCK_BYTES : 2 * SHA1_BLOCK_BYTES;
    for (int i = 0; i < 8; i++)
        blocks[total - 1 - (size_t)i] = (unsigned char)((uint64_t)length * 8 >> (8 * i));

    uint32_t state[5] = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
    for (const unsigned char *block = blocks; block < blocks + total; block += SHA1_BLOCK_BYTES) {
        uint32_t words[80];
        for (int i = 0; i < 16; i++)
            words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
        for (int i = 16; i < 80; i++)
            words[i] = rotate_left(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
        uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
        for (int i = 0; i < 80; i++) {
            uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                             : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                             : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                      : (b ^ c ^ d) + 0xCA62C1D6;
            uint32_t next = rotate_left(a, 5) + mixed + e + words[i];
            e = d;
            d = c;
            c = rotate_left(b, 30);
            b = a;
            a = next;
        }
        state[0] += a;
        state[1] += b;
        state[2] += c;
        state[3] += d;
        state[4] += e;
    }
    for (int i = 0; i < SHA1_BYTES; i++)
        digest[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}

static inline void accept_for_key(const char key[KEY_LENGTH], char accept[ACCEPT_LENGTH + 1]) {
    static const char fixed[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char message[KEY_LENGTH + sizeof fixed - 1];
    memcpy(message, key, KEY_LENGTH);
    memcpy(message + KEY_LENGTH, fixed, sizeof fixed - 1);
    unsigned char digest[SHA1_BYTES + 1] = {0};
    sha1_short(message, sizeof message, digest);
    for (int i = 0; i < 7; i++) {
        uint32_t group = (uint32_t)digest[3 * i] << 16 | (uint32_t)digest[3 * i + 1] << 8 | digest[3 * i + 2];
        for (int j = 0; j < 4; j++)
            accept[4 * i + j] = letters[group >> (18 - 6 * j) & 63];
    }
    accept[ACCEPT_LENGTH - 1] = '='; /* 20 bytes leave one place of the last group empty */
    accept[ACCEPT_LENGTH] = '\0';
}

#endif
