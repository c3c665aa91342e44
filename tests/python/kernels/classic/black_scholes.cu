// Prices of European options (F. Black and M. Scholes, 1973).
__global__ void prices(float *call, float *put, const float *stock, const float *strike, const float *years,
                       float rate, float volatility, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float s = stock[i], k = strike[i], t = years[i], root = volatility * sqrtf(t);
    const float d1 = (logf(s / k) + (rate + 0.5f * volatility * volatility) * t) / root, d2 = d1 - root;
    const float discounted = k * expf(-rate * t);
    call[i] = s * normcdff(d1) - discounted * normcdff(d2);
    put[i] = discounted * normcdff(-d2) - s * normcdff(-d1);
}
