/* LD_PRELOAD: counts the allocations of all threads between two marks. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* glibc's own entry points, so that no look-up is needed, which would allocate. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void count_alloc_begin(void);
uint64_t count_alloc_end(void);

static atomic_bool counting;
static atomic_uint_fast64_t allocations;

static void count(void) {
    if (atomic_load_explicit(&counting, memory_order_relaxed))
        atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

void count_alloc_begin(void) {
    atomic_store(&allocations, 0);
    atomic_store(&counting, 1);
}

uint64_t count_alloc_end(void) {
    atomic_store(&counting, 0);
    return atomic_load(&allocations);
}

void *malloc(size_t size) {
    count();
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count();
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count();
    return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
    count();
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    void *made = memalign(alignment, size);
    if (made == NULL)
        return ENOMEM;
    *memory = made;
    return 0;
}
