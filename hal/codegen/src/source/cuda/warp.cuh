// What 32 neighbours of a block exchange: a warp on NVIDIA's devices, a wavefront or half of one on AMD's.
// Blocks have threads along x alone, in whole wavefronts, and all of them come to each exchange.

// A value in words of 32 bits; the rest of the last one is zeros.
template <class A>
struct InWords {
    static constexpr u32 count = (u32)((sizeof(A) + 3) / 4);
    union Parts {
        A value;
        u32 part[count];
        METHOD Parts() { part[count - 1] = 0; }
    };
};

// On the host all lanes meet for an exchange, which costs more than a barrier does. The doubles of GPUs run what
// GPUs run.
#if defined(__GPUARRAY_HOST__) && !defined(__GPUARRAY_DOUBLE__)
constexpr bool LANES_EXCHANGE = false;
#else
constexpr bool LANES_EXCHANGE = true;
#endif

#if defined(__AMDGCN__)
// Of a thread's number, the instruction takes the bits that count lanes of a wavefront.
DEVICE u32 word_of_lane(u32 word, u32 lane) {
    return (u32)__builtin_amdgcn_ds_bpermute((int)((threadIdx.x / 32 * 32 + lane) * 4), (int)word);
}
DEVICE u32 word_before(u32 word, u32 by) {
    return (u32)__builtin_amdgcn_ds_bpermute((int)((threadIdx.x - by) * 4), (int)word);
}
// The lanes meet, and see what each of them has written to shared memory.
DEVICE void meet_lanes() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
    __builtin_amdgcn_wave_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
#elif defined(__CUDA_ARCH__)
DEVICE u32 word_of_lane(u32 word, u32 lane) { return __shfl_sync(0xffffffffu, word, (int)lane); }
DEVICE u32 word_before(u32 word, u32 by) { return __shfl_up_sync(0xffffffffu, word, by); }
DEVICE void meet_lanes() { __syncwarp(); }
#else
DEVICE u32 word_of_lane(u32 word, u32 lane) { return __shfl(word, (int)lane, 32); }
DEVICE u32 word_before(u32 word, u32 by) { return __shfl_up(word, by, 32); }
DEVICE void meet_lanes() { __syncwarp(); }
#endif

// The value of a lane.
template <class A>
DEVICE A of_lane(const A& value, u32 lane) {
    typename InWords<A>::Parts parts;
    parts.value = value;
#pragma unroll
    for (u32 k = 0; k < InWords<A>::count; ++k) {
        parts.part[k] = word_of_lane(parts.part[k], lane);
    }
    return parts.value;
}

// The value of the lane that is `by` before; any lane's if there is none.
template <class A>
DEVICE A of_lane_before(const A& value, u32 by) {
    typename InWords<A>::Parts parts;
    parts.value = value;
#pragma unroll
    for (u32 k = 0; k < InWords<A>::count; ++k) {
        parts.part[k] = word_before(parts.part[k], by);
    }
    return parts.value;
}
