/* The parts of the scale program. */
#ifndef SCALE_H
#define SCALE_H

#include <stddef.h>
#include <stdint.h>

/* Says what is wrong and ends the program, and with it the edges. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t clock_ms(void); /* CLOCK_MONOTONIC */

/* ---- process.c: what the system says about this process ---- */

/* Takes the hard limit of open files and fails, saying what to do, if it is less than `wanted`. */
void raise_file_limit(size_t wanted);
size_t resident_bytes(void);
size_t anonymous_bytes(void); /* resident ones that belong to no file: heap and stacks */
size_t count_threads(void);
size_t count_files(void);
uint64_t cpu_us(void);
/* How often threads other than the calling one have gone to sleep. */
uint64_t count_sleeps(void);

/* ---- edges.c: processes with scale_edge ---- */

struct edges;

/* One edge on each port; returns when all listen. */
struct edges *edges_start(const char *program, const int *ports, size_t count, int activity_timeout_s);
/* Kills all, so that every connection is cut, and starts them again on the same ports. */
void edges_restart(struct edges *edges);
/* A line for one edge, or for all (SIZE_MAX). */
void edges_command(struct edges *edges, size_t which, const char *line);
/* Connections accepted since the start: when the first, the middle and the last came, in milliseconds of clock_ms, and how many of them in
   the busiest 100 ms. */
struct arrivals {
    size_t accepted, busiest;
    uint64_t first_ms, median_ms, last_ms;
};
struct arrivals edges_arrivals(struct edges *edges);
void edges_stop(struct edges *edges);

/* ---- spread.c: planned delays against the formula of reconnects ---- */

/* A connection that lasted less is short; three in a row wake the flap guard. */
enum { SHORT_LIFE_MS = 5000 };

struct spread {
    double *places; /* of each delay in its own distribution: uniform in [0, 1] if the formula holds */
    size_t count, capacity;
    size_t guarded; /* delays that the flap guard had a say in */
};

/* `attempts` since the last handshake, `short_lives` in a row. */
void spread_add(struct spread *spread, int64_t delay_ms, int attempts, int short_lives);
/* The Kolmogorov-Smirnov distance to the uniform distribution. */
double spread_distance(struct spread *spread);

#endif
