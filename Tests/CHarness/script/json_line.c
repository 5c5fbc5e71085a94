#include "json_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of several threads come out whole. */
static _Thread_local FILE *line;
static _Thread_local char *bytes_of_line;
static _Thread_local size_t line_length;
static _Thread_local const char *separator;

void json_begin(void) {
    line = open_memstream(&bytes_of_line, &line_length);
    separator = "{";
}

static void put_string(const char *bytes, size_t length) {
    fputc('"', line);
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte < ' ' || byte == '"' || byte == '\\') {
            fprintf(line, "\\u%04x", byte);
        } else {
            fputc(byte, line);
        }
    }
    fputc('"', line);
}

static void put_key(const char *key) {
    fputs(separator, line);
    separator = ",";
    put_string(key, strlen(key));
    fputc(':', line);
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
    fprintf(line, "%lld", (long long)number);
}

void json_unsigned(const char *key, uint64_t number) {
    put_key(key);
    fprintf(line, "%llu", (unsigned long long)number);
}

void json_end(void) {
    fputs("}\n", line);
    fclose(line);
    fwrite(bytes_of_line, 1, line_length, stdout);
    free(bytes_of_line);
}
