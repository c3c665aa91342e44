// Runs generated kernels on the host: the threads of a block are fibers that take turns at
// __syncthreads(), blocks run one after another.
#pragma once

#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <ucontext.h>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(threads)

struct ShimIndex {
    unsigned x, y, z;
};

static ShimIndex threadIdx, blockIdx, blockDim, gridDim;

namespace shim {

constexpr unsigned MOST_THREADS = 256;
constexpr size_t STACK_BYTES = 64 << 10;

// Made once, by ucontext; from then on fibers change places by setjmp, which asks the system nothing.
struct Fiber {
    jmp_buf place;
    bool made;
    bool done;
};

static Fiber fibers[MOST_THREADS];
static char stacks[MOST_THREADS][STACK_BYTES];
static jmp_buf scheduler;
static unsigned current;
static void (*body)(void*);
static void* body_data;

static void yield() {
    if (_setjmp(fibers[current].place) == 0) {
        _longjmp(scheduler, 1);
    }
}

static void entry() {
    for (;;) {
        body(body_data);
        fibers[current].done = true;
        yield();
    }
}

static void resume(unsigned thread) {
    current = thread;
    threadIdx = {thread, 0, 0};
    if (_setjmp(scheduler) != 0) {
        return;
    }
    Fiber& fiber = fibers[thread];
    if (fiber.made) {
        _longjmp(fiber.place, 1);
    }
    fiber.made = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[thread];
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
    setcontext(&context);
}

static void run_block(unsigned threads) {
    for (unsigned t = 0; t < threads; ++t) {
        fibers[t].done = false;
    }
    for (bool running = true; running;) {
        running = false;
        for (unsigned t = 0; t < threads; ++t) {
            if (!fibers[t].done) {
                resume(t);
                running = true;
            }
        }
    }
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<A*>(arguments[I])...);
}

template <class... A>
void launch(void (*kernel)(A...), void** arguments, unsigned blocks, unsigned threads) {
    struct Data {
        void (*kernel)(A...);
        void** arguments;
    } data = {kernel, arguments};
    body = [](void* raw) {
        Data* data = static_cast<Data*>(raw);
        call(data->kernel, data->arguments, std::index_sequence_for<A...>());
    };
    body_data = &data;
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned b = 0; b < blocks; ++b) {
        blockIdx = {b, 0, 0};
        run_block(threads);
    }
}

} // namespace shim

static inline void __syncthreads() {
    shim::yield();
}

// Threads change places at barriers only.
template <class T>
static inline T atomicAdd(T* address, T value) {
    const T old = *address;
    *address = old + value;
    return old;
}
