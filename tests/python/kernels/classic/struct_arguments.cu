// Structs passed by value, with members of several sizes, and an array of structs.
struct Camera {
    char kind;
    double scale;
    float3 position;
    short pixels[3];
};
struct Particle {
    float3 where;
    int id;
};

__global__ void project(Camera camera, const Particle *particles, double *out, int n) {
    const int i = threadIdx.x;
    if (i >= n) return;
    const Particle p = particles[i];
    const double dx = p.where.x - camera.position.x, dy = p.where.y - camera.position.y,
                 dz = p.where.z - camera.position.z;
    out[i] = camera.scale * (dx * camera.pixels[0] + dy * camera.pixels[1] + dz * camera.pixels[2]) + p.id +
             camera.kind;
}
