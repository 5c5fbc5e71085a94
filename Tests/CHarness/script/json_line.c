#include "json_line.h"

#include <stdio.h>
#include <string.h>

static const char *separator;

void json_begin(void) {
    separator = "{";
}

static void put_string(const char *bytes, size_t length) {
    putchar('"');
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte < ' ' || byte == '"' || byte == '\\') {
            printf("\\u%04x", byte);
        } else {
            putchar(byte);
        }
    }
    putchar('"');
}

static void put_key(const char *key) {
    fputs(separator, stdout);
    separator = ",";
    put_string(key, strlen(key));
    putchar(':');
}

void json_text(const char *key, const char *bytes, size_t length) {
    put_key(key);
    put_string(bytes, length);
}

void json_string(const char *key, const char *text) {
    json_text(key, text, strlen(text));
}

void json_number(const char *key, int64_t number) {
    put_key(key);
    printf("%lld", (long long)number);
}

void json_unsigned(const char *key, uint64_t number) {
    put_key(key);
    printf("%llu", (unsigned long long)number);
}

void json_end(void) {
    puts("}");
}
