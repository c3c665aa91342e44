// Ray-sphere intersection: classes with non-virtual methods, and a program's own operators.
#include <math.h>

struct Vector {
    float x, y, z;
    __device__ Vector(float x, float y, float z) : x(x), y(y), z(z) {}
    __device__ Vector operator-(const Vector &o) const { return Vector(x - o.x, y - o.y, z - o.z); }
    __device__ float dot(const Vector &o) const { return x * o.x + y * o.y + z * o.z; }
};
struct Sphere {
    float x, y, z, radius;
    __device__ float hit(const Vector &from, const Vector &direction) const {
        const Vector to = Vector(x, y, z) - from;
        const float along = to.dot(direction), apart = to.dot(to) - along * along, left = radius * radius - apart;
        return left < 0 ? -1.0f : along - sqrtf(left);
    }
};
__constant__ Sphere spheres[8];

__global__ void trace(float *depth, int width, int height, int count) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const Vector from((float)x, (float)y, 0.0f), direction(0.0f, 0.0f, 1.0f);
    float nearest = INFINITY;
    for (int i = 0; i < count; ++i) {
        const float d = spheres[i].hit(from, direction);
        if (d > 0 && d < nearest) nearest = d;
    }
    depth[y * width + x] = nearest;
}
