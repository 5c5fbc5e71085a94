/* One JSON object on one line of stdout: json_begin, then fields, then json_end. */
#ifndef JSON_LINE_H
#define JSON_LINE_H

#include <stddef.h>
#include <stdint.h>

void json_begin(void);
void json_text(const char *key, const char *bytes, size_t length);
void json_string(const char *key, const char *text);
void json_number(const char *key, int64_t number);
void json_unsigned(const char *key, uint64_t number);
void json_end(void);

#endif
