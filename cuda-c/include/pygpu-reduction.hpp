// The kernel of one stage of a reduction around a program's expressions. Each block has one result. The text before
// this one defines BLOCK_SIZE, and declares out_type and pygpu_values. Pieces of the program take the place of these
// words:
//
//   PYGPU_REDUCTION        the name of the kernel
//   PYGPU_PARAMETERS       its parameters after the results
//   PYGPU_ARRAYS           the declarations of strided arrays
//   PYGPU_NEUTRAL          the neutral element
//   PYGPU_MAP(value)       declares a value: the mapped element i
//   PYGPU_REDUCE(to, of)   combines a value with another one

// Threads first combine elements a whole grid apart, four at a time so that their loads overlap. The shared memory is
// untyped, so that no constructor runs there.
extern "C" __global__ void PYGPU_REDUCTION(out_type *out, PYGPU_PARAMETERS)
{
    __shared__ pygpu_values pygpu_shared;
    out_type *sdata = (out_type *)pygpu_shared.bytes;
    PYGPU_ARRAYS
    const unsigned tid = threadIdx.x;
    const size_t pygpu_step = (size_t)gridDim.x * BLOCK_SIZE;
    out_type acc = PYGPU_NEUTRAL;
    size_t i, pygpu_at = (size_t)blockIdx.x * BLOCK_SIZE + tid;
    for (; pygpu_at + 3 * pygpu_step < n; pygpu_at += 4 * pygpu_step) {
        i = pygpu_at;
        PYGPU_MAP(pygpu_0);
        i = pygpu_at + pygpu_step;
        PYGPU_MAP(pygpu_1);
        i = pygpu_at + 2 * pygpu_step;
        PYGPU_MAP(pygpu_2);
        i = pygpu_at + 3 * pygpu_step;
        PYGPU_MAP(pygpu_3);
        PYGPU_REDUCE(acc, pygpu_0);
        PYGPU_REDUCE(acc, pygpu_1);
        PYGPU_REDUCE(acc, pygpu_2);
        PYGPU_REDUCE(acc, pygpu_3);
    }
    for (i = pygpu_at; i < n; i += pygpu_step) {
        PYGPU_MAP(pygpu_0);
        PYGPU_REDUCE(acc, pygpu_0);
    }
    sdata[tid] = acc;
    __syncthreads();
    unsigned pygpu_half = 1;
    while (2 * pygpu_half < BLOCK_SIZE) {
        pygpu_half *= 2;
    }
    for (; pygpu_half > 0; pygpu_half /= 2) {
        if (tid < pygpu_half && tid + pygpu_half < BLOCK_SIZE) {
            PYGPU_REDUCE(sdata[tid], sdata[tid + pygpu_half]);
        }
        __syncthreads();
    }
    if (tid == 0) {
        out[blockIdx.x] = sdata[0];
    }
}
