// Exchanges between 32 neighbouring threads of a block: a warp on NVIDIA's devices, a wavefront or half of one
// on AMD's. Blocks only have threads along x, in whole wavefronts, and all of them take part in each exchange.

// A value in 32-bit words; the last word is padded with zeros.
template <class A>
struct InWords {
    static constexpr u32 count = (u32)((sizeof(A) + 3) / 4);
    union Parts {
        A value;
        u32 part[count];
        METHOD Parts() { part[count - 1] = 0; }
    };
};

// On the host, all lanes meet for an exchange, which costs more than a barrier. Simulated GPUs run the same code
// as GPUs.
#if defined(__GPUARRAY_HOST__) && !defined(__GPUARRAY_DOUBLE__)
constexpr bool LANES_EXCHANGE = false;
#else
constexpr bool LANES_EXCHANGE = true;
#endif

#if defined(__AMDGCN__)
// The instruction only uses the bits of the thread number that count the lanes of a wavefront.
DEVICE u32 word_of_lane(u32 word, u32 lane) {
    return (u32)__builtin_amdgcn_ds_bpermute((int)((threadIdx.x / 32 * 32 + lane) * 4), (int)word);
}
DEVICE u32 word_before(u32 word, u32 by) {
    return (u32)__builtin_amdgcn_ds_bpermute((int)((threadIdx.x - by) * 4), (int)word);
}
// Synchronizes the lanes, and makes their writes to shared memory visible to each other.
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

// Returns the value of a lane.
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

// Returns the value of the lane `by` places earlier, or of any lane if there is no such lane.
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
