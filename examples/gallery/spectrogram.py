"""Shows the frequencies of a sound over time.

    python examples/gallery/spectrogram.py [FOLDER]

Shows a fast Fourier transform in shared memory: one block for each frame of 256 samples, with a
barrier between its eight stages. A strided view cuts the sound into overlapping frames.
"""

import numpy as np
from picture import heat_colours, save_png

import pygpu.autoinit  # noqa: F401
from pygpu import cumath, gpuarray
from pygpu.compiler import SourceModule

FRAME, HOP, RATE = 256, 64, 8000

transform = SourceModule("""
#define FRAME 256

// Radix 2, decimation in time: frames of real numbers in, the lower half of the spectra out.
__global__ void transform(const float *frames, float2 *spectra) {
    __shared__ float re[FRAME], im[FRAME];
    int i = threadIdx.x;  // of FRAME / 2
    for (int j = i; j < FRAME; j += FRAME / 2) {
        int place = __brev(j) >> 24;
        re[place] = frames[blockIdx.x * FRAME + j];
        im[place] = 0;
    }
    for (int half = 1; half < FRAME; half *= 2) {
        __syncthreads();
        int k = i % half, a = (i / half) * 2 * half + k, b = a + half;
        float s, c;
        sincospif(-(float)k / half, &s, &c);
        float x = c * re[b] - s * im[b], y = c * im[b] + s * re[b];
        re[b] = re[a] - x, im[b] = im[a] - y;
        re[a] += x, im[a] += y;
    }
    __syncthreads();
    spectra[blockIdx.x * (FRAME / 2) + i] = make_float2(re[i], im[i]);
}
""").get_function("transform")


def sound():
    """A rising tone, a steady one, and a click."""
    t = np.arange(RATE) / RATE
    wave = np.sin(2 * np.pi * (300 + 1200 * t) * t) + 0.5 * np.sin(2 * np.pi * 3000 * t)
    wave[5000:5004] += 8
    return wave.astype(np.float32)


def main():
    wave = sound()
    window = np.hanning(FRAME).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(wave, FRAME)[::HOP]
    frames = gpuarray.to_gpu(windows.copy()) * gpuarray.to_gpu(window)

    spectra = gpuarray.empty((len(windows), FRAME // 2), np.complex64)
    transform(frames, spectra, block=(FRAME // 2, 1, 1), grid=(len(windows), 1))
    loudness = cumath.log10(abs(spectra) + 1e-3)

    spectrum = np.fft.rfft(windows * window)[:, : FRAME // 2]
    np.testing.assert_allclose(spectra.get(), spectrum, atol=1e-3)
    print(f"{len(windows)} frames, the same as numpy's rfft")
    picture = loudness.get().T[::-1]
    picture = (picture - picture.min()) / np.ptp(picture)
    save_png("spectrogram.png", heat_colours(np.kron(picture, np.ones((2, 3)))))


if __name__ == "__main__":
    main()
