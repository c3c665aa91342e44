// The number of steps until a point leaves the circle of radius 2.
__global__ void mandelbrot(int *steps, int width, int height, double x0, double y0, double dx, double dy, int most) {
    const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height) return;
    const double cx = __dadd_rn(x0, __dmul_rn(column, dx)), cy = __dadd_rn(y0, __dmul_rn(row, dy));
    double x = 0, y = 0;
    int k = 0;
    while (k < most) {
        const double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y);
        if (__dadd_rn(xx, yy) > 4) break;
        y = __dadd_rn(__dmul_rn(2 * x, y), cy);
        x = __dadd_rn(__dsub_rn(xx, yy), cx);
        ++k;
    }
    steps[row * width + column] = k;
}
