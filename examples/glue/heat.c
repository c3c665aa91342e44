/* A small library of the kind that exists already: it knows nothing of arrays, devices or
   streams, only of two buffers and their size. */

#include <stddef.h>

/* One explicit step of the heat equation on a plate of `height` rows of `width` cells: every
   inner cell moves by `k` times the sum of the differences to its four neighbours. The cells of
   the edge keep their temperature. `in` and `out` must not overlap. */
void heat_step(const float *restrict in, float *restrict out, int width, int height, float k)
{
    for (int y = 0; y < height; ++y) {
        const float *row = in + (ptrdiff_t)y * width;
        float *to = out + (ptrdiff_t)y * width;
        if (y == 0 || y == height - 1) {
            for (int x = 0; x < width; ++x)
                to[x] = row[x];
            continue;
        }
        to[0] = row[0];
        for (int x = 1; x < width - 1; ++x)
            to[x] = row[x] + k * (row[x - 1] + row[x + 1] + row[x - width] + row[x + width] - 4.0f * row[x]);
        to[width - 1] = row[width - 1];
    }
}
