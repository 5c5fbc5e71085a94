#include <string.h>

#include "soak.h"

/* The same as in servers.py. */
const char *const names[] = {
    "news-1",
    "news-2",
    "news-3",
    "news-4",
    "cache-1",
    "cache-2",
    "private-1",
    "private-2",
    "private-3",
    "private-cache-1",
    "presence-room-1",
    "presence-room-2",
    "presence-cache-1",
    "private-encrypted-1",
    "private-encrypted-2",
};
const size_t names_count = sizeof names / sizeof *names;

size_t names_find(const char *name) {
    size_t found = 0;
    while (found < names_count && strcmp(names[found], name) != 0)
        found++;
    return found;
}

bool names_is_cache(size_t name) {
    return strstr(names[name], "cache-") != NULL;
}

bool names_is_presence(size_t name) {
    return strncmp(names[name], "presence-", strlen("presence-")) == 0;
}
