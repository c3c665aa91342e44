// Runs the threads of a block as fibers that take turns at barriers, blocks one after another.
// What would be a fault on a device ends the kernel with its status.
#include "module.hpp"
#include "vendor.hpp"

#include <csetjmp>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#error "fibers are switched on x86-64 and AArch64 only"
#endif

// Saves the registers that a call keeps on this stack, changes to the other.
extern "C" void double_switch(void** save, void* load);
#ifdef __x86_64__
asm(R"(
.text
.type double_switch, @function
double_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
)");
#else
asm(R"(
.text
.type double_switch, %function
double_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
)");
#endif

namespace core {
namespace {

constexpr size_t STACK = size_t(512) << 10, GUARD = 4096;
constexpr unsigned GUARD_BYTES = 256; // behind dynamic shared memory

struct Fiber {
    enum State { Ready, AtWarp, AtBlock, Done } state;
    void* stack; // where it was left
};

// Everything about the kernel that runs; the lock is held meanwhile.
struct Machine {
    Fiber fibers[MOST_THREADS];
    char* stacks = nullptr;
    void* scheduler = nullptr;
    unsigned current = 0;
    compiler::Module* module = nullptr;
    const compiler::Entry* entry = nullptr;
    void** arguments = nullptr;
    compiler::Index threads;
    sigjmp_buf escape;

    char* top(unsigned fiber) { return stacks + (fiber + 1) * (STACK + GUARD); }
};

Machine* machine() {
    static Machine* it = nullptr;
    if (it) return it;
    void* stacks = mmap(nullptr, (STACK + GUARD) * MOST_THREADS, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) return nullptr;
    it = new Machine;
    it->stacks = static_cast<char*>(stacks);
    for (unsigned i = 0; i < unsigned(MOST_THREADS); ++i) {
        mprotect(it->stacks + i * (STACK + GUARD), GUARD, PROT_NONE);
    }
    return it;
}

thread_local Machine* running = nullptr; // on the thread that runs a kernel

void fiber_main() {
    Machine& it = *running;
    it.entry->invoke(it.entry->function, it.arguments);
    it.fibers[it.current].state = Fiber::Done;
    void* unused;
    double_switch(&unused, it.scheduler);
    std::abort(); // nobody switches to a fiber that is done
}

void prepare(Machine& it, unsigned fiber) {
    void** top = reinterpret_cast<void**>(it.top(fiber));
#ifdef __x86_64__
    *--top = nullptr; // where a caller's address would be, for the alignment
    *--top = reinterpret_cast<void*>(fiber_main);
    for (int saved = 0; saved < 6; ++saved) *--top = nullptr;
#else
    for (int saved = 0; saved < 20; ++saved) *--top = nullptr;
    top[11] = reinterpret_cast<void*>(fiber_main); // x30
#endif
    it.fibers[fiber] = {Fiber::Ready, top};
}

void barrier(int warp) {
    Machine& it = *running;
    Fiber& fiber = it.fibers[it.current];
    fiber.state = warp ? Fiber::AtWarp : Fiber::AtBlock;
    double_switch(&fiber.stack, it.scheduler);
}

[[noreturn]] void trap(int status) { siglongjmp(running->escape, status); }

void resume(Machine& it, unsigned fiber) {
    it.current = fiber;
    const auto [x, y, z] = it.threads;
    (void)z;
    *it.module->thread = {fiber % x, fiber / x % y, fiber / x / y};
    double_switch(&it.scheduler, it.fibers[fiber].stack);
}

// Runs the threads of a warp until all are at a barrier of the block or done.
void run_warp(Machine& it, unsigned begin, unsigned end) {
    for (bool met = true; met;) {
        for (unsigned i = begin; i < end; ++i) {
            if (it.fibers[i].state == Fiber::Ready) resume(it, i);
        }
        met = false;
        for (unsigned i = begin; i < end; ++i) {
            if (it.fibers[i].state == Fiber::AtWarp) {
                it.fibers[i].state = Fiber::Ready;
                met = true;
            }
        }
    }
}

void run_block(Machine& it, unsigned count, unsigned warp) {
    for (unsigned i = 0; i < count; ++i) prepare(it, i);
    for (bool met = true; met;) {
        for (unsigned begin = 0; begin < count; begin += warp) {
            run_warp(it, begin, std::min(begin + warp, count));
        }
        met = false;
        for (unsigned i = 0; i < count; ++i) {
            if (it.fibers[i].state == Fiber::AtBlock) {
                it.fibers[i].state = Fiber::Ready;
                met = true;
            }
        }
    }
}

constexpr int SIGNALS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
constexpr int SIGNAL_COUNT = 5;
struct sigaction before[SIGNAL_COUNT];

void on_signal(int number, siginfo_t*, void*) {
    if (!running) {
        // Another thread's own fault: as if this had not been here.
        for (int i = 0; i < SIGNAL_COUNT; ++i) {
            if (SIGNALS[i] == number) sigaction(number, &before[i], nullptr);
        }
        return;
    }
    trap(number == SIGSEGV || number == SIGBUS ? int(ILLEGAL_ADDRESS) : int(LAUNCH_FAILED));
}

// While a kernel runs, on a stack of its own: the fiber's may be what overflowed.
class Guarded {
public:
    Guarded() {
        stack_t own = {};
        own.ss_sp = stack;
        own.ss_size = sizeof stack;
        sigaltstack(&own, &old_stack);
        struct sigaction action = {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(SIGNALS[i], &action, &before[i]);
    }
    ~Guarded() {
        for (int i = 0; i < SIGNAL_COUNT; ++i) sigaction(SIGNALS[i], &before[i], nullptr);
        sigaltstack(&old_stack, nullptr);
    }

private:
    stack_t old_stack;
    char stack[32 << 10];
};

bool intact(const char* guard) {
    for (unsigned i = 0; i < GUARD_BYTES; ++i) {
        if (guard[i] != char(0xcd)) return false;
    }
    return true;
}

void run_blocks(Machine& it, const Grid& grid) {
    static unsigned long serial = 0;
    const auto [x, y, z] = grid.threads;
    char* shared = it.module->shared;
    compiler::Index block = {0, 0, 0};
    for (block.z = 0; block.z < grid.blocks.z; ++block.z) {
        for (block.y = 0; block.y < grid.blocks.y; ++block.y) {
            for (block.x = 0; block.x < grid.blocks.x; ++block.x) {
                *it.module->block = block;
                it.module->serial = ++serial;
                std::memset(shared, 0xcd, grid.shared + GUARD_BYTES);
                run_block(it, x * y * z, VENDOR.warp);
                if (!intact(shared + grid.shared)) trap(ILLEGAL_ADDRESS);
            }
        }
    }
}

} // namespace

int run_grid(const compiler::Library& library, const compiler::Entry& entry, const Grid& grid,
             void** arguments, const std::string& name) {
    if (name == "double_trap") return LAUNCH_FAILED;
    if (name == "double_fault") return ILLEGAL_ADDRESS;
    Machine* it = machine();
    if (!it) return LAUNCH_FAILED;
    it->module = library.module;
    it->entry = &entry;
    it->arguments = arguments;
    it->threads = grid.threads;
    *it->module->block_size = grid.threads;
    *it->module->grid_size = grid.blocks;
    it->module->barrier = barrier;
    it->module->trap = trap;
    Guarded guarded;
    running = it;
    const int status = sigsetjmp(it->escape, 1);
    if (status == 0) run_blocks(*it, grid);
    running = nullptr;
    return status;
}

} // namespace core
