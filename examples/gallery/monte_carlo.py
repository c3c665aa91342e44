"""Prices options by simulating the share's price.

    python examples/gallery/monte_carlo.py [FOLDER]

Shows random numbers on the device, an ElementwiseKernel for the paths and a ReductionKernel for
the mean payoff. The same seeds give the same numbers on every backend. The European option is
compared with the formula of Black and Scholes, the Asian one with numpy on the same numbers.
"""

import math

import numpy as np
from picture import save_curves

import pygpu.autoinit  # noqa: F401
from pygpu import curandom, gpuarray
from pygpu.elementwise import ElementwiseKernel
from pygpu.reduction import ReductionKernel

PATHS, DAYS = 20_000, 32
PRICE, STRIKE, RATE, VOLATILITY = 100.0, 105.0, 0.03, 0.25
DRIFT = (RATE - VOLATILITY**2 / 2) / DAYS
SPREAD = VOLATILITY / math.sqrt(DAYS)

advance = ElementwiseKernel(
    "float *price, float *total, const float *normal, float drift, float spread",
    "price[i] *= expf(drift + spread * normal[i]); total[i] += price[i]",
    "advance",
)
payoff = ReductionKernel(
    np.float64,
    neutral="0",
    reduce_expr="a + b",
    map_expr="fmaxf(x[i] * scale - strike, 0.0f)",
    arguments="float *x, float scale, float strike",
)


def black_scholes():
    """Returns the exact price of the European call after one year."""
    d = (math.log(PRICE / STRIKE) + RATE + VOLATILITY**2 / 2) / VOLATILITY

    def cumulative(x):
        return 0.5 * (1 + math.erf(x / math.sqrt(2)))

    return PRICE * cumulative(d) - STRIKE * math.exp(-RATE) * cumulative(d - VOLATILITY)


def main():
    generator = curandom.XORWOWRandomNumberGenerator(
        lambda count: gpuarray.arange(2026, 2026 + count, dtype=np.int32)
    )
    price = gpuarray.empty(PATHS, np.float32).fill(PRICE)
    total = gpuarray.zeros_like(price)
    normal = gpuarray.empty_like(price)
    history, some = [], []
    for _ in range(DAYS):
        generator.fill_normal(normal)
        advance(price, total, normal, DRIFT, SPREAD)
        history.append(normal.get())
        some.append(price[:4].get())

    discount = math.exp(-RATE) / PATHS
    european = discount * float(payoff(price, 1.0, STRIKE))
    asian = discount * float(payoff(total, 1 / DAYS, STRIKE))

    paths = PRICE * np.exp(np.cumsum(DRIFT + SPREAD * np.array(history, np.float64), axis=0))
    np.testing.assert_allclose(price.get(), paths[-1], rtol=1e-4)
    payoffs = np.maximum(paths[-1] - STRIKE, 0)
    error = math.exp(-RATE) * payoffs.std() / math.sqrt(PATHS)
    assert abs(european - black_scholes()) < 5 * error
    expected = discount * np.maximum(paths.mean(axis=0) - STRIKE, 0).sum()
    np.testing.assert_allclose(asian, expected, rtol=1e-3)
    print(f"European {european:.2f} +- {error:.2f}, exact {black_scholes():.2f}; Asian {asian:.2f}")
    save_curves("monte_carlo.svg", {f"path {n}": path for n, path in enumerate(np.array(some).T)})


if __name__ == "__main__":
    main()
