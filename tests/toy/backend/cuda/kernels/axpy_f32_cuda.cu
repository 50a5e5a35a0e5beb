/* axpy_f32_cuda: D = alpha X + Y in float32, an element a thread; a block of threads goes along the columns. */
extern "C" __global__ void __launch_bounds__(THREADS) axpy_f32_cuda(float alpha, const float *x, long long ldx, const float *y,
                                                                    long long ldy, float *d, long long ldd, long long m, long long n)
{
    const long long blocks = (n + THREADS - 1) / THREADS; /* of a row */
    for (long long block = blockIdx.x; block < m * blocks; block += gridDim.x) {
        const long long i = block / blocks, j = block % blocks * THREADS + threadIdx.x;
        if (j < n)
            d[i * ldd + j] = alpha * x[i * ldx + j] + y[i * ldy + j];
    }
}
