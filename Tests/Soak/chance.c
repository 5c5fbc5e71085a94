#include "soak.h"

/* SplitMix64 */
uint64_t chance_next(struct chance *chance) {
    uint64_t mixed = chance->state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

int64_t chance_between(struct chance *chance, int64_t low, int64_t high) {
    return low + (int64_t)(chance_next(chance) % (uint64_t)(high - low + 1));
}

bool chance_percent(struct chance *chance, int percent) {
    return chance_between(chance, 0, 99) < percent;
}
