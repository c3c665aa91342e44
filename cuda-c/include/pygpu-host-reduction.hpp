// The kernel of one stage of a reduction on the host, where a block is one thread. pygpu-reduction.hpp, the kernel for
// threads, describes the words that pieces of the program take the place of.

// A block combines a part of the elements, in independent values: a power of two of them.
extern "C" __global__ void PYGPU_REDUCTION(out_type *out, PYGPU_PARAMETERS)
{
    PYGPU_ARRAYS
    const size_t pygpu_most = n / gridDim.x, pygpu_more = n % gridDim.x, pygpu_block = blockIdx.x;
    size_t pygpu_at = pygpu_block * pygpu_most + (pygpu_block < pygpu_more ? pygpu_block : pygpu_more);
    const size_t pygpu_end = pygpu_at + pygpu_most + (pygpu_block < pygpu_more);
    out_type acc = PYGPU_NEUTRAL;
    if (pygpu_end - pygpu_at >= 16) {
        out_type pygpu_lanes[16] = {acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc, acc};
        for (; pygpu_end - pygpu_at >= 16; pygpu_at += 16) {
            for (int pygpu_k = 0; pygpu_k < 16; ++pygpu_k) {
                const size_t i = pygpu_at + pygpu_k;
                PYGPU_MAP(pygpu_value);
                PYGPU_REDUCE(pygpu_lanes[pygpu_k], pygpu_value);
            }
        }
        for (int pygpu_half = 8; pygpu_half > 0; pygpu_half /= 2) {
            for (int pygpu_k = 0; pygpu_k < pygpu_half; ++pygpu_k) {
                PYGPU_REDUCE(pygpu_lanes[pygpu_k], pygpu_lanes[pygpu_k + pygpu_half]);
            }
        }
        PYGPU_REDUCE(acc, pygpu_lanes[0]);
    }
    for (size_t i = pygpu_at; i < pygpu_end; ++i) {
        PYGPU_MAP(pygpu_value);
        PYGPU_REDUCE(acc, pygpu_value);
    }
    out[blockIdx.x] = acc;
}
