/*
 * Counts the blocks in use of the whole process, the library's and its libraries' too: as a part of the program, or by LD_PRELOAD.
 * The allocator's own figures say the bytes that it has handed out, but a few bytes for each connect are lost among its caches.
 */
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

/* glibc's own entry points, so that no look-up is needed, which would allocate. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

long long heap_blocks(void);
long long heap_bytes(void);

static atomic_llong blocks, bytes;

long long heap_blocks(void) {
    return atomic_load(&blocks);
}

long long heap_bytes(void) {
    return atomic_load(&bytes);
}

static void *counted(void *block) {
    if (block != NULL) {
        atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&bytes, (long long)malloc_usable_size(block), memory_order_relaxed);
    }
    return block;
}

static void uncount(long long count, long long size) {
    atomic_fetch_sub_explicit(&blocks, count, memory_order_relaxed);
    atomic_fetch_sub_explicit(&bytes, size, memory_order_relaxed);
}

void *malloc(size_t size) {
    return counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return counted(__libc_calloc(count, size));
}

void free(void *block) {
    if (block == NULL)
        return;
    uncount(1, (long long)malloc_usable_size(block));
    __libc_free(block);
}

void *realloc(void *old, size_t size) {
    const long long old_size = old == NULL ? 0 : (long long)malloc_usable_size(old);
    void *block = __libc_realloc(old, size);
    const int is_gone = block != NULL || size == 0; /* otherwise it has failed, and the old one is still there */
    if (old != NULL && is_gone)
        uncount(1, old_size);
    return counted(block);
}

void *memalign(size_t alignment, size_t size) {
    return counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0)
        return EINVAL;
    void *block = memalign(alignment, size);
    if (block == NULL)
        return ENOMEM;
    *memory = block;
    return 0;
}
