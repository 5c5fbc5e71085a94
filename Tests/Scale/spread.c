#include <math.h>
#include <stdlib.h>

#include "scale.h"

enum { BACKOFF_BASE_MS = 1000, BACKOFF_MAX_MS = 30000, SHORT_LIVES_FREE = 2, GUARD_BASE_MS = 2000 };

static double doubled(double base_ms, int times) {
    return fmin(BACKOFF_MAX_MS, base_ms * pow(2, times));
}

static double within(double value, double low, double high) {
    return fmin(1, fmax(0, (value - low) / (high - low)));
}

/* The delay is the larger of a draw from [0, window] and, with the guard awake, one from [window / 2, window] of the guard's own, so its
   distribution is the product of theirs. Delays are whole milliseconds. */
void spread_add(struct spread *spread, int64_t delay_ms, int attempts, int short_lives) {
    if (spread->count == spread->capacity) {
        spread->capacity = spread->capacity == 0 ? 4096 : 2 * spread->capacity;
        spread->places = realloc(spread->places, spread->capacity * sizeof *spread->places);
        if (spread->places == NULL)
            fail("out of memory");
    }
    double place = within((double)delay_ms + 0.5, 0, doubled(BACKOFF_BASE_MS, attempts) + 1);
    if (short_lives > SHORT_LIVES_FREE) {
        double window = doubled(GUARD_BASE_MS, short_lives - SHORT_LIVES_FREE - 1);
        place *= within((double)delay_ms + 0.5, window / 2, window + 1);
        spread->guarded++;
    }
    spread->places[spread->count++] = place;
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

double spread_distance(struct spread *spread) {
    if (spread->count == 0)
        return 0;
    double distance = 0, count = (double)spread->count;
    qsort(spread->places, spread->count, sizeof *spread->places, compare);
    for (size_t i = 0; i < spread->count; i++) {
        distance = fmax(distance, spread->places[i] - (double)i / count);
        distance = fmax(distance, (double)(i + 1) / count - spread->places[i]);
    }
    return distance;
}
