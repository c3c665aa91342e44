use crate::declarations::unit;
use std::collections::HashSet;

/// How many meetings a kernel has.
fn meetings(kernel: &str) -> usize {
    let shared = "__attribute__ ( ( ) ) thread_local";
    let text = kernel.replace("__shared__", shared).replace("__global__", "__gpuarray_global__");
    let text = format!("# 1 \"kernel.cu\"\n{text}");
    let unit = unit(&text, &[], Some(&HashSet::new()), true, false).expect("a unit");
    unit.text.matches("::gpuarray_abi::together(").count()
}

/// Kernels with all their barriers keep their form.
#[test]
fn kernels_that_are_right_have_no_meetings() {
    let kernels = [
        // A sum, with a tail that is unrolled.
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
        // A product of matrices by tiles.
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
        // A scan from step to step, and one by Blelloch.
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
        // A sorting network, whose threads own pairs behind a comparison.
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
        // Elements of one's own: packed, padded, in columns, in rows, at the border.
        "__global__ void k(float *out, const float *x, int n, int w) {
            __shared__ float own[4 * 128];
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            out[3 * i] = x[i];
            out[3 * i + 1] = x[i + n];
            out[3 * i + 2] = out[3 * i] * 2;
            for (int k = 0; k < 4; ++k) own[k * blockDim.x + threadIdx.x] = x[k];
            for (int k = 0; k < 4; ++k) out[i * w + k] += own[k * blockDim.x + threadIdx.x];
            if (i == 0) out[0] = 1;
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
        // One thread's work.
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
        // A thread may wait for another one: a meeting might keep that one from coming.
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
