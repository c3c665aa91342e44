use crate::declarations::{Choices, unit};

/// Returns the number of meetings inserted into a kernel.
fn meetings(kernel: &str) -> usize {
    let shared = "__attribute__ ( ( ) ) thread_local";
    let text = kernel.replace("__shared__", shared).replace("__global__", "__gpuarray_global__");
    let text = format!("# 1 \"kernel.cu\"\n{text}");
    let unit = unit(&text, &[], &Choices::all(), false).expect("a unit");
    unit.text.matches("::gpuarray_abi::together(").count()
}

/// Kernels with all their barriers stay unchanged.
#[test]
fn kernels_that_are_right_have_no_meetings() {
    let kernels = [
        // A reduction with an unrolled tail.
        "__global__ void k(const float *x, float *out, int n) {
            __shared__ float s[256];
            int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
            float sum = 0;
            for (int j = i; j < n; j += gridDim.x * blockDim.x) sum += x[j];
            s[t] = sum;
            __syncthreads();
            for (int k = blockDim.x / 2; k > 0; k >>= 1) {
                if (t < k) s[t] += s[t + k];
                __syncthreads();
            }
            if (t == 0) out[blockIdx.x] = s[0];
        }",
        // A tiled matrix product.
        "__global__ void k(const float *a, const float *b, float *c, int n) {
            __shared__ float as[16][16], bs[16][16];
            int tx = threadIdx.x, ty = threadIdx.y;
            int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
            float sum = 0;
            for (int m = 0; m < n / 16; ++m) {
                as[ty][tx] = a[row * n + m * 16 + tx];
                bs[ty][tx] = b[(m * 16 + ty) * n + column];
                __syncthreads();
                for (int k = 0; k < 16; ++k) sum += as[ty][k] * bs[k][tx];
                __syncthreads();
            }
            c[row * n + column] += sum;
        }",
        // A stepwise scan, and one by Blelloch.
        "__global__ void k(int *x) {
            __shared__ int s[256];
            int t = threadIdx.x;
            s[t] = x[t];
            __syncthreads();
            for (int by = 1; by < 256; by *= 2) {
                int v = t >= by ? s[t - by] : 0;
                __syncthreads();
                s[t] += v;
                __syncthreads();
            }
            x[t] = s[t];
        }",
        "__global__ void k(int *x, int n) {
            __shared__ int s[512];
            int t = threadIdx.x, offset = 1;
            s[2 * t] = x[2 * t];
            s[2 * t + 1] = x[2 * t + 1];
            for (int d = n >> 1; d > 0; d >>= 1) {
                __syncthreads();
                if (t < d) {
                    int ai = offset * (2 * t + 1) - 1, bi = offset * (2 * t + 2) - 1;
                    s[bi] += s[ai];
                }
                offset *= 2;
            }
            __syncthreads();
            if (t == 0) s[n - 1] = 0;
            __syncthreads();
            x[2 * t] = s[2 * t];
            x[2 * t + 1] = s[2 * t + 1];
        }",
        // A histogram.
        "__global__ void k(const int *x, int *out, int n) {
            __shared__ int h[256];
            int t = threadIdx.x;
            h[t] = 0;
            __syncthreads();
            for (int i = t; i < n; i += blockDim.x) atomicAdd(&h[x[i] & 255], 1);
            __syncthreads();
            atomicAdd(&out[t], h[t]);
        }",
        // A sorting network: each thread owns the pair that it compares.
        "__global__ void k(int *x) {
            __shared__ int s[256];
            int t = threadIdx.x;
            s[t] = x[t];
            for (int k = 2; k <= 256; k *= 2) {
                for (int j = k / 2; j > 0; j /= 2) {
                    __syncthreads();
                    int other = t ^ j;
                    if (other > t) {
                        int a = s[t], b = s[other];
                        if ((a > b) == ((t & k) == 0)) { s[t] = b; s[other] = a; }
                    }
                }
            }
            __syncthreads();
            x[t] = s[t];
        }",
        // The thread's own elements: packed, padded, by column, by row, at the border.
        "__global__ void k(float *out, float *rows, const float *x, int n, int w) {
            __shared__ float own[4 * 128];
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[3 * i] = x[i];
            out[3 * i + 1] = x[i + n];
            out[3 * i + 2] = out[3 * i] * 2;
            for (int k = 0; k < 4; ++k) own[k * blockDim.x + threadIdx.x] = x[k];
            for (int k = 0; k < 4; ++k) rows[i * w + k] += own[k * blockDim.x + threadIdx.x];
            if (i == 0) out[3 * i] = 1;
        }",
        "__global__ void k(float *x) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            x[i] = x[i] * 2;
            if (i == 0) x[0] = 1;
        }",
        "__global__ void k(float *x, int n) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) { float v = x[i]; v = v * v; x[i] = v; }
        }",
        "__global__ void k(float *x, int w, int h) {
            int column = threadIdx.x % w, row = threadIdx.x / w;
            float v = x[row * w + column];
            x[row * w + column] = v + 1;
        }",
        "__global__ void k(float *x, int n) {
            x[0] = 1;
            x[1] = 2;
            float v = x[n + 2];
            x[n + 3] = v;
            x[2 * blockIdx.x + n] = x[n + 2 * blockIdx.x + 1];
            x[2 * blockIdx.x + 1 + n] = v;
        }",
        // Lanes that meet.
        "__global__ void k(int *x) {
            __shared__ int s[32];
            int t = threadIdx.x, y = s[t];
            __syncwarp();
            s[31 - t] = y;
            __syncwarp();
            x[t] = s[(t + 1) % 32];
        }",
        // The work of one thread.
        "__global__ void k(int *x, int n) {
            __shared__ int s[64];
            s[threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            if (threadIdx.x == 0) {
                int sum = 0;
                for (int i = 0; i < n; ++i) { int v = s[i]; s[i] = sum; sum += v; }
            }
            __syncthreads();
            if (threadIdx.x == 0) x[0] = s[1];
            if (threadIdx.x == 0) x[0] += s[2];
        }",
        // Statements that read only elements which no other thread writes meanwhile: the other half of a
        // buffer, earlier elements, rows above, elements of a thread that does not write, a table.
        "__global__ void k(int *x, int n) {
            extern __shared__ int s[];
            int t = threadIdx.x, to = 0, from = 1;
            s[t] = x[t];
            __syncthreads();
            for (int by = 1; by < n; by *= 2) {
                to = 1 - to;
                from = 1 - to;
                s[to * n + t] = s[from * n + t] + (t >= by ? s[from * n + t - by] : 0);
                __syncthreads();
            }
        }",
        "__global__ void k(float *x, float *m, int n, int t) {
            int row = blockIdx.x * blockDim.x + threadIdx.x, column = blockIdx.y * blockDim.y + threadIdx.y;
            if (row >= n - 1 - t || column >= n - t) return;
            x[n * (row + 1 + t) + column + t] -= m[n * (row + 1 + t) + t] * x[n * t + column + t];
        }",
        "__global__ void k(float *x, int n) {
            __shared__ float s[256];
            int t = threadIdx.x;
            s[t] = x[t];
            __syncthreads();
            for (int i = 0; i < n; ++i) {
                if (t != i) { float f = s[i]; for (int j = 0; j < n; ++j) f += j; s[t] -= f * s[i]; }
                __syncthreads();
            }
            s[t] = s[t + 256 / 2] + s[t];
            int half = t;
            __syncthreads();
            for (half = blockDim.x / 2; half > 0; half >>= 1) {
                if (t < half) s[t] += s[t + half];
                __syncthreads();
            }
            x[t] += x[t + n];
        }",
        "__global__ void k(float *x, int n) { int t = threadIdx.x; if (t < n) x[t] *= x[n]; }",
        "__global__ void k(float *x, int n) {
            for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] /= x[n];
        }",
        "__global__ void k(int *count, const int *key) {
            __shared__ int h[64];
            h[threadIdx.x] = 0;
            __syncthreads();
            h[key[threadIdx.x]] += 1;
            __syncthreads();
            count[threadIdx.x * 4 + 1] = count[threadIdx.x * 4] + 1;
        }",
        // A thread spins on another one, and a meeting might keep that one from arriving.
        "__global__ void k(int *flag, int *x) {
            int v = x[0];
            if (threadIdx.x < 32) { while (atomicAdd(flag, 0) == 0) {} }
            x[0] = v + 1;
            if (threadIdx.x == 32) atomicExch(flag, 1);
        }",
    ];
    for kernel in kernels {
        assert_eq!(meetings(kernel), 0, "{kernel}");
    }
}

#[test]
fn kernels_that_lack_barriers_have_meetings() {
    let kernels = [
        ("__global__ void k(int *x) { int v = x[0]; x[threadIdx.x] = v; }", 1),
        ("__global__ void k(int *x) { int v = *x; if (threadIdx.x == 3) *x = v + 1; }", 1),
        (
            "__global__ void k(int *x) {
                __shared__ int n;
                if (threadIdx.x == 0) n = 0;
                atomicAdd(&n, x[threadIdx.x]);
                x[threadIdx.x] = n;
            }",
            2,
        ),
        (
            "__global__ void k(float *state, int n) {
                int row = blockIdx.y * blockDim.y + threadIdx.y, lane = threadIdx.x;
                float h = state[row];
                h += lane;
                if (lane == 0) state[row] = h;
            }",
            1,
        ),
        (
            "__global__ void k(float *x, int n) {
                __shared__ float tile[32];
                float sum = 0;
                for (int k = 0; k < n; ++k) {
                    tile[threadIdx.x] = x[k];
                    __syncthreads();
                    sum += tile[31 - threadIdx.x];
                }
                x[threadIdx.x] = sum;
            }",
            1,
        ),
        // Statements that read elements which other threads write.
        ("__global__ void k(float *x) { x[threadIdx.x] = x[threadIdx.x] / x[0]; }", 1),
        ("__global__ void k(float4 *x) { x[threadIdx.x].y -= x[0].y; }", 1),
        (
            "__global__ void k(float *x, int n) {
                int i = blockIdx.x * blockDim.x + threadIdx.x, row = i / n;
                if (i < n * n) x[i] = x[i] - x[row * n];
            }",
            1,
        ),
        (
            "template <class T> __global__ void k(T *x) {
                __shared__ T s[64];
                T *const p = &s[32];
                s[threadIdx.x] = x[threadIdx.x];
                __syncthreads();
                if (s[threadIdx.x] > x[0]) p[threadIdx.x] += *(p + (threadIdx.x ^ 1));
            }",
            1,
        ),
        // Also between rounds.
        (
            "__global__ void k(int n) {
                __shared__ float s[64];
                for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] /= s[0];
            }",
            2,
        ),
    ];
    for (kernel, count) in kernels {
        assert_eq!(meetings(kernel), count, "{kernel}");
    }
}

#[test]
fn deep_and_long_kernels_are_read_in_time() {
    let deep = format!(
        "__global__ void k(int *x, int n) {{ __shared__ int s[64]; {} {{ s[threadIdx.x] = n; }} x[0] = s[0]; }}",
        "for (int i = 0; i < n; ++i)".repeat(150)
    );
    let long = format!(
        "__global__ void k(int *x, int n) {{ __shared__ int s[64]; {} x[0] = s[0]; }}",
        "if (n > 3) { s[threadIdx.x] += x[n + threadIdx.x]; } else { x[2 * threadIdx.x] = s[threadIdx.x]; }"
            .repeat(1000)
    );
    for kernel in [deep, long] {
        assert!(meetings(&kernel) < 3000);
    }
}

/// A reduction in a helper function, with the given end.
fn sum(parameter: &str, end: &str) -> String {
    format!(
        "__device__ float sum(float v{parameter}) {{
            int t = threadIdx.x;
            s[t] = v;
            __syncthreads();
            for (int k = blockDim.x / 2; k > 0; k >>= 1) {{
                if (t < k) s[t] += s[t + k];
                __syncthreads();
            }}
            {end}
        }}"
    )
}

#[test]
fn functions_that_are_called_have_meetings_where_callers_may_have_read() {
    let pointer = sum(", float *s", "return s[0];");
    let kernel = |text: &str| {
        format!(
            "__global__ void k(float *x) {{ __shared__ float s[256]; int t = threadIdx.x; {text} }}"
        )
    };
    let calls = kernel("x[t] = sum(x[t], s) + sum(x[t + 256], s);");
    // A meeting before the first write: other threads may still read the previous sum.
    assert_eq!(meetings(&format!("{pointer} {calls}")), 1);
    let writes = kernel("float v = sum(x[t], s); s[t] = v; __syncthreads(); x[t] = s[255 - t];");
    assert_eq!(meetings(&format!("{pointer} {writes}")), 2);
    let of_file = format!("__shared__ float s[256]; {}", sum("", "return s[0];"));
    let calls = "__global__ void k(float *x, float *y) { y[threadIdx.x] = sum(x[0]) + sum(x[1]); }";
    assert_eq!(meetings(&format!("{of_file} {calls}")), 1);
    let member = format!("struct S {{ float *s; {} }};", sum("", "return s[0];"));
    assert_eq!(
        meetings(&format!("{member} {}", kernel("S a = {s}; x[t] = a.sum(1) + a.sum(2);"))),
        1
    );
    let lambda = "auto sum = [&](float v) { s[t] = v; __syncthreads(); return s[255 - t]; };";
    assert_eq!(meetings(&kernel(&format!("{lambda} x[t] = sum(1) + sum(2);"))), 1);
    // A helper function may do anything with an array that it is passed.
    let add = "__device__ void add(int *n, int v) { atomicAdd(&n[v], 1); }";
    let counts = "__global__ void k(int *x) { __shared__ int n[8]; int t = threadIdx.x; if (t < 8) n[t] = 0; \
                  for (int i = t; i < 99; i += blockDim.x) add(n, x[i]); __syncthreads(); x[t] = n[t]; }";
    assert_eq!(meetings(&format!("{add} {counts}")), 1);
}

#[test]
fn arrays_are_known_by_pointers_that_begin_with_them() {
    for (declared, count) in [
        ("extern __shared__ float all[]; float *s = all;", 1),
        ("extern __shared__ char all[]; float *s = (float *)all + 4;", 1),
        ("extern __shared__ char all[]; auto s = reinterpret_cast<float *>(all);", 1),
        ("extern __shared__ float all[]; float *__restrict__ s = &all[2];", 1),
        ("__shared__ float s[256]; auto unread = threadIdx;", 1),
        ("float s[256];", 0),
    ] {
        let text = format!(
            "__global__ void k(float *x) {{ {declared} const int t = threadIdx.x; s[t] = x[t]; __syncthreads(); \
             float v = s[255 - t]; s[t] = v + 1; __syncthreads(); x[t] = s[0]; }}"
        );
        assert_eq!(meetings(&text), count, "{declared}");
    }
}

#[test]
fn functions_with_all_their_barriers_have_one_meeting_at_most() {
    let whole = sum(", float *s", "float all = s[0]; __syncthreads(); return all;");
    let kernel = "__global__ void k(float *x, float *y) { __shared__ float s[256]; y[threadIdx.x] = sum(x[0], s); }";
    assert_eq!(meetings(&format!("{whole} {kernel}")), 1);
    let tiles = "__global__ void k(float *x, int n) {
        extern __shared__ float all[];
        float *a = all, *b = all + 256;
        auto unread = threadIdx;
        int tx = unread.x, ty = unread.y;
        float sum = 0;
        for (int m = 0; m < n; ++m) {
            a[ty * 16 + tx] = x[m * 256 + ty * 16 + tx];
            b[ty * 16 + tx] = x[m * 512 + ty * 16 + tx];
            __syncthreads();
            for (int k = 0; k < 16; ++k) sum += a[ty * 16 + k] * b[k * 16 + tx];
            __syncthreads();
        }
        x[n + ty * 16 + tx] = sum;
    }";
    assert_eq!(meetings(tiles), 0);
    // Functions without barriers are not examined. A text in which a thread spins on a flag gets no meetings.
    let waits = "__device__ void wait(int *flag) { while (atomicAdd(flag, 0) == 0) {} }
        __device__ void both(int *s, int *flag) { int v = s[0]; __syncthreads(); s[1] = s[2]; wait(flag); s[3] = v; }
        __global__ void k(int *x) { __shared__ int s[8]; both(s, x); both(s, x); }";
    assert_eq!(meetings(waits), 0);
    let none = "__device__ void own(int *s) { int v = s[0]; s[threadIdx.x] = v; } __global__ void k(int *x) { own(x); }";
    assert_eq!(meetings(none), 0);
}

#[test]
fn texts_in_which_a_thread_waits_for_another_one_have_none() {
    let race = "int v = s[255 - t]; s[t] = v;";
    for (waits, count) in [
        ("for (int i = 0; i < 9; ++i) { __threadfence(); }", 1),
        ("while (atomicAdd(&x[0], 0) == 0) { }", 0),
        ("for (; t < all;) { __threadfence(); }", 0),
        ("for (int i = 0; i < 9; ++i) { if (x[0]) break; __threadfence(); }", 0),
    ] {
        let text = format!(
            "__global__ void k(int *x) {{ __shared__ int s[256], all; const int t = threadIdx.x; \
             __syncthreads(); {race} __syncthreads(); {waits} }}"
        );
        assert_eq!(meetings(&text), count, "{waits}");
    }
}

/// A meeting precedes the call around a volatile element, also without a space between statements.
#[test]
fn meetings_are_not_inside_of_volatile_writes() {
    let kernel = "__gpuarray_global__ void k(int *out) {
            __attribute__ ( ( ) ) thread_local int s[64];
            int t = threadIdx.x;
            if (t < 32) { volatile int *p = s;p[t]+=p[t+8];p[t]+=p[t+4];p[t]+=p[t+2];p[t]+=p[t+1];}
            out[t] = s[0];
        }";
    let text = format!("# 1 \"kernel.cu\"\n{kernel}");
    let unit = unit(&text, &[], &Choices::all(), false).expect("a unit");
    let compact: String = unit.text.split_whitespace().collect();
    assert!(compact.contains("::cuda_c::together<true>(p[t])+=p[t+4];"), "{}", unit.text);
    assert!(!compact.contains("together<true>(::gpuarray_abi"), "{}", unit.text);
}
