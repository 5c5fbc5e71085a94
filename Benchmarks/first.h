/* What the programs that wait for a first event share. usage: PORT CONNECTIONS */
#ifndef FIRST_H
#define FIRST_H

#include "measure.h"

enum { CONNECTIONS_MAX = 64 };

struct first_arguments {
    int port, connections;
};

static inline struct first_arguments parse_first(int argc, char **argv) {
    struct first_arguments arguments = {argc == 3 ? atoi(argv[1]) : 0, argc == 3 ? atoi(argv[2]) : 0};
    if (arguments.port <= 0 || arguments.connections <= 0 || arguments.connections > CONNECTIONS_MAX)
        fail("usage: first PORT CONNECTIONS, at most 64");
    return arguments;
}

/* Prints the microseconds that each connection took, as a JSON array. The connections stay open until all were made. */
static inline void print_firsts(struct first_arguments arguments, double (*receive_first)(int port)) {
    double seconds[CONNECTIONS_MAX];
    for (int i = 0; i < arguments.connections; i++)
        seconds[i] = receive_first(arguments.port);
    for (int i = 0; i < arguments.connections; i++)
        printf("%s%.1f", i == 0 ? "[" : ", ", seconds[i] * 1e6);
    puts("]");
}

#endif
