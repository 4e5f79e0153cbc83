/* Selection in C: the kernel, the walk with its proofs, and what explains it.

   The picks and proofs are those of dense.py, which documents them. Whatever cannot be proved here is handed
   back. Sums may be reordered where it says so ("omp simd reduction"), nowhere else; NaN and infinity stay.
   Hot functions are compiled for several generations of processors, and the loader takes the best.

   Matrices stand row by row. Functions that end in _32 and _64 are made twice from the second part of this
   file, for float and for double. */

#ifndef REAL

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(ONE_TARGET)
#define HOT __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define HOT
#endif
#define SAME static inline __attribute__((always_inline))

typedef intptr_t size;

/* Who gains most of a few rivals that rounding does not tell apart, after so many picks; -1 if that is not
   clear even so. */
typedef size (*referee)(void *knows, const size *rivals, size count, size picks);

enum { TILE = 64, BLOCK = 32, MOST_RIVALS = 32 };

/* exp(x) of x <= 0, to 1e-7 of itself: 2^n p(r) with x = n log 2 + r. The polynomial is that of Cephes. 2^n
   goes in by two halves, so that values below 1e-38 fade gradually. */
SAME float small_exp(float x) {
    x = x > -104.0f ? x : -104.0f;
    float n = (x * 1.4426950408889634f + 12582912.0f) - 12582912.0f; /* to the nearest whole number */
    float r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    int32_t power = (int32_t)n, half = power >> 1;
    union { int32_t bits; float value; } low, high;
    low.bits = (half + 127) << 23;
    high.bits = (power - half + 127) << 23;
    return p * low.value * high.value;
}

/* exp(scale (1 - cos)^2) of a row. */
SAME void gaussian_row(const float *cosines, float *out, size count, float scale) {
    for (size j = 0; j < count; j++) {
        float apart = cosines[j] - 1.0f;
        out[j] = small_exp(apart * apart * scale);
    }
}

HOT void gaussian(const float *cosines, size count, float scale, float *out) {
    gaussian_row(cosines, out, count, scale);
}

/* The sum over rows of w max(0, board - covered), for some columns of a board. */
HOT void gain_at_most(const float *board, size rows, size columns, const float *weights, const float *covered,
                      const size *candidates, size count, float *gains) {
    for (size i = 0; i < rows; i++) {
        const float *row = board + i * columns;
        float weight = weights[i], done = covered[i];
        for (size c = 0; c < count; c++) {
            float rise = row[candidates[c]] - done;
            gains[c] += weight * (rise > 0 ? rise : 0);
        }
    }
}

HOT void exponentials(const float *values, size count, float *out) {
    for (size i = 0; i < count; i++) out[i] = small_exp(values[i]);
}

/* Cosines below and on the diagonal become exp(scale (1 - cos)^2) on both sides of it, in place. */
HOT void fill(float *kernel, size n, float scale) {
    for (size top = 0; top < n; top += TILE) {
        size end = top + TILE < n ? top + TILE : n;
        for (size i = top; i < end; i++) gaussian_row(kernel + i * n, kernel + i * n, i + 1, scale);
        for (size left = 0; left < top; left += TILE)
            for (size j = left; j < left + TILE; j++)
                for (size i = top; i < end; i++) kernel[j * n + i] = kernel[i * n + j];
        for (size i = top; i < end; i++)
            for (size j = top; j < i; j++) kernel[j * n + i] = kernel[i * n + j];
    }
}

/* Fingerprints of rows of 64-bit words, by as many words as there are multipliers. */
HOT void prints(const uint64_t *bits, size rows, size wide, const uint64_t *multipliers, size count,
                uint64_t *found) {
    for (size i = 0; i < rows; i++) {
        uint64_t total = 0;
        for (size j = 0; j < count; j++) total += bits[i * wide + j] * multipliers[j];
        found[i] = total;
    }
}

/* What this was compiled from, so that nobody calls what has changed since. */
const char *source(void) { return SOURCE; }

#define REAL float
#define EPS 1.1920929e-07f
#define NAME(name) name##_32
#include "machine.c"
#undef REAL
#undef EPS
#undef NAME
#define REAL double
#define EPS 2.220446049250313e-16
#define NAME(name) name##_64
#include "machine.c"
#undef REAL
#undef EPS
#undef NAME

SAME float dot(const float *left, const float *right, size count) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (size j = 0; j < count; j++) total += left[j] * right[j];
    return total;
}

/* Rows in order of their keys, the largest first, and where keys are the same, of their content. Returns 0
   where two rows are the same, or too many keys to compare their rows. Keys are sorted byte by byte, as whole
   numbers in the same order. */
static int rank(const float *keys, const float *rows, size n, size dim, uint64_t *room, size *order) {
    uint64_t *from = room, *to = room + n;
    for (size i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, keys + i, sizeof bits);
        bits = bits >> 31 ? bits : ~bits & 0x7fffffff;
        from[i] = (uint64_t)bits << 32 | (uint64_t)i;
    }
    for (int shift = 32; shift < 64; shift += 8) {
        size starts[257] = {0};
        for (size i = 0; i < n; i++) starts[(from[i] >> shift & 255) + 1]++;
        for (int byte = 0; byte < 256; byte++) starts[byte + 1] += starts[byte];
        for (size i = 0; i < n; i++) to[starts[from[i] >> shift & 255]++] = from[i];
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    for (size i = 0; i < n; i++) {
        size row = (size)(from[i] & 0xffffffff), place = i;
        for (; place && from[place - 1] >> 32 == from[i] >> 32; place--) {
            int differ = memcmp(rows + order[place - 1] * dim, rows + row * dim, dim * sizeof *rows);
            if (!differ || i - place > MOST_RIVALS) return 0;
            if (differ < 0) break;
            order[place] = order[place - 1];
        }
        order[place] = row;
    }
    return 1;
}

/* Candidates as unit rows, those closest to the query first, with their cosines to it. Returns 0 for what is
   out of the ordinary: two candidates that are the same, lengths near the ends of the format, numbers that
   are none. */
HOT int line_up(const float *embeddings, size n, size dim, const float *query, float *unit, float *cosines,
                size *order, size *row_of) {
    float length = dot(query, query, dim), shortest = INFINITY, longest = 0;
    uint64_t *room = malloc(2 * n * sizeof *room + (2 * n + dim) * sizeof(float));
    if (!room) return 0;
    float *lengths = (float *)(room + 2 * n), *unordered = lengths + n, *asked = lengths + 2 * n;
    int usual = length > 1e-12f && length < 1e12f;
    length = sqrtf(length);
    for (size j = 0; j < dim; j++) asked[j] = query[j] / length;
    for (size i = 0; i < n && usual; i++) {
        const float *row = embeddings + i * dim;
        float square = 0, product = 0;
#pragma omp simd reduction(+ : square, product)
        for (size j = 0; j < dim; j++) {
            square += row[j] * row[j];
            product += row[j] * asked[j];
        }
        shortest = square < shortest ? square : shortest;
        longest = square > longest ? square : longest;
        usual = square > 1e-12f && square < 1e12f;
        lengths[i] = sqrtf(square);
        unordered[i] = product;
    }
    int scaled = shortest > 1 - 3e-7f && longest < 1 + 3e-7f;
    for (size i = 0; i < n && usual && !scaled; i++) unordered[i] /= lengths[i];
    usual = usual && rank(unordered, embeddings, n, dim, room, order);
    for (size i = 0; i < n && usual; i++) {
        const float *row = embeddings + order[i] * dim;
        float own = lengths[order[i]];
        cosines[i] = unordered[order[i]];
        row_of[order[i]] = i;
        if (scaled) memcpy(unit + i * dim, row, dim * sizeof *row);
        else
            for (size j = 0; j < dim; j++) unit[i * dim + j] = row[j] / own;
    }
    free(room);
    return usual;
}

/* How far apart all pairs are, and each row from the nearest other one; returns the least of it. */
HOT float spread_out(const float *pairs, size n, float *apart, float *nearest) {
    float least = INFINITY;
    for (size i = 0; i < n; i++) {
        float near = INFINITY;
        for (size j = 0; j < i; j++) {
            float far = 0.5f - 0.5f * pairs[i * n + j];
            far = far > 0 ? far : 0;
            apart[j] = far;
            near = far < near ? far : near;
            nearest[j] = far < nearest[j] ? far : nearest[j];
        }
        nearest[i] = near;
        apart += i;
        least = near < least ? near : least;
    }
    return least;
}

/* Where the least of some numbers stands first. */
SAME size least_of(const double *values, size n) {
    double least = INFINITY;
#pragma omp simd reduction(min : least)
    for (size i = 0; i < n; i++) least = values[i] < least ? values[i] : least;
    for (size i = 0; i < n; i++)
        if (values[i] == least) return i;
    return 0;
}

/* Average linkage, or Ward's of squared distances, up to a limit: each join as the two rows that stand for its
   groups, the lower one of which stands for both from then on, and its height; last, the height of the join
   beyond the limit. Returns how many joins there are, or -1. Distances, (n, n), are overwritten: those of a row
   to itself, and to rows that are gone, are infinite. */
HOT size join(double *between, size n, double limit, int ward, size *first, size *second, double *heights) {
    if (n < 1) return -1;
    size *nearest = malloc(n * (sizeof *nearest + 2 * sizeof(double))), joins = 0;
    if (!nearest) return -1;
    double *sizes = (double *)(nearest + n), *reach = sizes + n;
    for (size i = 0; i < n; i++) between[i * n + i] = INFINITY;
    for (size i = 0; i < n; i++) {
        sizes[i] = 1;
        nearest[i] = least_of(between + i * n, n);
        reach[i] = between[i * n + nearest[i]];
    }
    for (;; joins++) {
        size one = least_of(reach, n), other = nearest[one];
        double height = heights[joins] = reach[one];
        if (!(height <= limit) || height == INFINITY) break;
        if (other < one) {
            size swap = one;
            one = other;
            other = swap;
        }
        first[joins] = one;
        second[joins] = other;
        double both = sizes[one] + sizes[other];
        for (size i = 0; i < n; i++) {
            double more = ward ? sizes[i] : 0;
            double share = (sizes[one] + more) / (both + more), rest = (sizes[other] + more) / (both + more);
            double apart = share * between[one * n + i] + rest * between[other * n + i];
            between[one * n + i] = apart - height * more / (both + more);
        }
        for (size i = 0; i < n; i++) {
            between[i * n + one] = between[one * n + i];
            between[i * n + other] = between[other * n + i] = INFINITY;
        }
        sizes[one] = both;
        reach[other] = INFINITY;
        for (size i = 0; i < n; i++) {
            if (reach[i] == INFINITY || (i != one && nearest[i] != one && nearest[i] != other)) continue;
            nearest[i] = least_of(between + i * n, n);
            reach[i] = between[i * n + nearest[i]];
        }
    }
    free(nearest);
    return joins;
}

/* How far each row lies from the centre of the group that its neighbours are of: the mean over rows b of
   (d(i,a) + d(i,b) - d(a,b)) / 2, with a the nearest and b the next ones; and, from found[n] on, the largest.
   Distances to itself are infinite. */
void leaves(const double *between, size n, size neighbours, double *found) {
    for (size i = 0; i < n; i++) {
        const double *row = between + i * n;
        size near[MOST_RIVALS], count = 0;
        for (size j = 0; j < n; j++) {
            if (count == neighbours && !(row[j] < row[near[count - 1]])) continue;
            size place = count < neighbours ? count++ : count - 1;
            for (; place && row[j] < row[near[place - 1]]; place--) near[place] = near[place - 1];
            near[place] = j;
        }
        double total = 0, most = -INFINITY;
        for (size b = 1; b < count; b++) {
            double one = 0.5 * (row[near[0]] + row[near[b]] - between[near[0] * n + near[b]]);
            total += one;
            most = one > most ? one : most;
        }
        found[i] = total / (count - 1);
        found[n + i] = most;
    }
}

/* Few candidates in double precision, as line_up has lined them up; as much of it as was asked for. */
typedef struct {
    const float *embeddings, *query;
    const size *order, *picks;
    size n, dim, judged;
    double sigma, *unit, *likely, *weights, *covered, *row;
} exactly;

HOT static void scale(const float *vector, size dim, double *unit) {
    double square = 0;
#pragma omp simd reduction(+ : square)
    for (size j = 0; j < dim; j++) square += (double)vector[j] * vector[j];
    square = sqrt(square);
    for (size j = 0; j < dim; j++) unit[j] = vector[j] / square;
}

/* The logarithm of the kernel of a unit vector with all candidates. */
HOT static void log_kernel(const exactly *all, const double *unit, double *out) {
    for (size i = 0; i < all->n; i++) {
        const double *other = all->unit + i * all->dim;
        double cosine = 0;
#pragma omp simd reduction(+ : cosine)
        for (size j = 0; j < all->dim; j++) cosine += unit[j] * other[j];
        double far = (cosine < 1 ? 0.5 - 0.5 * cosine : 0) / (1.4142135623730951 * all->sigma);
        out[i] = -far * far;
    }
}

/* Returns 0 if there is no room. */
static int make_exact(exactly *all) {
    size n = all->n, dim = all->dim;
    if (all->unit) return 1;
    all->unit = malloc((n * dim + dim + 4 * n) * sizeof *all->unit);
    if (!all->unit) return 0;
    double *asked = all->unit + n * dim, peak = -INFINITY;
    all->likely = asked + dim;
    all->weights = all->likely + n;
    all->covered = all->weights + n;
    all->row = all->covered + n;
    for (size i = 0; i < n; i++) scale(all->embeddings + all->order[i] * dim, dim, all->unit + i * dim);
    scale(all->query, dim, asked);
    log_kernel(all, asked, all->likely);
    for (size t = 0; t < n; t++) peak = all->likely[t] > peak ? all->likely[t] : peak;
    for (size t = 0; t < n; t++) all->weights[t] = exp(all->likely[t] - peak);
    memset(all->covered, 0, n * sizeof *all->covered);
    return 1;
}

/* What a row adds to what is covered, and what it covers; it counts as covered from then on if it is picked. */
static void weigh(exactly *all, size row, int picked, double *adds, double *covers) {
    log_kernel(all, all->unit + row * all->dim, all->row);
    *adds = *covers = 0;
    for (size t = 0; t < all->n; t++) {
        double stands = exp(all->row[t]), rise = stands - all->covered[t];
        *adds += all->weights[t] * (rise > 0 ? rise : 0);
        *covers += all->weights[t] * stands;
        if (picked && rise > 0) all->covered[t] = stands;
    }
}

static const double EXACT_ROUNDING = 1e-12, LEAST = 1e-290;
static const double VISIBLE = 1.2e-4; /* where rounding may do more than this to a gain, it is worked out again */

/* The most probable of the first rows, by more than double precision may get wrong; else -1. */
static size most_probable(exactly *all, size count) {
    if (!make_exact(all)) return -1;
    size best = 0, close = 0;
    for (size i = 1; i < count; i++) best = all->likely[i] > all->likely[best] ? i : best;
    for (size i = 0; i < count; i++) close += all->likely[i] >= all->likely[best] - EXACT_ROUNDING;
    return close == 1 ? best : -1;
}

/* A referee: the rivals' gains in double precision, as in referee.py. */
static size settle_exactly(void *knows, const size *rivals, size count, size picks) {
    exactly *all = knows;
    if (!make_exact(all)) return -1;
    size best = 0, close = 0;
    double gains[MOST_RIVALS], covers[MOST_RIVALS], added;
    for (; all->judged <= picks; all->judged++) weigh(all, all->picks[all->judged], 1, &added, covers);
    for (size i = 0; i < count; i++) {
        weigh(all, rivals[i], 0, gains + i, covers + i);
        best = gains[i] > gains[best] ? i : best;
    }
    double lead = gains[best] - EXACT_ROUNDING * covers[best];
    for (size i = 0; i < count; i++) close += gains[i] + EXACT_ROUNDING * covers[i] >= lead;
    return close == 1 && lead > LEAST ? rivals[best] : -1;
}

/* The gains of picks in double precision; returns the sum of weights, 0 if there is no room. */
static double gain_exactly(exactly *all, size made, double *gains) {
    double total = 0, covers;
    if (!make_exact(all)) return 0;
    memset(all->covered, 0, all->n * sizeof *all->covered);
    for (size i = 0; i < made; i++) weigh(all, all->picks[i], 1, gains + i, &covers);
    for (size t = 0; t < all->n; t++) total += all->weights[t];
    return total;
}

/* The selection of k of the rows that line_up has lined up, or of some of them, told in candidates, with all
   that explains it. Of picks, results are candidates, similarity, gains as shares, their logarithms, and
   coverage; of candidates, owners and the log-probabilities of their rows. Negative where a pick is unclear. */
size conclude(const float *embeddings, size candidates, size n, size dim, const float *query, float *pairs,
              const float *cosines, const size *order, const size *row_of, double sigma, double rounding,
              double smallest, size k, size *picks, size *owners, double *similarity, double *gains,
              double *log_gains, double *coverage, double *relevance, double *bound) {
    double *likely = malloc(n * (sizeof *likely + sizeof(size) + 3 * sizeof(float))), most[2] = {0, 0};
    if (!likely) return -1;
    size *stand = (size *)(likely + n), made = -1;
    float *weights = (float *)(stand + n), *alone = weights + n, *slack = alone + n;
    for (size i = 0; i < n; i++) {
        double far = 0.5 - 0.5 * (cosines[i] < 1 ? cosines[i] : 1), scaled = far / (1.4142135623730951 * sigma);
        likely[i] = -scaled * scaled;
    }
    exactly all = {.embeddings = embeddings, .query = query, .order = order, .picks = picks, .n = n, .dim = dim,
                   .sigma = sigma};
    size close = 1;
    while (close < n && likely[close] >= likely[0] - rounding) close++;
    picks[0] = close == 1 ? 0 : most_probable(&all, close);
    if (picks[0] >= 0) {
        fill(pairs, n, (float)(-1.0 / (8.0 * sigma * sigma)));
        double total = prepare_32(pairs, n, n, likely, rounding, weights, alone, slack), reached = 0;
        made = answer_32(pairs, n, weights, alone, slack, smallest, 0.0, k, k, picks, gains, stand, most,
                         settle_exactly, &all);
        double sum = total;
        if (made > 0 && rounding > VISIBLE && !(sum = gain_exactly(&all, made, gains))) made = -1;
        for (size i = 0; i < made; i++) {
            gains[i] /= sum;
            reached += gains[i];
            log_gains[i] = log(gains[i]);
            coverage[i] = reached = reached < 1 ? reached : 1;
            similarity[i] = cosines[picks[i]] < 1 ? cosines[picks[i]] : 1;
            picks[i] = order[picks[i]];
        }
        for (size c = 0; c < candidates && made > 0; c++) {
            owners[c] = stand[row_of[c]];
            relevance[c] = (all.unit ? all.likely : likely)[row_of[c]];
        }
        double best = reached + most[1] / total;
        best = most[0] / total < best ? most[0] / total : best;
        best = best < 1 ? best : 1;
        *bound = reached / best < 1 ? reached / best : 1;
    }
    free(all.unit);
    free(likely);
    return made;
}

/* cblas_ssyrk of a BLAS with 64-bit integers. */
typedef void (*syrk)(int, int, int, int64_t, int64_t, float, const float *, int64_t, float, float *, int64_t);
enum { BY_ROWS = 101, LOWER = 122, AS_IS = 111 };

/* Many small pools lined up, with the cosines of their pairs; and how far apart these are, where apart is
   given. What line_up finds out of the ordinary, or holds two candidates within noise, is not usual. */
void line_up_many(syrk product, const float *embeddings, size queries, size n, size dim, const float *asked,
                  float *pairs, float *cosines, size *order, size *row_of, float *apart, float noise,
                  float *nearest, uint8_t *usual) {
    float *unit = malloc(n * dim * sizeof *unit);
    for (size i = 0; i < queries; i++) {
        usual[i] = unit && line_up(embeddings + i * n * dim, n, dim, asked + i * dim, unit, cosines + i * n,
                                   order + i * n, row_of + i * n);
        if (!usual[i]) continue;
        product(BY_ROWS, LOWER, AS_IS, n, dim, 1.0f, unit, dim, 0.0f, pairs + i * n * n, n);
        if (apart)
            usual[i] = spread_out(pairs + i * n * n, n, apart + i * (n * (n - 1) / 2), nearest + i * n) > noise;
    }
    free(unit);
}

/* Selections from those that are usual, and stay so where every pick is clear. */
void conclude_many(const float *embeddings, size queries, size n, size dim, const float *asked, float *pairs,
                   const float *cosines, const size *order, const size *row_of, const double *sigma,
                   const double *rounding, double smallest, size k, size *picks, size *owners,
                   double *similarity, double *gains, double *log_gains, double *coverage, double *relevance,
                   double *bound, uint8_t *usual) {
    for (size i = 0; i < queries; i++) {
        if (!usual[i]) continue;
        usual[i] = conclude(embeddings + i * n * dim, n, n, dim, asked + i * dim, pairs + i * n * n,
                            cosines + i * n, order + i * n, row_of + i * n, sigma[i], rounding[i], smallest, k,
                            picks + i * k, owners + i * n, similarity + i * k, gains + i * k,
                            log_gains + i * k, coverage + i * k, relevance + i * n, bound + i) == k;
    }
}

/* Kernel values of some rows of a panel of cosines, and what they add to the sums of their rows and of their
   columns. Rows that begin on the diagonal, at column "diagonal", count up to it: what stands above becomes 0,
   and what stands on it, which is 1, one half, as if it belonged to both sides. */
HOT void add_strip(const float *cosines, size wide, size rows, size columns, size diagonal, float scale,
                   const float *row_weights, const float *column_weights, double *row_sums,
                   double *column_sums, float *strip, float *room) {
    memset(room, 0, columns * sizeof *room);
    for (size i = 0; i < rows; i++) {
        float *row = strip + i * columns, weight = row_weights[i], total = 0;
        size full = diagonal < 0 ? columns : diagonal + i;
        gaussian_row(cosines + i * wide, row, full, scale);
#pragma omp simd reduction(+ : total)
        for (size j = 0; j < full; j++) {
            total += row[j] * column_weights[j];
            room[j] += row[j] * weight;
        }
        row_sums[i] += total;
        if (diagonal >= 0) {
            row_sums[i] += weight;
            memset(row + full, 0, (columns - full) * sizeof *row);
            row[full] = 0.5f;
        }
    }
    for (size j = 0; j < columns; j++) column_sums[j] += room[j];
}

enum { LETTER = 1, UNSPACED = 2, CAPITAL = 3, DIGIT = 4, OPENING = 5, ALWAYS = 2, CHARACTERS = 1 << 16, LONGEST = 64 };
static const uint64_t AGAIN = 0x9E3779B97F4A7C15u;

/* The characters of texts, and where each text ends. */
typedef struct {
    const uint32_t *codes;
    const size *ends;
    const uint16_t *small;
    const uint8_t *kinds;
    const uint64_t *multipliers;
} writing;

SAME uint8_t plain_kind(const writing *all, size at) {
    return all->codes[at] < CHARACTERS ? all->kinds[all->codes[at]] : 0;
}

/* What stands between digits belongs to their number: 0.5, 4,000, 2024-05-03. */
SAME int joins_digits(const writing *all, size at, size end) {
    uint32_t code = all->codes[at];
    return (code == '.' || code == ',' || code == ':' || code == '/' || code == '-') && at && at + 1 < end &&
           plain_kind(all, at - 1) == DIGIT && plain_kind(all, at + 1) == DIGIT;
}

SAME uint8_t kind_of(const writing *all, size at, size end) {
    if (at >= end) return 0;
    uint8_t kind = plain_kind(all, at);
    return kind ? kind : joins_digits(all, at, end) ? DIGIT : 0;
}

/* Signs that may stand before a word inside a sentence, and what is between words. */
SAME int is_sign(uint32_t code) {
    return code == '(' || code == '[' || code == '{' || code == '-' || code == '*' || code == '/' || code == '"' ||
           code == 0x27 || code == 0x201C || code == 0x2018 || code == 0xAB;
}

SAME int is_space(uint32_t code) { return code == ' ' || code == '\n' || code == '\t' || code == 0xA0; }

/* Whether a word of a text that begins and ends somewhere follows a word or a comma, as wording.py has it. */
SAME int follows(const writing *all, size at, size begin, size end) {
    size here = at;
    for (int more = 0; more < 2 && here > begin && is_sign(all->codes[here - 1]); more++) here--;
    if (here < at && here > begin && kind_of(all, here - 1, end)) return 1;
    size word = here;
    for (int more = 0; more < 2 && word > begin && is_space(all->codes[word - 1]); more++) word--;
    if (word == here || word == begin) return 0;
    if (here - word == 2 && all->codes[word] == '\n' && all->codes[word + 1] == '\n') return 0;
    return kind_of(all, word - 1, end) || all->codes[word - 1] == ',';
}

/* The next word that starts from *at on, as a number, as wording.py has it; 0 where there is none. *at goes to
   where the search goes on, *first is the kind of its first character, or of a digit or a capital further on; a
   capital that may be one for beginning a sentence is OPENING. */
SAME uint64_t next_word(const writing *all, size *at, size begin, size end, uint8_t *first) {
    while (*at < end) {
        size here = *at;
        uint8_t kind = kind_of(all, here, end), next = kind;
        uint64_t word = 0;
        int mixed = 0;
        if (kind && kind != UNSPACED) {
            for (size place = 0; next && next != UNSPACED; place++) {
                word += all->small[all->codes[here]] * all->multipliers[place % LONGEST];
                if (next == DIGIT) kind = DIGIT;
                mixed |= place && next == CAPITAL;
                next = kind_of(all, ++here, end);
            }
        } else if (++here, kind == UNSPACED && kind_of(all, here, end) == UNSPACED) {
            word = all->small[all->codes[here - 1]] * all->multipliers[0];
            word += all->small[all->codes[here]] * all->multipliers[1];
        }
        *first = kind == DIGIT ? DIGIT : mixed ? CAPITAL : kind;
        if (kind == CAPITAL && !mixed && !follows(all, *at, begin, end)) *first = OPENING;
        *at = here;
        if (word) return word;
    }
    return 0;
}

/* The words of texts: a table that numbers them, and in which text each was seen last and how often. */
typedef struct {
    uint64_t *keys;
    uint32_t *numbers, *seen_in, *times;
    size mask, known;
} dictionary;

SAME size look_up(dictionary *all, uint64_t word) {
    word += !word;
    size slot = (size)(word >> 20) & all->mask;
    while (all->keys[slot] && all->keys[slot] != word) slot = (slot + 1) & all->mask;
    if (!all->keys[slot]) {
        all->keys[slot] = word;
        all->numbers[slot] = (uint32_t)all->known++;
        all->seen_in[slot] = UINT32_MAX;
    }
    return slot;
}

/* Numbers words in the order in which they turn up, four times as large, and one more for names, two more for what
   may be one; each text's from its start on. A number that a text has again is another word. Sets ``named`` for
   words that are names anywhere. */
static void number_words(const writing *all, size n, dictionary *known, uint32_t *words, size *starts,
                         uint8_t *named) {
    size made = 0, at = 0;
    for (size text = 0; text < n; text++) {
        uint8_t kind = 0;
        starts[text] = made;
        size begin = text ? all->ends[text - 1] : 0;
        for (uint64_t word; (word = next_word(all, &at, begin, all->ends[text], &kind));) {
            size slot = look_up(known, word);
            if (known->seen_in[slot] != text) {
                known->seen_in[slot] = (uint32_t)text;
                known->times[slot] = 0;
            } else if (kind == DIGIT) {
                slot = look_up(known, word + ++known->times[slot] * AGAIN);
            }
            uint32_t number = known->numbers[slot];
            named[number] |= kind == CAPITAL;
            words[made++] = number << 2 | (kind == OPENING ? 2 : kind >= CAPITAL);
        }
    }
    starts[n] = made;
}

/* For all pairs of texts, whether one repeats the other, and whether each names what the other does not have; 0
   where there is no memory. */
HOT int compare_texts(const uint32_t *codes, const size *ends, size n, const uint16_t *small, const uint8_t *kinds,
                      const uint64_t *multipliers, const uint64_t *telling, size tellings, double shared,
                      double as_long, uint8_t *copies, uint8_t *apart) {
    writing all = {codes, ends, small, kinds, multipliers};
    size count = n ? ends[n - 1] : 0, total = tellings, slots = 64;
    uint8_t before = 0;
    for (size at = 0; at < count; at++) {
        uint8_t kind = kind_of(&all, at, count);
        total += (kind != 0) & ((before == 0) | (before == UNSPACED) | (kind == UNSPACED));
        before = kind;
    }
    while (slots < 2 * total) slots *= 2;
    uint64_t *keys = calloc(slots, sizeof *keys);
    uint32_t *numbers = malloc(3 * slots * sizeof *numbers), *words = malloc((total + 1) * sizeof *words);
    uint8_t *named = calloc(slots, sizeof *named);
    dictionary table = {keys, numbers, numbers + slots, numbers + 2 * slots, slots - 1, 0};
    size *starts = malloc((2 * n + 1) * sizeof *starts), *sizes = starts + n + 1;
    uint64_t *has = 0;
    int done = 0;
    if (!keys || !numbers || !words || !named || !starts) goto done;
    for (size i = 0; i < tellings; i++) named[table.numbers[look_up(&table, telling[i])]] = ALWAYS;
    number_words(&all, n, &table, words, starts, named);
    size wide = (table.known + 63) / 64;
    has = calloc(3 * n * wide + 1, sizeof *has);
    if (!has) goto done;
    for (size i = 0; i < n; i++) {
        uint64_t *mine = has + 3 * i * wide, *names = mine + wide, *decide = names + wide;
        for (size at = starts[i]; at < starts[i + 1]; at++) {
            uint32_t word = words[at] >> 2;
            uint64_t bit = (uint64_t)1 << (word & 63);
            mine[word >> 6] |= bit;
            int is_name = words[at] & 1 || (words[at] & 2 && named[word] & ~ALWAYS);
            if (is_name) names[word >> 6] |= bit;
            if (is_name || named[word] & ALWAYS) decide[word >> 6] |= bit;
        }
        sizes[i] = 0;
        for (size word = 0; word < wide; word++) sizes[i] += __builtin_popcountll(mine[word]);
    }
    for (size i = 0; i < n; i++) {
        const uint64_t *mine = has + 3 * i * wide, *names = mine + wide, *decide = names + wide;
        copies[i * n + i] = 1;
        apart[i * n + i] = 0;
        for (size j = 0; j < i; j++) {
            const uint64_t *other = has + 3 * j * wide, *others = other + wide, *too = others + wide;
            size few = sizes[i] < sizes[j] ? sizes[i] : sizes[j], both = 0;
            int more = 0, less = 0;
            for (size word = 0; word < wide && !(more && less); word++) {
                more |= (names[word] & ~other[word]) != 0;
                less |= (others[word] & ~mine[word]) != 0;
            }
            apart[i * n + j] = apart[j * n + i] = more && less;
            if (!(more && less) && few && few >= as_long * (sizes[i] + sizes[j] - few))
                for (size word = 0; word < wide; word++) both += __builtin_popcountll(mine[word] & other[word]);
            int first = !more && both >= shared * sizes[i], second = !less && both >= shared * sizes[j];
            for (size word = 0; word < wide && both && (first || second); word++) {
                first = first && !(decide[word] & ~other[word]);
                second = second && !(too[word] & ~mine[word]);
            }
            copies[i * n + j] = copies[j * n + i] = both && (first || second);
        }
    }
    done = 1;
done:
    free(has);
    free(starts);
    free(named);
    free(words);
    free(numbers);
    free(keys);
    return done;
}

#else

/* Weights, what each row covers alone and what rounding may do to it; returns the sum of weights. */
HOT double NAME(prepare)(const REAL *kernel, size n, size targets, const double *log_weights, double rounding,
                         REAL *weights, REAL *alone, REAL *slack) {
    double peak = -INFINITY, total = 0.0;
    for (size t = 0; t < targets; t++) peak = log_weights[t] > peak ? log_weights[t] : peak;
    for (size t = 0; t < targets; t++) {
        weights[t] = (REAL)exp(log_weights[t] - peak);
        total += weights[t];
    }
    for (size i = 0; i < n; i++) {
        REAL covers = 0;
        const REAL *row = kernel + i * targets;
#pragma omp simd reduction(+ : covers)
        for (size t = 0; t < targets; t++) covers += row[t] * weights[t];
        alone[i] = covers;
        slack[i] = covers * (REAL)rounding;
    }
    return total;
}

/* The sum over targets t of w_t max(0, K_t - covered_t). */
SAME REAL NAME(gain)(const REAL *row, const REAL *weights, const REAL *covered, size targets) {
    REAL total = 0;
#pragma omp simd reduction(+ : total)
    for (size t = 0; t < targets; t++) {
        REAL rise = row[t] - covered[t];
        total += weights[t] * (rise > 0 ? rise : 0);
    }
    return total;
}

/* What rounding may do to a gain where much is covered in full: see _slack in dense.py. */
SAME REAL NAME(doubt)(const REAL *row, const REAL *weights, const REAL *covered, size targets, REAL rounding) {
    REAL left = 0, as_well = 0;
#pragma omp simd reduction(+ : left, as_well)
    for (size t = 0; t < targets; t++) {
        REAL open = covered[t] >= 1 ? 0 : weights[t];
        left += row[t] * open;
        as_well += row[t] >= 1 - 4 * EPS ? weights[t] - open : 0;
    }
    return left * rounding + as_well * EPS;
}

/* The bounds of some rows as tight as they can be. */
HOT void NAME(refresh)(const REAL *kernel, size targets, const REAL *weights, const REAL *covered, REAL *bounds,
                       const REAL *slack, const size *rows, size count) {
    for (size i = 0; i < count; i++) {
        size row = rows[i];
        REAL most = NAME(gain)(kernel + row * targets, weights, covered, targets) + slack[row];
        bounds[row] = most < bounds[row] ? most : bounds[row];
    }
}

SAME REAL NAME(top)(const REAL *bounds, size n, size block) {
    size end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
    REAL highest = bounds[block * BLOCK];
    for (size i = block * BLOCK + 1; i < end; i++) highest = bounds[i] > highest ? bounds[i] : highest;
    return highest;
}

/* The first row with the largest bound, by the largest of each block. */
SAME size NAME(highest)(const REAL *bounds, size n, const REAL *tops, size blocks) {
    size block = 0;
    for (size other = 1; other < blocks; other++) block = tops[other] > tops[block] ? other : block;
    size first = block * BLOCK, end = first + BLOCK < n ? first + BLOCK : n;
    for (size row = first; row < end; row++)
        if (bounds[row] == tops[block]) return row;
    return first;
}

/* The next picks and their gains, with covered and bounds kept; -m - 1 if unclear after m. */
HOT size NAME(walk)(const REAL *kernel, size n, size targets, const REAL *weights, REAL *covered, REAL *bounds,
                    const REAL *slack, double smallest, double stop_below, size count, size *rows,
                    double *gains, referee settle, void *knows) {
    size blocks = (n + BLOCK - 1) / BLOCK, step = 0, widest = 0;
    REAL *tops = malloc(blocks * sizeof *tops), *now = malloc(n * sizeof *now);
    size *checked = malloc(n * sizeof *checked);
    size rivals[MOST_RIVALS];
    REAL rounding = -1;
    int unclear = !(tops && now && checked);
    if (unclear) goto done;
    for (size block = 0; block < blocks; block++) tops[block] = NAME(top)(bounds, n, block);
    for (size i = 0; i < n; i++) checked[i] = -1;
    for (; step < count; step++) {
        size best;
        while (checked[best = NAME(highest)(bounds, n, tops, blocks)] != step) {
            if (bounds[best] == -INFINITY) {
                unclear = 1;
                goto done;
            }
            now[best] = NAME(gain)(kernel + best * targets, weights, covered, targets);
            REAL most = now[best] + slack[best];
            bounds[best] = most < bounds[best] ? most : bounds[best];
            checked[best] = step;
            tops[best / BLOCK] = NAME(top)(bounds, n, best / BLOCK);
        }
        double found = now[best];
        if (found < stop_below) goto done;
        if (found < smallest) {
            unclear = 1;
            goto done;
        }
        REAL lead = now[best] - slack[best];
        size close = 0;
        int exact = 0;
        for (size block = 0; block < blocks; block++) {
            if (tops[block] < lead) continue;
            size end = (block + 1) * BLOCK < n ? (block + 1) * BLOCK : n;
            for (size i = block * BLOCK; i < end; i++) {
                if (i == best || bounds[i] < lead) continue;
                const REAL *row = kernel + i * targets;
                if (checked[i] != step) {
                    now[i] = NAME(gain)(row, weights, covered, targets);
                    REAL most = now[i] + slack[i];
                    bounds[i] = most < bounds[i] ? most : bounds[i];
                    checked[i] = step;
                }
                if (bounds[i] < lead) continue;
                if (!exact) {
                    if (rounding < 0) {
                        for (size j = 1; j < n; j++) widest = slack[j] > slack[widest] ? j : widest;
                        REAL covers = 0;
                        for (size t = 0; t < targets; t++) covers += kernel[widest * targets + t] * weights[t];
                        rounding = slack[widest] / covers;
                    }
                    REAL mine = NAME(doubt)(kernel + best * targets, weights, covered, targets, rounding);
                    REAL tight = now[best] - mine;
                    lead = tight > lead ? tight : lead;
                    exact = 1;
                    if (bounds[i] < lead) continue;
                }
                REAL most = now[i] + NAME(doubt)(row, weights, covered, targets, rounding);
                bounds[i] = most < bounds[i] ? most : bounds[i];
                if (bounds[i] < lead) continue;
                if (!settle || close == MOST_RIVALS - 1) {
                    unclear = 1;
                    goto done;
                }
                rivals[close++] = i;
            }
            tops[block] = NAME(top)(bounds, n, block);
        }
        if (close) {
            rivals[close++] = best;
            best = settle(knows, rivals, close, step);
        }
        if (lead < smallest || best < 0) {
            unclear = 1;
            goto done;
        }
        rows[step] = best;
        gains[step] = now[best];
        bounds[best] = -INFINITY;
        tops[best / BLOCK] = NAME(top)(bounds, n, best / BLOCK);
        const REAL *row = kernel + best * targets;
        for (size t = 0; t < targets; t++) covered[t] = row[t] > covered[t] ? row[t] : covered[t];
    }
done:
    free(tops);
    free(now);
    free(checked);
    return unclear ? -step - 1 : step;
}

/* The sum of the count largest positive values; takes them out. */
SAME double NAME(largest)(REAL *values, size n, REAL *tops, size count) {
    size blocks = (n + BLOCK - 1) / BLOCK;
    double total = 0;
    for (size block = 0; block < blocks; block++) tops[block] = NAME(top)(values, n, block);
    for (; count > 0; count--) {
        size row = NAME(highest)(values, n, tops, blocks);
        if (values[row] <= 0) break;
        total += values[row];
        values[row] = -INFINITY;
        tops[row / BLOCK] = NAME(top)(values, n, row / BLOCK);
    }
    return total;
}

/* The whole walk from the pick rows[0] on, among targets that are the rows, and what explains it: owners are
   the picks that stand for each target best and by half, or -1; most, the sums of the count largest bounds
   before the first and after the last pick. Negative where a pick is unclear. */
HOT size NAME(answer)(const REAL *kernel, size n, const REAL *weights, const REAL *alone, const REAL *slack,
                      double smallest, double stop_share, size count, size picks, size *rows, double *gains,
                      size *owners, double *most, referee settle, void *knows) {
    size first = rows[0], made = -1, blocks = (n + BLOCK - 1) / BLOCK;
    if (alone[first] - slack[first] < smallest) return -1;
    REAL *room = malloc((3 * n + blocks) * sizeof *room);
    if (!room) return -1;
    REAL *covered = room, *bounds = room + n, *spare = room + 2 * n, *tops = room + 3 * n;
    memcpy(covered, kernel + first * n, n * sizeof *covered);
    for (size i = 0; i < n; i++) bounds[i] = spare[i] = alone[i] + slack[i];
    most[0] = NAME(largest)(spare, n, tops, count);
    bounds[first] = -INFINITY;
    gains[0] = alone[first];
    double stop_below = stop_share > 0 ? stop_share * gains[0] : -INFINITY;
    made = NAME(walk)(kernel, n, n, weights, covered, bounds, slack, smallest, stop_below, picks - 1, rows + 1,
                      gains + 1, settle, knows);
    if (made >= 0) {
        made++;
        memcpy(spare, bounds, n * sizeof *spare);
        for (size block = 0; block < blocks; block++) tops[block] = NAME(top)(spare, n, block);
        for (size i = 0; i < 2 * count && i < n - made; i++) {
            size row = NAME(highest)(spare, n, tops, blocks);
            REAL now = NAME(gain)(kernel + row * n, weights, covered, n) + slack[row];
            bounds[row] = now < bounds[row] ? now : bounds[row];
            spare[row] = -INFINITY;
            tops[row / BLOCK] = NAME(top)(spare, n, row / BLOCK);
        }
        most[1] = NAME(largest)(bounds, n, tops, count);
        memcpy(spare, kernel + first * n, n * sizeof *spare);
        for (size t = 0; t < n; t++) owners[t] = 0;
        for (size pick = 1; pick < made; pick++) {
            const REAL *row = kernel + rows[pick] * n;
            for (size t = 0; t < n; t++) {
                if (row[t] > spare[t]) {
                    spare[t] = row[t];
                    owners[t] = pick;
                }
            }
        }
        for (size t = 0; t < n; t++) owners[t] = spare[t] < (REAL)0.5 ? -1 : owners[t];
    }
    free(room);
    return made;
}

#endif
