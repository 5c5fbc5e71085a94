/*
 * What the runtime of Swift orders between threads, told to the thread sanitizer, which cannot see it: the runtime is not built for it.
 * Linked into the library by scripts/sanitize only, in front of the functions themselves (--wrap).
 *
 * Whoever gives a reference up has done with the object; whoever finds that it is the only one left, or destroys the object, comes after.
 * What is done once has been done before any call of "once" returns.
 */
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A reference to the storage of a string carries marks in its first and last bits; those that count no references are negative. */
static void *storage(uintptr_t reference) {
    return (intptr_t)reference > 0 ? (void *)(reference & 0x00FFFFFFFFFFFFF8) : NULL;
}

static void gives_up(void *object) {
    if ((intptr_t)object > 0) {
        __tsan_release(object);
    }
}

#define RELEASE(name)                                                                                                  \
    void __real_##name(void *object);                                                                                  \
    void __wrap_##name(void *object);                                                                                  \
    void __wrap_##name(void *object) {                                                                                 \
        gives_up(object);                                                                                              \
        __real_##name(object);                                                                                         \
    }
RELEASE(swift_release)

#define RELEASE_N(name)                                                                                                \
    void __real_##name(void *object, uint32_t count);                                                                  \
    void __wrap_##name(void *object, uint32_t count);                                                                  \
    void __wrap_##name(void *object, uint32_t count) {                                                                 \
        gives_up(object);                                                                                              \
        __real_##name(object, count);                                                                                  \
    }
RELEASE_N(swift_release_n)

void __real_swift_bridgeObjectRelease(uintptr_t reference);
void __wrap_swift_bridgeObjectRelease(uintptr_t reference);
void __wrap_swift_bridgeObjectRelease(uintptr_t reference) {
    gives_up(storage(reference));
    __real_swift_bridgeObjectRelease(reference);
}

void __real_swift_bridgeObjectRelease_n(uintptr_t reference, int count);
void __wrap_swift_bridgeObjectRelease_n(uintptr_t reference, int count);
void __wrap_swift_bridgeObjectRelease_n(uintptr_t reference, int count) {
    gives_up(storage(reference));
    __real_swift_bridgeObjectRelease_n(reference, count);
}

#define IS_UNIQUE(name)                                                                                                \
    bool __real_##name(void *object);                                                                                  \
    bool __wrap_##name(void *object);                                                                                  \
    bool __wrap_##name(void *object) {                                                                                 \
        const bool is_unique = __real_##name(object);                                                                  \
        if (is_unique) {                                                                                               \
            __tsan_acquire(object);                                                                                    \
        }                                                                                                              \
        return is_unique;                                                                                              \
    }
IS_UNIQUE(swift_isUniquelyReferenced_native)
IS_UNIQUE(swift_isUniquelyReferenced_nonNull_native)

void __real_swift_deallocClassInstance(void *object, size_t size, size_t alignment);
void __wrap_swift_deallocClassInstance(void *object, size_t size, size_t alignment);
void __wrap_swift_deallocClassInstance(void *object, size_t size, size_t alignment) {
    __tsan_acquire(object);
    __real_swift_deallocClassInstance(object, size, alignment);
}

void __real_swift_deallocObject(void *object, size_t size, size_t alignment);
void __wrap_swift_deallocObject(void *object, size_t size, size_t alignment);
void __wrap_swift_deallocObject(void *object, size_t size, size_t alignment) {
    __tsan_acquire(object);
    __real_swift_deallocObject(object, size, alignment);
}

struct once {
    void *predicate;
    void (*function)(void *context);
    void *context;
};

static void run_once(void *argument) {
    const struct once *once = argument;
    once->function(once->context);
    __tsan_release(once->predicate);
}

void __real_swift_once(void *predicate, void (*function)(void *context), void *context);
void __wrap_swift_once(void *predicate, void (*function)(void *context), void *context);
void __wrap_swift_once(void *predicate, void (*function)(void *context), void *context) {
    struct once once = {predicate, function, context};
    __real_swift_once(predicate, run_once, &once);
    __tsan_acquire(predicate);
}

/* Mutex of Synchronization: its short way is compiled into the caller, where the sanitizer sees it; this is what a thread does that has to wait. */
#define LOCK_SLOWLY "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
__attribute__((swiftcall)) void
real_lock_slowly(uint32_t thread, __attribute__((swift_context)) void *mutex) __asm__("__real_" LOCK_SLOWLY);
__attribute__((swiftcall)) void
wrap_lock_slowly(uint32_t thread, __attribute__((swift_context)) void *mutex) __asm__("__wrap_" LOCK_SLOWLY);
__attribute__((swiftcall)) void wrap_lock_slowly(uint32_t thread, __attribute__((swift_context)) void *mutex) {
    real_lock_slowly(thread, mutex);
    __tsan_acquire(mutex);
}
