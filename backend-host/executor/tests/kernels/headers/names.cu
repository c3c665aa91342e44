// A program may use names of the system's library for its own functions.
extern "C" {
__device__ float random(unsigned int* state) { return (float)(*state = *state * 1664525u + 1013904223u); }
__device__ int index(int row, int column) { return row * 8 + column; }
__device__ void select(int* out, int value) { *out = value; }
__device__ void swap(int& a, int& b) {
    const int c = a;
    a = b;
    b = c;
}
__device__ int read(const int* from) { return *from; }
__device__ void write(int* to, int value) { *to = value; }
__device__ float clamp(float x, float low, float high) { return fminf(fmaxf(x, low), high); }
__device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
__device__ float saturate(float x) { return clamp(x, 0, 1); }
__device__ int div(int a) { return a / 2; }
__device__ int rand(int seed) { return seed * 5; }
__device__ int time, signal, remove, gamma, left, right, count, distance, step, data, size, begin, end;
typedef unsigned int uint32_t;
typedef unsigned char uint8_t;
typedef unsigned int uint;
__global__ void sort(int* out, unsigned int* state) {
    int a = index(1, 2), b = read(out) + time + signal + count;
    swap(a, b);
    write(out, a + (int)random(state) + div(b) + rand(3));
    select(out + 1, (int)(lerp(saturate(3.0f), 2.0f, 0.5f)));
}
}
