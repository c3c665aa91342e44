// The kernels of a scan around a program's expression. The text before this one declares
//
//   pygpu_scan_type    the type of the elements
//   pygpu_scan_apply   combines two of them
//   pygpu_scan_start   returns the first state of an exclusive scan
//
// and defines PYGPU_EXCLUSIVE, PYGPU_PLAIN (1 if elements are numbers in C), PYGPU_ON_HOST, PYGPU_THREADS (of a
// block), PYGPU_ELEMENTS (of a part), and PYGPU_PARTS (that a thread scans in turns, so that none waits for itself).
// For a GPU it has the core's functions for scans. The name of the program's scan takes the place of pygpu_scan.

// The widest word that the alignment of a type allows.
template <unsigned ALIGNMENT> struct pygpu_word { typedef unsigned long long type; };
template <> struct pygpu_word<1> { typedef unsigned char type; };
template <> struct pygpu_word<2> { typedef unsigned short type; };
template <> struct pygpu_word<4> { typedef unsigned type; };

#if PYGPU_PLAIN
typedef pygpu_scan_type pygpu_scan_value;
#else
// A structure with constructors is kept as words, since none can run in shared memory.
typedef pygpu_word<alignof(pygpu_scan_type)>::type pygpu_scan_word;
struct pygpu_scan_value {
    alignas(pygpu_scan_type) pygpu_scan_word words[sizeof(pygpu_scan_type) / sizeof(pygpu_scan_word)];
};
#endif

struct pygpu_scan_operator {
    typedef pygpu_scan_value value;
    static __device__ value of(const pygpu_scan_type &x) { return *(const value *)&x; }
    static __device__ value start()
    {
#if PYGPU_EXCLUSIVE
        return of(pygpu_scan_start());
#else
        return value();
#endif
    }
    static __device__ value combine(value a, value b)
    {
        return of(pygpu_scan_apply(*(const pygpu_scan_type *)&a, *(const pygpu_scan_type *)&b));
    }
};

#if PYGPU_ON_HOST

// The host's blocks are one thread. The kernels compute the totals of all parts except the last, at the next part's
// place; the state that each part begins with, which a scan of one part does not have; and the scan.

template <unsigned COUNT>
static inline void pygpu_scan_total(
    pygpu_scan_value *states, const char *in, long long stride, unsigned long long part)
{
    const char *const first = in + (long long)(part * PYGPU_ELEMENTS) * stride;
    pygpu_scan_value own[COUNT];
    for (unsigned k = 0; k < COUNT; ++k) {
        own[k] = *(const pygpu_scan_value *)(first + (long long)k * PYGPU_ELEMENTS * stride);
    }
    for (long long j = 1; j < PYGPU_ELEMENTS; ++j) {
        for (unsigned k = 0; k < COUNT; ++k) {
            const char *const at = first + ((long long)k * PYGPU_ELEMENTS + j) * stride;
            own[k] = pygpu_scan_operator::combine(own[k], *(const pygpu_scan_value *)at);
        }
    }
    for (unsigned k = 0; k < COUNT; ++k) {
        states[part + k + 1] = own[k];
    }
}

extern "C" __global__ void pygpu_scan_totals(
    char *states, const char *in, long long stride, unsigned long long parts)
{
    unsigned long long part = (unsigned long long)blockIdx.x * PYGPU_PARTS;
    if (part + PYGPU_PARTS < parts) {
        pygpu_scan_total<PYGPU_PARTS>((pygpu_scan_value *)states, in, stride, part);
        return;
    }
    for (; part + 1 < parts; ++part) {
        pygpu_scan_total<1>((pygpu_scan_value *)states, in, stride, part);
    }
}

extern "C" __global__ void pygpu_scan_states(char *states, unsigned long long parts)
{
    pygpu_scan_value *const all = (pygpu_scan_value *)states;
    if (PYGPU_EXCLUSIVE) {
        all[0] = pygpu_scan_operator::start();
    }
    for (unsigned long long part = PYGPU_EXCLUSIVE ? 1 : 2; part < parts; ++part) {
        all[part] = pygpu_scan_operator::combine(all[part - 1], all[part]);
    }
}

template <unsigned COUNT>
static inline void pygpu_scan_part(
    char *out, long long out_stride, const char *in, long long in_stride, long long length,
    const pygpu_scan_value *states, unsigned long long part)
{
    out += (long long)(part * PYGPU_ELEMENTS) * out_stride;
    in += (long long)(part * PYGPU_ELEMENTS) * in_stride;
    pygpu_scan_value own[COUNT];
    for (unsigned k = 0; k < COUNT; ++k) {
        const long long at = (long long)k * PYGPU_ELEMENTS;
        const pygpu_scan_value value = *(const pygpu_scan_value *)(in + at * in_stride);
        pygpu_scan_value *const to = (pygpu_scan_value *)(out + at * out_stride);
        if (PYGPU_EXCLUSIVE) {
            *to = own[k] = part + k ? states[part + k] : pygpu_scan_operator::start();
            own[k] = pygpu_scan_operator::combine(own[k], value);
        } else {
            *to = own[k] = part + k ? pygpu_scan_operator::combine(states[part + k], value) : value;
        }
    }
    for (long long j = 1; j < length; ++j) {
        for (unsigned k = 0; k < COUNT; ++k) {
            const long long at = (long long)k * PYGPU_ELEMENTS + j;
            const pygpu_scan_value value = *(const pygpu_scan_value *)(in + at * in_stride);
            pygpu_scan_value *const to = (pygpu_scan_value *)(out + at * out_stride);
            if (PYGPU_EXCLUSIVE) {
                *to = own[k];
                own[k] = pygpu_scan_operator::combine(own[k], value);
            } else {
                *to = own[k] = pygpu_scan_operator::combine(own[k], value);
            }
        }
    }
}

extern "C" __global__ void pygpu_scan_parts(
    char *out, long long out_stride, const char *in, long long in_stride,
    unsigned long long length, unsigned long long parts, const char *states)
{
    const pygpu_scan_value *const all = (const pygpu_scan_value *)states;
    unsigned long long part = (unsigned long long)blockIdx.x * PYGPU_PARTS;
    if (part + PYGPU_PARTS < parts) {
        pygpu_scan_part<PYGPU_PARTS>(out, out_stride, in, in_stride, PYGPU_ELEMENTS, all, part);
        return;
    }
    for (unsigned k = 0; k < PYGPU_PARTS && part < parts; ++k, ++part) {
        const unsigned long long rest = length - part * PYGPU_ELEMENTS;
        pygpu_scan_part<1>(
            out, out_stride, in, in_stride, rest < PYGPU_ELEMENTS ? rest : PYGPU_ELEMENTS, all, part);
    }
}

#else

// A scan by one block; clearing the state of a scan by many; and that scan.

struct pygpu_scan_read {
    const char *in;
    long long stride;
    __device__ pygpu_scan_value operator()(unsigned long long i) const
    {
        return *(const pygpu_scan_value *)(in + (long long)i * stride);
    }
    __device__ bool packs() const
    {
        return stride == sizeof(pygpu_scan_value) &&
               (unsigned long long)in %
                       (gpuarray::Tile<pygpu_scan_value>::width * sizeof(pygpu_scan_value)) == 0;
    }
    template <unsigned COUNT>
    __device__ void pack(unsigned i, pygpu_scan_value *own) const
    {
        gpuarray::Neighbours<pygpu_scan_value, COUNT>::get(own, (const pygpu_scan_value *)in + i);
    }
    __device__ void advance(long long by) { in += by * stride; }
    __device__ void prefetch(long long first, unsigned count) const
    {
        if (stride == sizeof(pygpu_scan_value)) {
            gpuarray::prefetch(in + first * stride, count * (unsigned)stride);
        }
    }
};

struct pygpu_scan_write {
    char *out;
    long long stride;
    __device__ void operator()(unsigned long long i, const pygpu_scan_value &value) const
    {
        *(pygpu_scan_value *)(out + (long long)i * stride) = value;
    }
    __device__ bool packs() const
    {
        return stride == sizeof(pygpu_scan_value) &&
               (unsigned long long)out %
                       (gpuarray::Tile<pygpu_scan_value>::width * sizeof(pygpu_scan_value)) == 0;
    }
    template <unsigned COUNT>
    __device__ void pack(unsigned i, const pygpu_scan_value *own) const
    {
        gpuarray::Neighbours<pygpu_scan_value, COUNT>::put((pygpu_scan_value *)out + i, own);
    }
    __device__ void advance(long long by) { out += by * stride; }
};

struct pygpu_scan_rows {
    typedef pygpu_scan_read Read;
    typedef pygpu_scan_write Write;
    Read read;
    Write write;
    __device__ void at(unsigned long long, Read *to_read, Write *to_write) const
    {
        *to_read = read;
        *to_write = write;
    }
};

extern "C" __global__ void __launch_bounds__(PYGPU_THREADS) pygpu_scan_block(
    char *out, long long out_stride, const char *in, long long in_stride, unsigned length)
{
    const pygpu_scan_read read = {in, in_stride};
    const pygpu_scan_write write = {out, out_stride};
    gpuarray::scan_range<pygpu_scan_operator, PYGPU_EXCLUSIVE, unsigned>(
        read, write, length, pygpu_scan_operator::start());
}

extern "C" __global__ void __launch_bounds__(PYGPU_THREADS) pygpu_scan_clear(
    unsigned long long *state, unsigned long long words)
{
    gpuarray::clear_state(state, words);
}

extern "C" __global__ void GPUARRAY_BOUNDS(gpuarray::Tile<pygpu_scan_value>::blocks) pygpu_scan_tiles(
    char *out, long long out_stride, const char *in, long long in_stride,
    unsigned long long length, unsigned long long tiles, unsigned long long *state)
{
    const pygpu_scan_rows rows = {{in, in_stride}, {out, out_stride}};
    gpuarray::scan_tiles<pygpu_scan_operator, PYGPU_EXCLUSIVE>(
        rows, length, 1, tiles, state, pygpu_scan_operator::start());
}

#endif
