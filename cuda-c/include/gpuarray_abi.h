// The interface between a compiled unit of CUDA C and the executor.
//
// A unit is one text of CUDA C, compiled as C++17 after these headers into a shared library. The executor
// runs a kernel block by block. One thread of the operating system runs a whole block, so the variables of a
// block (shared memory, indices) are thread-local. Other threads of the operating system run other blocks
// concurrently and access the same memory.
//
// The headers of the language use only the functions `barrier`, `rendezvous`, `grid_barrier`, `print` and
// `trap`, and the variables below. The executor reads `Unit` and `Entry`. `VERSION` changes with every change
// of this interface.
#ifndef GPUARRAY_ABI_H
#define GPUARRAY_ABI_H

// Tells programs that they are compiled for a processor.
#define __GPUARRAY_HOST__ 1

// Settings, which the compiler's command line defines.
#ifndef GPUARRAY_WARP_SIZE
#define GPUARRAY_WARP_SIZE 32
#endif

// Programs may include headers inside `extern "C"`.
extern "C++" {

// Qualifiers that only the front end understands; it removes them from the preprocessed text.
// `__gpuarray_global__` marks a kernel, `__gpuarray_bounds__(threads, blocks)` holds its launch bounds,
// `__gpuarray_variable__` marks a variable or function of the device, and `__gpuarray_constant__` marks a
// variable in constant memory.
#define __global__ __gpuarray_global__
#define __launch_bounds__(...) __gpuarray_bounds__(__VA_ARGS__)
#define __device__ __gpuarray_variable__
#define __constant__ __gpuarray_constant__
#define __managed__ __gpuarray_variable__

// Memory of a block, which is the memory of the thread that runs it. A definition is static shared memory. A
// declaration with `extern` is dynamic shared memory, for which the front end links storage. The empty
// attribute lets the front end distinguish it from the program's own thread-local variables.
#define __shared__ __attribute__(()) thread_local

// A thread-local variable of the executor. These are separated from shared memory, whatever order the
// compiler puts variables in: they have initial values, and the front end links unused memory after the
// variables with initial values. Without checks, variables that kernels use therefore start with a value
// other than 0; with a section attribute, GCC would compute their address again for each access.
#ifdef GPUARRAY_CHECK
#define GPUARRAY_THREAD_LOCAL __attribute__((section(".tdata"))) thread_local
#else
#define GPUARRAY_THREAD_LOCAL thread_local
#endif

// A function of the executor, whose own accesses are not checked.
#ifndef GPUARRAY_CHECK
#define GPUARRAY_UNCHECKED
#elif defined(__clang__) && __has_attribute(disable_sanitizer_instrumentation)
// In a function that clang does not check, it would still turn atomic operations into calls of the checking
// functions.
#define GPUARRAY_UNCHECKED __attribute__((no_sanitize("thread", "undefined"), disable_sanitizer_instrumentation))
#else
#define GPUARRAY_UNCHECKED __attribute__((no_sanitize("thread", "undefined")))
#endif

struct uint3 {
    unsigned x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return uint3{x, y, z}; }
};

// Never take the address of these variables. As long as no other code knows it, the compiler keeps them in
// registers and vectorises over threadIdx.x. If the compiler merges accesses to neighbouring members, it
// takes the address itself, for all functions that it compiles later; `apart` prevents that.
static GPUARRAY_THREAD_LOCAL uint3 threadIdx __attribute__((unused)) = {1, 1, 1};
static GPUARRAY_THREAD_LOCAL uint3 blockIdx __attribute__((unused)) = {1, 1, 1};
static GPUARRAY_THREAD_LOCAL dim3 blockDim __attribute__((unused)) = {1, 1, 1};
static GPUARRAY_THREAD_LOCAL dim3 gridDim __attribute__((unused)) = {1, 1, 1};
static constexpr int warpSize __attribute__((unused)) = GPUARRAY_WARP_SIZE;

namespace gpuarray_abi {

constexpr unsigned VERSION = 10;
// The maximum number of threads in a block.
constexpr unsigned MOST_THREADS = 1024;

// A bit for each lane of a warp. The warp size is 32 or 64.
typedef unsigned long long Lanes;

// Combines the records of the lanes in `lanes`: `records[lane]` is the address that the lane passed to
// `rendezvous`. One of the threads calls it once, before any of them returns. It writes each lane's result to
// that lane's record, and must not call the executor.
typedef void Combine(void* const* records, Lanes lanes);

// The reason why a kernel stops, which the executor's errors distinguish. ENDING: the kernel called a
// function that ends the process; the message is the function's name, and the location is unknown.
enum Trap : unsigned { TRAP = 1, ASSERT = 2, UNSUPPORTED = 3, ENDING = 4 };

// The functions of the executor. `thread` is the linear index of the calling thread in its block. `file` and
// `line` are the source location of the call, for errors and for forms without a mask.
struct Executor {
    // Waits at barrier `id` (0 to 15) for `threads` threads of the block; 0 means all threads that have not
    // returned. Returns how many of them passed a nonzero `predicate`.
    unsigned (*barrier)(unsigned thread, unsigned id, unsigned threads, unsigned predicate,
                        const char* file, unsigned line);
    // Waits for the lanes of the warp that are in `lanes` and have not returned. If `lanes` is 0, waits for
    // the lanes that reach this file and line while no other lane of the warp can continue (the lanes that a
    // GPU would run together). Returns the lanes that arrived. If `combine` is not null, it was called for
    // them.
    Lanes (*rendezvous)(unsigned thread, Lanes lanes, void* record, Combine* combine,
                        const char* file, unsigned line);
    // Waits for all threads of the grid; only in a cooperative launch.
    void (*grid_barrier)(unsigned thread, const char* file, unsigned line);
    // Writes to standard output.
    void (*print)(const char* text, unsigned long bytes);
    // Ends the launch with an error.
    void (*trap)(unsigned thread, unsigned kind, const char* message, const char* file,
                 unsigned line) __attribute__((noreturn));
    // Returns 1 in a cooperative launch.
    unsigned (*is_cooperative)();
    // Returns the kind of memory at an address outside of shared memory.
    unsigned (*space_of)(const volatile void* address);
};

// Kinds of memory: a thread's local variables, constant variables of the unit, and everything else.
enum Space : unsigned { GLOBAL = 0, LOCAL = 1, CONSTANT = 2 };

// Set when the unit is loaded.
static const Executor* executor = nullptr;

// True once this thread's loop over the block's threads has been suspended. The remaining threads then belong
// to another loop.
static GPUARRAY_THREAD_LOCAL bool suspended = true;

// Keeps the compiler from merging the accesses before and after the call.
static inline void apart() { __asm__ volatile("" ::: "memory"); }

// The calls that the compiler inserts for checks read the thread's index, which its optimisations do not
// know. Without this barrier they would keep the index in a register and merge accesses of several threads.
static inline void index_is_read() {
#ifdef GPUARRAY_CHECK
    apart();
#endif
}

// From here on, the compiler assumes that other code may read and write a variable.
static inline void written(const void* variable) {
    __asm__ volatile("" : : "r"(variable) : "memory");
}

// The linear index of the calling thread in its block.
GPUARRAY_UNCHECKED static inline unsigned thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
GPUARRAY_UNCHECKED static inline unsigned lane() { return thread() % GPUARRAY_WARP_SIZE; }
GPUARRAY_UNCHECKED static inline unsigned warp() { return thread() / GPUARRAY_WARP_SIZE; }

// Other threads may run before a call of the executor returns. This object restores the thread's index from
// the stack.
struct Resume {
    unsigned x, y, z;
    GPUARRAY_UNCHECKED Resume() {
        x = threadIdx.x;
        apart();
        y = threadIdx.y;
        apart();
        z = threadIdx.z;
    }
    GPUARRAY_UNCHECKED ~Resume() {
        threadIdx.x = x;
        apart();
        threadIdx.y = y;
        apart();
        threadIdx.z = z;
        suspended = true;
        index_is_read();
    }
};

GPUARRAY_UNCHECKED static inline unsigned barrier(const char* file, unsigned line, unsigned predicate = 0,
                               unsigned id = 0, unsigned threads = 0) {
    Resume resume;
    return executor->barrier(thread(), id, threads, predicate, file, line);
}

// The front end inserts this call where the threads of a program race. Each thread waits until no other
// thread of its block can continue without it.
constexpr unsigned TOGETHER = 17;
GPUARRAY_UNCHECKED static inline void together(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    barrier(file, line, 0, TOGETHER);
}

GPUARRAY_UNCHECKED static inline Lanes rendezvous(Lanes lanes, void* record, Combine* combine, const char* file,
                               unsigned line) {
    Resume resume;
    return executor->rendezvous(thread(), lanes, record, combine, file, line);
}

GPUARRAY_UNCHECKED static inline void grid_barrier(const char* file, unsigned line) {
    Resume resume;
    executor->grid_barrier(thread(), file, line);
}

GPUARRAY_UNCHECKED static inline bool is_cooperative() { return executor->is_cooperative() != 0; }

static inline Space space_of(const volatile void* address) { return (Space)executor->space_of(address); }

static inline void print(const char* text, unsigned long bytes) { executor->print(text, bytes); }

[[noreturn]] static inline void trap(Trap kind, const char* message, const char* file,
                                     unsigned line) {
    executor->trap(thread(), kind, message, file, line);
}

// The parameters of a launch.
struct Launch {
    uint3 grid, block;
    void* const* arguments;
};

// Consecutive blocks along x, which one thread of the operating system runs one after another.
struct Blocks {
    uint3 index;    // of the running block
    unsigned count; // of the running block and the blocks after it
    const volatile unsigned char* is_stopped; // 1 if no other block may begin
};

// Runs the threads of a block, starting at the linear index `first`, until all have run or one has been
// suspended. If all have run, continues with the next blocks. `blocks->index` is the index of the last block
// that has started.
typedef void Run(const Launch* launch, Blocks* blocks, unsigned first);

struct Parameter {
    unsigned bytes, alignment, is_pointer;
};

// Runs blocks as loops between barriers, and counts down `blocks`. Returns false at the first block of which
// it has not run any thread.
typedef bool RunRegions(const Launch* launch, Blocks* blocks);

// A kernel, or a variable named by a name expression.
struct Entry {
    // Null for a variable.
    Run* run;
    // Null for a kernel without a loop variant.
    RunRegions* regions;
    // Null for an extern "C" kernel, so that only the copy in the loop is compiled. Otherwise the executor
    // finds the mangled name by this address.
    const volatile void* address;
    // The name of an extern "C" kernel, otherwise null.
    const char* name;
    const Parameter* parameters;
    unsigned parameter_count;
    unsigned most_threads, least_blocks; // of __launch_bounds__; 0 if not given
};

// A variable in constant memory.
struct Constant {
    unsigned long bytes, alignment;
    const volatile void* address;
};

// The description to which a texture or surface object points. Missing axes have an extent of 1. `slices`
// counts the slices of a three-dimensional array, or the layers.
struct Texture {
    unsigned char* texels;
    unsigned long width, height, slices;
    unsigned long row_pitch, slice_pitch; // in bytes
    unsigned format, channels;            // of CUarray_format; 1, 2 or 4
    unsigned address[3];                  // of CUaddress_mode, along x, y and z
    unsigned linear, normalized, fractions; // 1 if texels are interpolated; if coordinates run
                                            // from 0 to 1; if small integers are read as fractions
};

template <unsigned long... I> struct Indices {};
#ifdef __clang__
template <class, unsigned long... I> using IndicesOf = Indices<I...>;
template <unsigned long N> using Range = __make_integer_seq<IndicesOf, unsigned long, N>;
#else
template <unsigned long N> using Range = Indices<__integer_pack(N)...>;
#endif

GPUARRAY_UNCHECKED static inline void set_block(const Launch* launch, const uint3* index) {
    const uint3 grid = launch->grid, block = launch->block, at = *index;
#define GPUARRAY_SET(variable, value) \
    variable.x = value.x, apart(), variable.y = value.y, apart(), variable.z = value.z, apart()
    GPUARRAY_SET(gridDim, grid);
    GPUARRAY_SET(blockDim, block);
    GPUARRAY_SET(blockIdx, at);
#undef GPUARRAY_SET
}

template <class A> constexpr unsigned is_pointer = 0;
template <class A> constexpr unsigned is_pointer<A*> = 1;

// The way in which an argument is passed: by value, or for a reference by address.
template <class A> struct Passed {
    static constexpr Parameter parameter = {sizeof(A), alignof(A), is_pointer<A>};
    GPUARRAY_UNCHECKED static A& of(void* argument) { return *static_cast<A*>(argument); }
};
template <class A> struct Passed<A&> {
    static constexpr Parameter parameter = {sizeof(A*), alignof(A*), 0};
    GPUARRAY_UNCHECKED static A& of(void* argument) { return **static_cast<A**>(argument); }
};

template <auto kernel, class Type> struct Kernel;

template <auto kernel, class... A> struct Kernel<kernel, void (*)(A...)> {
    // The trailing element keeps the array from being empty.
    static constexpr Parameter parameters[] = {Passed<A>::parameter..., {0, 0, 0}};
    static constexpr unsigned count = sizeof...(A);

    template <bool has_regions>
    // A separate function, because the compiler would not vectorise the loop over blocks if it contained
    // this.
    GPUARRAY_UNCHECKED static __attribute__((noinline)) bool threads(uint3 block, unsigned first, A... a) {
        suspended = false;
        if constexpr (has_regions) {
            // This case is rare. The kernel is therefore compiled once and not as a loop; the asm statement
            // hides the callee from the compiler.
            auto called = kernel;
            __asm__("" : "+r"(called));
            loop(block, first, [&]() __attribute__((always_inline)) { called(a...); });
        } else {
            alone(block, first, a...);
        }
        return suspended;
    }
    GPUARRAY_UNCHECKED static inline __attribute__((always_inline)) void alone(uint3 block, unsigned first, A... a) {
#ifdef GPUARRAY_CHECK
        // The kernel is a separate function, which is checked.
        loop(block, first, [&]() GPUARRAY_UNCHECKED __attribute__((always_inline)) { copy(a...); });
#elif defined(GPUARRAY_QUICK)
        // A single copy compiles faster.
        loop(block, first, [&]() __attribute__((always_inline)) { kernel(a...); });
#else
        // If the index along x that most kernels compute does not wrap, the compiler knows that neighbouring
        // threads access neighbouring elements. Other blocks call a copy of the kernel.
        const unsigned begin = blockIdx.x * blockDim.x;
        if (begin <= 0x7fffffffu - MOST_THREADS && block.x <= MOST_THREADS) {
            loop(block, first, [&]() __attribute__((always_inline)) { kernel(a...); });
        } else {
            loop(block, first, [&]() __attribute__((always_inline)) { copy(a...); });
        }
#endif
    }
    static __attribute__((noinline, cold)) void copy(A... a) { kernel(a...); }
    template <class Call>
    GPUARRAY_UNCHECKED static inline __attribute__((always_inline)) void loop(uint3 block, unsigned first, Call call) {
        unsigned x = first % block.x, y = first / block.x % block.y, z = first / block.x / block.y;
        for (; z < block.z; ++z, y = 0) {
            threadIdx.z = z;
            for (; y < block.y; ++y, x = 0) {
                threadIdx.y = y;
                // No pragma declares the iterations independent, although the language does not order threads
                // between barriers. With such a pragma, GCC would also ignore the order within one thread,
                // for accesses through two pointers to neighbouring members, and would share the thread's
                // local arrays among lanes.
                for (; x < block.x; ++x) {
                    threadIdx.x = x;
                    index_is_read();
                    call();
                    index_is_read();
                    if (suspended) return;
                }
            }
        }
    }
    template <bool has_regions, unsigned long... I>
    GPUARRAY_UNCHECKED static inline void call(const Launch* launch, Blocks* blocks, unsigned first, Indices<I...>) {
        set_block(launch, &blocks->index);
        unsigned left = blocks->count;
        while (!threads<has_regions>(launch->block, first, Passed<A>::of(launch->arguments[I])...) &&
               --left > 0 && !*blocks->is_stopped) {
            // Errors name the block.
            blockIdx.x = ++blocks->index.x;
            apart();
            first = 0;
        }
    }
    template <bool has_regions>
    GPUARRAY_UNCHECKED static void run(const Launch* launch, Blocks* blocks, unsigned first) {
        call<has_regions>(launch, blocks, first, Range<sizeof...(A)>());
    }
};
template <auto kernel, class... A>
struct Kernel<kernel, void (*)(A...) noexcept> : Kernel<kernel, void (*)(A...)> {};

// The loop variant of a kernel, which the front end writes. `regions` takes the block's indices before the
// kernel's parameters.
template <auto regions, class Type> struct Regions;

template <auto regions, class... A> struct Regions<regions, void (*)(A...)> {
    template <unsigned long... I>
    static inline bool call(const Launch* launch, Blocks* blocks, Indices<I...>) {
        set_block(launch, &blocks->index);
        while (regions(dim3(launch->grid), dim3(launch->block), blocks->index,
                       Passed<A>::of(launch->arguments[I])...)) {
            if (--blocks->count == 0 || *blocks->is_stopped) return true;
            blockIdx.x = ++blocks->index.x;
            apart();
        }
        return false;
    }
    static bool run(const Launch* launch, Blocks* blocks) {
        return call(launch, blocks, Range<sizeof...(A)>());
    }
};
template <auto regions, class... A>
struct Regions<regions, void (*)(A...) noexcept> : Regions<regions, void (*)(A...)> {};

template <class T> struct IsKernel { static constexpr bool value = false; };
template <class... A> struct IsKernel<void (*)(A...)> { static constexpr bool value = true; };
template <class... A> struct IsKernel<void (*)(A...) noexcept> { static constexpr bool value = true; };

// The launch bounds of a kernel, in the order of __launch_bounds__.
struct Bounds {
    unsigned threads = 0, blocks = 0, cluster = 0;
};

template <auto kernel, bool has_regions>
constexpr Entry of_kernel(Bounds bounds, const volatile void* address, const char* name) {
    using K = Kernel<kernel, decltype(kernel)>;
    return {K::template run<has_regions>, nullptr, address, name, K::parameters, K::count, bounds.threads,
            bounds.blocks};
}

// Creates the entry of a kernel or variable, which is found by its mangled symbol, and the entry of an extern
// "C" kernel.
template <auto named> static inline Entry entry(Bounds bounds) {
    if constexpr (IsKernel<decltype(named)>::value) {
        return of_kernel<named, false>(bounds, reinterpret_cast<const volatile void*>(named), nullptr);
    } else {
        return {nullptr, nullptr, named, nullptr, nullptr, 0, 0, 0};
    }
}
template <auto kernel> constexpr Entry entry(Bounds bounds, const char* name) {
    return of_kernel<kernel, false>(bounds, nullptr, name);
}
// The same for a kernel with a loop variant.
template <auto kernel, auto regions> static inline Entry entry(Bounds bounds) {
    Entry made = of_kernel<kernel, true>(bounds, reinterpret_cast<const volatile void*>(kernel), nullptr);
    made.regions = Regions<regions, decltype(kernel)>::run;
    return made;
}
template <auto kernel, auto regions> constexpr Entry entry(Bounds bounds, const char* name) {
    Entry made = of_kernel<kernel, true>(bounds, nullptr, name);
    made.regions = Regions<regions, decltype(kernel)>::run;
    return made;
}

// A thread-local variable. From its address, the executor computes the addresses of all thread-local
// variables of the calling thread.
static GPUARRAY_THREAD_LOCAL char local __asm__("gpuarray_local") __attribute__((used)) = 0;
static char* local_address() { return &local; }

// The start and end of shared memory, relative to `local`. Set when the unit is loaded.
static long shared_bounds[2] = {0, 0};

// True for an address in shared memory of the calling thread's block.
static inline bool is_shared(const volatile void* address) {
    const long at = (long)((unsigned long)address - (unsigned long)&local);
    return at >= shared_bounds[0] && at < shared_bounds[1];
}

struct Unit {
    unsigned version, warp_size;
    const Executor** executor;
    char* (*local)();
    long* shared_bounds;
};

} // namespace gpuarray_abi

// The only symbol that the library exports.
extern "C" {
extern __attribute__((visibility("default"))) const gpuarray_abi::Unit gpuarray_unit;
const gpuarray_abi::Unit gpuarray_unit = {gpuarray_abi::VERSION, GPUARRAY_WARP_SIZE,
                                          &gpuarray_abi::executor, gpuarray_abi::local_address,
                                          gpuarray_abi::shared_bounds};
// The front end links this in place of functions that end the process.
[[noreturn]] void gpuarray_ending(const char* name) {
    gpuarray_abi::trap(gpuarray_abi::ENDING, name, nullptr, 0);
}
}

// For each kernel that a text defines, and for each name expression, the front end appends to the
// preprocessed text. The declaration is in the kernel's own namespace, with a number instead of N:
//   static const gpuarray_abi::Entry gpuarray_entry_N __asm__("gpuarray_entry_N") __attribute__((used))
//       = gpuarray_abi::entry<(&kernel)>({threads, blocks});

} // extern "C++"

#endif
