/* The products of sgemm.c on one thread. */
#include <stdlib.h>

/* The bytes of a vector register, and how many sums may stay in registers. TILE rows of a part share what is loaded. */
#if defined(__AVX512F__)
enum { BYTES = 64, SUMS = 16, TILE = 4 };
#elif defined(__AVX__)
enum { BYTES = 32, SUMS = 12, TILE = 3 };
#else
enum { BYTES = 16, SUMS = 16, TILE = 4 };
#endif
enum { LANES = BYTES / 4, WIDTH = SUMS / TILE };

typedef float vec __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef float half_vec __attribute__((vector_size(BYTES / 2), aligned(4), may_alias));
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

#define INLINE static inline __attribute__((always_inline)) /* the numbers of rows and columns become constants */
#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (int __attribute__((vector_size(16)))){i, j, k, l})
#endif
#if defined(__x86_64__)
#define IN_REGISTER(x) __asm__("" : "+v"(x)) /* or GCC loads it again for each use */
#else
#define IN_REGISTER(x)
#endif

enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

typedef struct {
    long m, n, k, lda, ldb, ldc;
    const float *a, *b;
    float *c;
    int a_is_transposed, b_is_transposed;
    float alpha, beta;
    const float *packed; /* `a` as `packed_rows` reads it */
} product;

typedef void kernel(const product *, long first, long end); /* computes these columns */

static sgemm *blas;

static void by_blas(const product *p, long first, long end) {
    blas(ROW_MAJOR, p->a_is_transposed ? TRANSPOSED : PLAIN, p->b_is_transposed ? TRANSPOSED : PLAIN, (int)p->m,
         (int)(end - first), (int)p->k, p->alpha, p->a, (int)p->lda, p->b + first * (p->b_is_transposed ? p->ldb : 1),
         (int)p->ldb, p->beta, p->c + first, (int)p->ldc);
}

/* ---- a few rows, B transposed: dot products ---- */

INLINE four sum_of_fours(const vec *values) {
    const four *parts = (const four *)values;
    four total = parts[0];
    for (int i = 1; i < LANES / 4; i++) total += parts[i];
    return total;
}

INLINE four sums_of(const vec *a, const vec *b, const vec *c, const vec *d) {
    four p = sum_of_fours(a), q = sum_of_fours(b), r = sum_of_fours(c), s = sum_of_fours(d);
    four pq = PICK(p, q, 0, 4, 1, 5) + PICK(p, q, 2, 6, 3, 7), rs = PICK(r, s, 0, 4, 1, 5) + PICK(r, s, 2, 6, 3, 7);
    return PICK(pq, rs, 0, 1, 4, 5) + PICK(pq, rs, 2, 3, 6, 7);
}

INLINE void dots(const product *p, long row, long column, const int rows, const int columns) {
    const long k = p->k, lda = p->lda, ldb = p->ldb;
    const float *a = p->a + row * lda, *b = p->b + column * ldb;
    float *c = p->c + row * p->ldc + column;
    vec sums[TILE][8];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++) sums[r][j] = (vec){0};
    long i = 0;
    for (; i + LANES <= k; i += LANES) {
        vec left[TILE];
        for (int r = 0; r < rows; r++) left[r] = *(const vec *)(a + r * lda + i);
        for (int j = 0; j < columns; j++) {
            vec right = *(const vec *)(b + j * ldb + i);
            IN_REGISTER(right);
            for (int r = 0; r < rows; r++) sums[r][j] += left[r] * right;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j += 4) {
            const int most = columns - 1;
            four totals = sums_of(&sums[r][j], &sums[r][j + 1 < most ? j + 1 : most],
                                  &sums[r][j + 2 < most ? j + 2 : most], &sums[r][j + 3 < most ? j + 3 : most]);
            for (int q = 0; q < 4 && j + q < columns; q++) {
                float total = totals[q];
                for (long rest = i; rest < k; rest++) total += a[r * lda + rest] * b[(j + q) * ldb + rest];
                c[r * p->ldc + j + q] = total;
            }
        }
}

INLINE void dots_of_columns(const product *p, long column, const int columns) {
    long row = 0;
    for (; row + TILE <= p->m; row += TILE) dots(p, row, column, TILE, columns);
    if (p->m - row == 3) dots(p, row, column, 3, columns);
    if (p->m - row == 2) dots(p, row, column, 2, columns);
    if (p->m - row == 1) dots(p, row, column, 1, columns);
}

/* One row: memory is what limits it, so B is read in its order, from one end to the other. */
static void one_row(const product *p, long first, long end) {
    const long k = p->k, whole = k / (4 * LANES) * (4 * LANES);
    for (long column = first; column < end; column++) {
        const float *a = p->a, *b = p->b + column * p->ldb;
        vec sums[4] = {{0}, {0}, {0}, {0}};
        for (long i = 0; i < whole; i += 4 * LANES)
            for (int v = 0; v < 4; v++)
                sums[v] += *(const vec *)(a + i + v * LANES) * *(const vec *)(b + i + v * LANES);
        four totals = sums_of(&sums[0], &sums[1], &sums[2], &sums[3]);
        float total = totals[0] + totals[1] + totals[2] + totals[3];
        for (long i = whole; i < k; i++) total += a[i] * b[i];
        p->c[column] = total;
    }
}

static void few_rows(const product *p, long first, long end) {
    long column = first;
    for (; column + 4 <= end; column += 4) dots_of_columns(p, column, 4);
    for (; column < end; column++) dots_of_columns(p, column, 1);
}

/* ---- more rows, B transposed: each number of B with a vector of rows ---- */

#define DEFINE_ROWS(name, type, vectors, most)                                                                         \
    INLINE void name##_tile(const product *p, const float *rows, float *c, long m, long column, const int columns) {   \
        enum { ROWS = (int)sizeof(type) / 4 * vectors };                                                               \
        const float *b = p->b + column * p->ldb;                                                                       \
        const long k = p->k, ldb = p->ldb;                                                                             \
        type sums[most][vectors];                                                                                      \
        for (int j = 0; j < columns; j++)                                                                              \
            for (int v = 0; v < vectors; v++) sums[j][v] = (type){0};                                                  \
        for (long i = 0; i < k; i++)                                                                                   \
            for (int j = 0; j < columns; j++)                                                                          \
                for (int v = 0; v < vectors; v++) sums[j][v] += b[j * ldb + i] * ((const type *)(rows + i * ROWS))[v]; \
        float out[most][ROWS];                                                                                         \
        for (int j = 0; j < columns; j++)                                                                              \
            for (int v = 0; v < vectors; v++) ((type *)out[j])[v] = sums[j][v];                                        \
        for (long r = 0; r < m; r++)                                                                                   \
            for (int j = 0; j < columns; j++) c[r * p->ldc + column + j] = out[j][r];                                  \
    }                                                                                                                  \
    INLINE void name(const product *p, const float *rows, float *c, long m, long column, const int columns) {          \
        if (columns == 1) name##_tile(p, rows, c, m, column, 1);                                                       \
        else                                                                                                           \
            for (long end = column + columns; column < end; column += most) name##_tile(p, rows, c, m, column, most);  \
    }
DEFINE_ROWS(half_vector, half_vec, 1, SUMS)
DEFINE_ROWS(one_vector, vec, 1, SUMS)
DEFINE_ROWS(two_vectors, vec, 2, SUMS / 2)

static long block_of(long rows) { return rows > LANES ? 2 * LANES : rows > LANES / 2 ? LANES : LANES / 2; }

INLINE void packed_columns(const product *p, long column, const int columns) {
    const float *rows = p->packed;
    float *c = p->c;
    for (long left = p->m, block; left > 0; left -= block, rows += block * p->k, c += block * p->ldc) {
        block = block_of(left);
        long m = left < block ? left : block;
        if (block == 2 * LANES) two_vectors(p, rows, c, m, column, columns);
        else if (block == LANES) one_vector(p, rows, c, m, column, columns);
        else half_vector(p, rows, c, m, column, columns);
    }
}

static void packed_rows(const product *p, long first, long end) {
    for (; first + SUMS <= end; first += SUMS) packed_columns(p, first, SUMS);
    for (; first < end; first++) packed_columns(p, first, 1);
}

/* Write the rows of A block by block, each column by column. Returns 0 if there is no memory. */
static int pack(product *p) {
    static _Thread_local float *packed;
    static _Thread_local size_t room;
    size_t needed = ((size_t)(p->m + 2 * LANES) * p->k * sizeof(float) + 63) / 64 * 64;
    if (needed > room) {
        free(packed);
        packed = aligned_alloc(64, needed);
        room = packed ? needed : 0;
        if (!packed) return 0;
    }
    float *to = packed;
    for (long left = p->m, block; left > 0; left -= block, to += block * p->k) {
        block = block_of(left);
        const float *from = p->a + (p->m - left) * p->lda;
        for (long start = 0; start < p->k; start += 16)
            for (long row = 0; row < block; row++)
                for (long i = start; i < start + 16 && i < p->k; i++)
                    to[i * block + row] = row < left ? from[row * p->lda + i] : 0;
    }
    p->packed = packed;
    return 1;
}

/* ---- B as it is: vectors of columns ---- */

INLINE void plain_tile(const product *p, long row, long column, const int rows, const int width) {
    const float *a = p->a + row * p->lda, *b = p->b + column;
    float *c = p->c + row * p->ldc + column;
    vec sums[TILE][WIDTH];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) sums[r][v] = (vec){0};
    for (long i = 0; i < p->k; i++)
        for (int v = 0; v < width; v++) {
            vec right = *(const vec *)(b + i * p->ldb + v * LANES);
            IN_REGISTER(right);
            for (int r = 0; r < rows; r++) sums[r][v] += a[r * p->lda + i] * right;
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < width; v++) *(vec *)(c + r * p->ldc + v * LANES) = sums[r][v];
}

INLINE void plain_rows(const product *p, long row, long first, long end, const int rows) {
    long column = first;
    for (; column + WIDTH * LANES <= end; column += WIDTH * LANES) plain_tile(p, row, column, rows, WIDTH);
    for (; column + LANES <= end; column += LANES) plain_tile(p, row, column, rows, 1);
    for (; column < end; column++)
        for (long r = row; r < row + rows; r++) {
            float total = 0;
            for (long i = 0; i < p->k; i++) total += p->a[r * p->lda + i] * p->b[i * p->ldb + column];
            p->c[r * p->ldc + column] = total;
        }
}

static void plain(const product *p, long first, long end) {
    long row = 0;
    for (; row + TILE <= p->m; row += TILE) plain_rows(p, row, first, end, TILE);
    for (; row < p->m; row++) plain_rows(p, row, first, end, 1);
}
