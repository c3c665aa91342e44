// What generated kernels of elements are made of.

// The elements of a thread: with a stride on a GPU, whose threads access neighbours together; neighbours on a
// processor, for its vector units.
#ifdef __GPUARRAY_HOST__
#define PYGPU_PART(count) \
    const size_t pygpu_part = ((count) + total_threads - 1) / total_threads; \
    const size_t pygpu_begin = (cta_start + tid) * pygpu_part; \
    const size_t pygpu_first = pygpu_begin < (count) ? pygpu_begin : (count); \
    const size_t pygpu_left = (count) - pygpu_first; \
    const size_t pygpu_end = pygpu_first + (pygpu_left < pygpu_part ? pygpu_left : pygpu_part); \
    const size_t pygpu_step = 1
#else
#define PYGPU_PART(count) \
    const size_t pygpu_first = cta_start + tid, pygpu_end = (count), pygpu_step = total_threads
#endif

namespace pygpu {
// The running index in a loop over packs: of a type without operations.
struct NoIndex {};
// Neighbours that one access moves.
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack {
    T items[COUNT];
};
}
