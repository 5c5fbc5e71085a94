/* What the sanitizers ask the program that they run in; linked into the C harness by scripts/sanitize only. */
#include <sys/types.h>
#include <unistd.h>

const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);
int __lsan_is_turned_off(void);
const char *__tsan_default_options(void);
const char *__tsan_default_suppressions(void);

static pid_t process;

__attribute__((constructor)) static void note_process(void) {
    process = getpid();
}

/* Freed memory is kept for a short while only: some cases watch how the process grows. */
const char *__asan_default_options(void) {
    return "quarantine_size_mb=1:thread_local_quarantine_size_kb=64:detect_leaks=1";
}

/* The runtime of Swift stores the address of the table of a weak reference shifted, where no leak checker finds it. */
const char *__lsan_default_suppressions(void) {
    return "leak:swift::RefCounts\n";
}

/* To a forked child what the parent's threads hold is lost. */
int __lsan_is_turned_off(void) {
    return getpid() != process;
}

const char *__tsan_default_options(void) {
    return "report_thread_leaks=0:halt_on_error=1:exitcode=66:die_after_fork=0";
}

/* The runtime of Swift is not built for it. What it does once for a global value, and with a reference count, orders nothing in the eyes of
   the sanitizer: it takes an array that one thread has given away and another one then changes in place for a race. Nor does it see the
   Mutex of Synchronization, which guards the options. */
const char *__tsan_default_suppressions(void) {
    return "race:swift::threading_impl::once_slow\n"
           "race:Diary.swift\n"
           "race:changeOptions\n"
           "race:optionsValue\n";
}
