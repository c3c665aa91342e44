"""Barriers, pipelines, latches and semaphores of libcu++ in kernels."""

import numpy as np
import pytest
from cpp_libraries import MARKS, installed, run  # noqa: F401

from pygpu import driver
from pygpu.compiler import SourceModule

pytestmark = MARKS
NUMBERS = np.random.default_rng(31).integers(0, 1000, 1024).astype(np.int32)
# What each kernel below writes: the rows of 128 numbers in reverse, plus one.
REVERSED = NUMBERS.reshape(-1, 128)[:, ::-1].ravel() + 1


def test_producers_and_consumers_take_turns():
    text = """
    #include <cuda/barrier>
    #include <cooperative_groups.h>
    using barrier = cuda::barrier<cuda::thread_scope_block>;
    __device__ void produce(barrier *ready, barrier *filled, int *buffer, const int *x) {
        for (int i = 0; i < 8; ++i) {
            ready[i % 2].arrive_and_wait();
            for (int j = threadIdx.x; j < 128; j += 32) buffer[i % 2 * 128 + j] = x[i * 128 + j];
            barrier::arrival_token token = filled[i % 2].arrive();
        }
    }
    __device__ void consume(barrier *ready, barrier *filled, const int *buffer, int *y) {
        barrier::arrival_token first = ready[0].arrive(), second = ready[1].arrive();
        for (int i = 0; i < 8; ++i) {
            filled[i % 2].wait(filled[i % 2].arrive());
            for (int j = threadIdx.x - 32; j < 128; j += 64)
                y[i * 128 + j] = buffer[i % 2 * 128 + 127 - j] + 1;
            barrier::arrival_token token = ready[i % 2].arrive();
        }
    }
    extern "C" __global__ void k(const int *x, int *y) {
        __shared__ int buffer[256];
        __shared__ barrier bars[4];
        auto block = cooperative_groups::this_thread_block();
        if (block.thread_rank() < 4) init(bars + block.thread_rank(), block.size());
        block.sync();
        if (block.thread_rank() < 32) produce(bars, bars + 2, buffer, x);
        else consume(bars, bars + 2, buffer, y);
    }
    """
    y = np.zeros_like(NUMBERS)
    run(text, NUMBERS, y, threads=96)
    np.testing.assert_array_equal(y, REVERSED)


def test_threads_leave_a_barrier_and_its_last_arrival_runs_a_function():
    text = """
    #include <cuda/barrier>
    #include <functional>
    extern "C" __global__ void k(int *counts, int *sum) {
        __shared__ cuda::barrier<cuda::thread_scope_block> bar;
        __shared__ int values[64], count;
        auto add = [&] { for (int i = 0; i < 64; ++i) *sum += values[i]; };
        using summing = cuda::barrier<cuda::thread_scope_block, decltype(add)>;
        __shared__ cuda::std::aligned_storage_t<sizeof(summing), alignof(summing)> place;
        summing *sums = (summing *)&place;
        if (threadIdx.x == 0) {
            init(&bar, blockDim.x);
            new (sums) summing(blockDim.x, add);
            count = 0;
        }
        __syncthreads();
        for (int i = 1; i < 4; ++i) {
            values[threadIdx.x] = i * threadIdx.x;
            auto token = sums->arrive();
            sums->wait(std::move(token));
        }
        for (int i = 0; i < 64; ++i) {
            if (threadIdx.x == i) return bar.arrive_and_drop();
            atomicAdd(&count, 1);
            bar.arrive_and_wait();
            if (threadIdx.x == 63) counts[i] = count;
            bar.arrive_and_wait();
        }
    }
    """
    counts, total = np.zeros(64, np.int32), np.zeros(1, np.int32)
    run(text, counts, total, threads=64)
    assert counts.tolist() == [*np.cumsum(np.arange(63, 0, -1)), 0]
    assert total[0] == 6 * sum(range(64))


COPIES = {
    "barrier": """
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    if (threadIdx.x == 0) init(&bar, block.size());
    block.sync();
    for (int batch = 0; batch < 8; ++batch) {
        const int *from = x + 128 * batch;
        auto bytes = cuda::aligned_size_t<16>(sizeof(int) * 128);
        if (batch % 3 == 0) cuda::memcpy_async(block, stages, from, sizeof(int) * 128, bar);
        if (batch % 3 == 1) cuda::memcpy_async(block, stages, from, bytes, bar);
        if (batch % 3 == 2)
            cuda::memcpy_async(stages + threadIdx.x, from + threadIdx.x, sizeof(int), bar);
        bar.arrive_and_wait();
        compute(y + 128 * batch, stages);
        block.sync();
    }
    """,
    "pipeline of the block": """
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
    auto pipeline = cuda::make_pipeline(block, &state);
    for (int batch = 0, fetched = 0; batch < 8; ++batch) {
        for (; fetched < 8 && fetched < batch + STAGES; ++fetched) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, stages + 128 * (fetched % STAGES), x + 128 * fetched,
                               sizeof(int) * 128, pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        compute(y + 128 * batch, stages + 128 * (batch % STAGES));
        pipeline.consumer_release();
    }
    """,
    "pipeline of a thread": """
    auto pipeline = cuda::make_pipeline();
    for (int batch = 0; batch < 8; ++batch) {
        pipeline.producer_acquire();
        cuda::memcpy_async(stages + 128 * (batch % 2) + threadIdx.x, x + 128 * batch + threadIdx.x,
                           sizeof(int), pipeline);
        pipeline.producer_commit();
        cuda::pipeline_consumer_wait_prior<0>(pipeline);
        block.sync();
        compute(y + 128 * batch, stages + 128 * (batch % 2));
        pipeline.consumer_release();
    }
    """,
    "group": """
    namespace cg = cooperative_groups;
    cg::memcpy_async(block, stages, x, cuda::aligned_size_t<16>(sizeof(int) * 128));
    for (int batch = 0; batch < 8; ++batch) {
        const int next = batch + 1;
        if (next < 8) {
            cg::memcpy_async(block, stages + 128 * (next % 2), 128, x + 128 * next, 128);
            cg::wait_prior<1>(block);
        } else {
            cg::wait(block);
        }
        compute(y + 128 * batch, stages + 128 * (batch % 2));
        block.sync();
    }
    """,
}


@pytest.mark.parametrize(
    ("kind", "stages"), [*((it, 2) for it in COPIES), ("pipeline of the block", 4)]
)
def test_memory_is_copied_while_threads_compute(kind, stages):
    text = """
    #include <cooperative_groups.h>
    #include <cooperative_groups/memcpy_async.h>
    #include <cuda/barrier>
    #include <cuda/pipeline>
    __device__ void compute(int *y, const int *x) { y[threadIdx.x] = x[127 - threadIdx.x] + 1; }
    extern "C" __global__ void k(const int *x, int *y) {
        alignas(16) __shared__ int stages[128 * STAGES];
        auto block = cooperative_groups::this_thread_block();
        BODY
    }
    """
    y = np.zeros_like(NUMBERS)
    run(text.replace("BODY", COPIES[kind]).replace("STAGES", str(stages)), NUMBERS, y)
    np.testing.assert_array_equal(y, REVERSED)


def test_threads_of_a_pipeline_have_roles():
    text = """
    #include <cooperative_groups.h>
    #include <cuda/pipeline>
    extern "C" __global__ void k(const int *x, int *y) {
        __shared__ int stages[3 * 64];
        __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 3> state;
        using roles = cuda::pipeline_role;
        const roles role = threadIdx.x % 2 ? roles::consumer : roles::producer;
        auto pipeline = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, role);
        const int at = threadIdx.x / 2;
        for (int batch = 0; batch < 16; ++batch) {
            int *stage = stages + batch % 3 * 64;
            if (role == roles::producer) {
                pipeline.producer_acquire();
                cuda::memcpy_async(stage + at, x + batch * 64 + at, sizeof(int), pipeline);
                pipeline.producer_commit();
            } else {
                pipeline.consumer_wait();
                y[batch * 64 + at] = stage[63 - at] + 1;
                pipeline.consumer_release();
            }
        }
    }
    """
    y = np.zeros_like(NUMBERS)
    run(text, NUMBERS, y)
    np.testing.assert_array_equal(y, NUMBERS.reshape(-1, 64)[:, ::-1].ravel() + 1)


def test_latches_semaphores_and_atomics_wait():
    text = """
    #include <cuda/atomic>
    #include <cuda/latch>
    #include <cuda/semaphore>
    template <class T> struct Place { alignas(T) char bytes[sizeof(T)]; };
    extern "C" __global__ void k(int *sums, int *seen) {
        using latch = cuda::latch<cuda::thread_scope_block>;
        __shared__ Place<latch> place;
        __shared__ cuda::binary_semaphore<cuda::thread_scope_block> lock;
        __shared__ cuda::counting_semaphore<cuda::thread_scope_block> free;
        __shared__ cuda::atomic<int, cuda::thread_scope_block> flag;
        latch *done = (latch *)&place;
        if (threadIdx.x == 0) {
            new (done) latch(96);
            new (&lock) cuda::binary_semaphore<cuda::thread_scope_block>(1);
            new (&free) cuda::counting_semaphore<cuda::thread_scope_block>(0);
            new (&flag) cuda::atomic<int, cuda::thread_scope_block>(0);
        }
        __syncthreads();
        // The first warp waits for the others.
        if (threadIdx.x < 32) {
            done->wait();
            atomicAdd(sums + 1, sums[0]);
            free.acquire();
        } else {
            lock.acquire();
            sums[0] += threadIdx.x;
            lock.release();
            done->count_down();
            if (threadIdx.x >= 96) free.release();
        }
        if (threadIdx.x == 100) { flag.store(5); flag.notify_all(); }
        else { flag.wait(0); }
        if (threadIdx.x == 7) flag = 9;
        while (flag.load(cuda::std::memory_order_acquire) != 9) {}
        seen[threadIdx.x] = flag.load();
    }
    """
    sums, seen = np.zeros(2, np.int32), np.zeros(128, np.int32)
    run(text, sums, seen)
    assert sums.tolist() == [sum(range(32, 128)), 32 * sum(range(32, 128))]
    assert seen.tolist() == [9] * 128


def test_blocks_of_a_cooperative_launch_meet_at_a_barrier():
    text = """
    #include <cuda/barrier>
    __device__ cuda::barrier<cuda::thread_scope_device> bar;
    __device__ int total;
    extern "C" __global__ void start(int threads) { init(&bar, threads); total = 0; }
    extern "C" __global__ void k(int *y) {
        atomicAdd(&total, 1);
        bar.arrive_and_wait();
        y[blockIdx.x * blockDim.x + threadIdx.x] = total;
    }
    """
    module = SourceModule(text, no_extern_c=True)
    module.get_function("start")(np.int32(256), block=(1, 1, 1))
    y = np.zeros(256, np.int32)
    kernel = module.get_function("k")
    kernel(driver.InOut(y), block=(64, 1, 1), grid=(4, 1), cooperative=True)
    assert y.tolist() == [256] * 256
