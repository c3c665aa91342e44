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

// The loops of a thread over its elements, by the index i: of n elements, of a range of indices, and of the elements
// after the last pack. The index after the last one of a range may be out of the type's bounds.
#define PYGPU_EACH \
    PYGPU_PART(n); \
    for (i = pygpu_first; i < pygpu_end; i += pygpu_step)
#define PYGPU_EACH_OF_RANGE \
    const unsigned long pygpu_count = \
        step > 0 ? (start < stop ? ((unsigned long)stop - start - 1) / step + 1 : 0) \
                 : (start > stop ? ((unsigned long)start - stop - 1) / (0ul - step) + 1 : 0); \
    PYGPU_PART(pygpu_count); \
    for (unsigned long pygpu_turn = pygpu_first; \
         pygpu_turn < pygpu_end && (i = (long)((unsigned long)start + pygpu_turn * step), true); \
         pygpu_turn += pygpu_step)
#define PYGPU_EACH_AFTER_PACKS(count) \
    for (i = n / (count) * (count) + cta_start + tid; i < n; i += total_threads)
// The loop over packs, whose turns are counted.
#define PYGPU_EACH_PACK(count) \
    for (size_t pygpu_turn = cta_start + tid; pygpu_turn < n / (count); pygpu_turn += total_threads)

namespace pygpu {
// The running index in a loop over packs: of a type without operations.
struct NoIndex {};
// Neighbours that one access moves.
template <class T, int COUNT>
struct alignas(sizeof(T) * COUNT < 16 ? sizeof(T) * COUNT : 16) Pack {
    T items[COUNT];
};
}
