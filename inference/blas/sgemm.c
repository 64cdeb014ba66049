/* cblas_sgemm for language models on a CPU, in front of a BLAS.
 *
 * A step passes one token of each running sequence through all weights. A BLAS is made for matrices that are large both
 * ways: it first copies the weights into the order that suits its kernel, which takes longer than the product with a
 * few rows. Here the weights are read where they lie, once for all rows. What this file has no kernel for goes to the
 * BLAS, in parts.
 *
 * The threads take parts from one counter, so that one that the system interrupts delays no other part than its own.
 * What waiting for it costs is weighed against what it saved; while it costs more, the calling thread works alone.
 *
 * All matrices are row-major: C = A B, with A of m rows and k columns, and B of k rows and n columns. B is mostly stored
 * transposed, as MLX has weights: n rows of k numbers.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "products.h"

/* ---- threads ---- */

enum { MOST_THREADS = 64, OPEN = 1 << 16 };
enum { PART_NS = 20000, SPIN_NS = 50000, WAIT_NS = 20000, CREDIT_NS = 4000000 };
enum { LEAST_REST_NS = 10000000, MOST_REST_NS = 1000000000 };

/* The product that is computed together. `joined` counts the other threads that read this, and has OPEN while more may
 * join. */
static struct {
    product p;
    kernel *run;
    long step, length;
    int by_rows;
    atomic_long next;
    atomic_int joined;
} shared;
static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER;
static atomic_int posted, sleeping, others;
static int started;
static long long rest_until, rest, credit;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pause_briefly(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_part(long first, long end) {
    if (!shared.by_rows) {
        shared.run(&shared.p, first, end);
        return;
    }
    product part = shared.p;
    part.a += first * part.lda, part.c += first * part.ldc, part.m = end - first;
    shared.run(&part, 0, part.n);
}

static long take_parts(void) {
    long taken = 0;
    for (long first; (first = atomic_fetch_add(&shared.next, shared.step)) < shared.length; taken++)
        run_part(first, first + shared.step < shared.length ? first + shared.step : shared.length);
    return taken;
}

static int join(void) {
    int joined = atomic_load(&shared.joined);
    while ((joined & OPEN) && (joined & ~OPEN) < atomic_load(&others))
        if (atomic_compare_exchange_weak(&shared.joined, &joined, joined + 1)) return 1;
    return 0;
}

static void *other_thread(void *nothing) {
    for (int seen = 0;;) {
        for (long long until = now() + SPIN_NS; atomic_load(&posted) == seen && now() < until;)
            for (int i = 0; i < 16; i++) pause_briefly();
        while (atomic_load(&posted) == seen) {
            atomic_fetch_add(&sleeping, 1);
            syscall(SYS_futex, &posted, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
            atomic_fetch_sub(&sleeping, 1);
        }
        seen = atomic_load(&posted);
        if (join()) {
            take_parts();
            if (atomic_fetch_sub(&shared.joined, 1) == 1)
                syscall(SYS_futex, &shared.joined, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
    }
    return nothing;
}

static void start_others(void) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the program's own threads */
    for (pthread_t thread; started < atomic_load(&others); started++) {
        if (pthread_create(&thread, NULL, other_thread, NULL)) break;
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Let the others rest when they cost more than they save: briefly at first, longer each time it happens again. */
static void weigh(long long saved, long long waited, long long at) {
    credit += saved - waited;
    if (credit > CREDIT_NS) credit = CREDIT_NS;
    if (credit >= 0) return;
    rest = at - rest_until < 4 * rest ? 2 * rest : LEAST_REST_NS;
    if (rest > MOST_REST_NS) rest = MOST_REST_NS;
    rest_until = at + rest;
    credit = 0;
}

/* Not by spinning alone: a core that falls idle takes over a thread that is ready to run but was interrupted. */
static void wait_for_others(long long since) {
    while (atomic_load(&shared.joined) && now() < since + WAIT_NS) pause_briefly();
    for (int joined; (joined = atomic_load(&shared.joined));)
        syscall(SYS_futex, &shared.joined, FUTEX_WAIT_PRIVATE, joined, NULL, NULL, 0);
}

static void compute_together(const product *p, kernel *run, int by_rows, long step) {
    long long began = now();
    start_others();
    shared.p = *p, shared.run = run, shared.by_rows = by_rows, shared.step = step;
    shared.length = by_rows ? p->m : p->n;
    atomic_store(&shared.next, 0);
    atomic_store(&shared.joined, OPEN);
    atomic_fetch_add(&posted, 1);
    if (atomic_load(&sleeping)) syscall(SYS_futex, &posted, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    long mine = take_parts(), all = (shared.length + step - 1) / step;
    long long done = now(), end = done;
    if (atomic_fetch_sub(&shared.joined, OPEN) != OPEN) {
        wait_for_others(done);
        end = now();
    }
    if (mine) weigh((done - began) / mine * (all - mine), end - done, end);
}

static void compute(const product *p, kernel *run) {
    const int by_rows = !p->a_is_transposed && !p->b_is_transposed && p->m > p->n;
    const long length = by_rows ? p->m : p->n;
    const double ns = p->k * (0.2 + p->m / 50.0) * p->n / length; /* of a column or row, roughly */
    const long unit = by_rows ? 2 * TILE : SUMS, parts = (long)(PART_NS / ns) / unit * unit;
    const long least = run == by_blas ? 96 : unit, step = parts > least ? parts : least;
    if (!atomic_load(&others) || 2 * step > length || pthread_mutex_trylock(&owner)) {
        run(p, 0, p->n);
        return;
    }
    if (now() < rest_until) {
        pthread_mutex_unlock(&owner);
        run(p, 0, p->n);
        return;
    }
    compute_together(p, run, by_rows, step);
    pthread_mutex_unlock(&owner);
}

/* ---- what MLX and Python call ---- */

void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc) {
    if (order != ROW_MAJOR || m <= 0 || n <= 0 || k <= 0) {
        blas(order, transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
        return;
    }
    product p = {m, n, k, lda, ldb, ldc, a, b, c, transpose_a != PLAIN, transpose_b != PLAIN, alpha, beta, NULL};
    kernel *run = by_blas;
    if (!p.a_is_transposed && alpha == 1 && beta == 0) {
        if (!p.b_is_transposed && (m <= TILE || (long)n * k <= 1 << 17)) run = plain;
        else if (p.b_is_transposed && m == 1) run = one_row;
        else if (p.b_is_transposed && m <= 4) run = few_rows;
        else if (p.b_is_transposed && m <= 1024 && pack(&p)) run = packed_rows;
    }
    compute(&p, run);
}

/* `then`: the cblas_sgemm of a BLAS that computes on its caller's thread. `threads`: how many may compute. */
void sgemm_start(sgemm *then, int threads) {
    blas = then;
    atomic_store(&others, threads < 1 ? 0 : threads > MOST_THREADS ? MOST_THREADS - 1 : threads - 1);
}
