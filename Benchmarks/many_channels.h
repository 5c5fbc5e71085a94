/* The names of many channels, for the server and the clients. */
#ifndef MANY_CHANNELS_H
#define MANY_CHANNELS_H

#include <stddef.h>
#include <stdio.h>

enum { MANY_MAX = 1000000, MANY_NAME_BYTES = 32 };

/* All of one length, so that frames are. */
static inline const char *many_name(char name[MANY_NAME_BYTES], size_t index) {
    snprintf(name, MANY_NAME_BYTES, "many-%06zu", index);
    return name;
}

#endif
