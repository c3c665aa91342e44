// Atomic operations: sequential ones with values computed by hand, and concurrent ones from several threads.
#include "check.h"

#include <cuda/atomic>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <pthread.h>

static void alone() {
    int i = 5;
    CHECK(atomicAdd(&i, -7) == 5 && i == -2 && atomicSub(&i, 3) == -2 && i == -5);
    CHECK(atomicMin(&i, -4) == -5 && i == -5 && atomicMin_block(&i, -9) == -5 && i == -9);
    CHECK(atomicMax_system(&i, 12) == -9 && i == 12 && atomicExch(&i, 3) == 12 && i == 3);
    CHECK(atomicCAS(&i, 4, 9) == 3 && i == 3 && atomicCAS(&i, 3, 9) == 3 && i == 9);
    unsigned int u = 5;
    CHECK(atomicInc(&u, 5) == 5 && u == 0 && atomicInc(&u, 5) == 0 && u == 1);
    CHECK(atomicDec(&u, 9) == 1 && u == 0 && atomicDec(&u, 9) == 0 && u == 9);
    u = 20;
    CHECK(atomicDec(&u, 9) == 20 && u == 9);
    CHECK(atomicAnd(&u, 0xcu) == 9 && u == 8 && atomicOr(&u, 3u) == 8 && u == 11 && atomicXor(&u, 1u) == 11 && u == 10);
    CHECK(atomicMax(&u, 0xffffffffu) == 10 && u == 0xffffffffu);
    unsigned long long wide = 1ull << 40;
    CHECK(atomicAdd(&wide, 1ull) == 1ull << 40 && atomicMin(&wide, 7ull) == (1ull << 40) + 1 && wide == 7);
    long long least = -3;
    CHECK(atomicMax(&least, -1ll << 50) == -3 && least == -3);
    float f = 1.5f;
    CHECK(atomicAdd(&f, 2.0f) == 1.5f && f == 3.5f && atomicExch(&f, -1.0f) == 3.5f && f == -1);
    double d = 0.25;
    CHECK(atomicAdd_system(&d, 0.5) == 0.25 && d == 0.75);
    unsigned short narrow = 7;
    CHECK(atomicCAS(&narrow, (unsigned short)7, (unsigned short)9) == 7 && narrow == 9);
    float4 four = {1, 2, 3, 4};
    CHECK(atomicAdd(&four, make_float4(1, 1, 1, 1)).w == 4 && four.x == 2 && four.w == 5);
    __half2 halves = __floats2half2_rn(1, 2);
    CHECK((float)atomicAdd(&halves, __floats2half2_rn(0.5f, -4)).y == 2 && (float)halves.y == -2);
    __nv_bfloat16 b = 1.0f;
    CHECK((float)atomicAdd(&b, __float2bfloat16(2)) == 1 && (float)b == 3);
    i = 6;
    CHECK(__nv_atomic_fetch_add(&i, 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE) == 6 && i == 8);
    CHECK(__nv_atomic_load_n(&i, __NV_ATOMIC_ACQUIRE) == 8 && __nv_atomic_fetch_min(&i, 3, __NV_ATOMIC_SEQ_CST) == 8);
    int expected = 4;
    CHECK(!__nv_atomic_compare_exchange_n(&i, &expected, 5, false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_RELAXED));
    CHECK(expected == 3 && __nv_atomic_exchange_n(&i, 9, __NV_ATOMIC_RELAXED) == 3 && i == 9);
    cuda::atomic_ref<int, cuda::thread_scope_device> reference(i);
    CHECK(reference.fetch_add(5, cuda::memory_order_relaxed) == 9 && ++reference == 15 && (reference -= 5) == 10);
    expected = 3;
    CHECK(!reference.compare_exchange_strong(expected, 1) && expected == 10 && reference.exchange(9) == 10 && i == 9);
    cuda::atomic<double> owned{0.5};
    CHECK(owned.fetch_max(2.0) == 0.5 && owned == 2 && (owned = 3) == 3 && sizeof owned == 8);
    __nv_atomic_store_n(&f, 2.5f, __NV_ATOMIC_RELEASE);
    CHECK(f == 2.5f && __nv_atomic_fetch_max(&f, 4.0f, __NV_ATOMIC_RELAXED) == 2.5f && f == 4);
}

constexpr int ROUNDS = 20000, THREADS = 4;
static int sum, largest, guarded;
static unsigned int ring, lock;
static unsigned long long wide;
static float floats;
static double doubles;
static __half half_sum;
static __half2 pair;

static void* work(void* argument) {
    const int number = *(int*)argument;
    for (int i = 0; i < ROUNDS; ++i) {
        atomicAdd(&sum, 3);
        atomicAdd(&wide, 1ull);
        atomicAdd(&floats, 1.0f); // exact up to 2^24
        atomicAdd(&doubles, 0.5);
        atomicMax(&largest, i * THREADS + number);
        atomicInc(&ring, 6);
        if (i < 400) {
            atomicAdd(&half_sum, __float2half(1.0f)); // exact up to 2^11
            atomicAdd(&pair, __floats2half2_rn(1, -1));
        }
        while (atomicCAS(&lock, 0u, 1u) != 0u) {
        }
        __threadfence();
        ++guarded;
        __threadfence();
        atomicExch(&lock, 0u);
    }
    return nullptr;
}

int main() {
    alone();
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], nullptr, work, &numbers[i]) == 0);
    }
    for (const pthread_t thread : threads) CHECK(pthread_join(thread, nullptr) == 0);
    CHECK(sum == 3 * ROUNDS * THREADS && wide == ROUNDS * THREADS && floats == ROUNDS * THREADS);
    CHECK(doubles == 0.5 * ROUNDS * THREADS && largest == ROUNDS * THREADS - 1);
    CHECK(ring == ROUNDS * THREADS % 7 && guarded == ROUNDS * THREADS);
    CHECK((float)half_sum == 400 * THREADS && (float)pair.x == 400 * THREADS && (float)pair.y == -400 * THREADS);
    return failures != 0;
}
