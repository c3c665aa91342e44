"""Finds the largest loss of a portfolio from a peak.

    python examples/gallery/drawdown.py [FOLDER]

Shows scans: a cumulative sum turns daily returns into a value, and a scan with `max` keeps the
highest value so far. `argmax` and an index then find the worst day.
"""

import numpy as np
from picture import save_curves

import pygpu.autoinit  # noqa: F401
from pygpu import cumath, gpuarray
from pygpu.scan import InclusiveScanKernel

DAYS = 2500

highest = InclusiveScanKernel(np.float64, "a > b ? a : b")


def main():
    returns = np.random.default_rng(8).normal(0.0003, 0.012, DAYS)

    value = cumath.exp(gpuarray.to_gpu(returns).cumsum())
    peak = highest(value.copy())  # a scan works in place
    loss = 1 - value / peak
    worst = int(loss.argmax())
    largest = float(loss[worst])

    expected_value = np.exp(np.cumsum(returns))
    expected_peak = np.maximum.accumulate(expected_value)
    expected_loss = 1 - expected_value / expected_peak
    np.testing.assert_allclose(value.get(), expected_value, rtol=1e-12)
    np.testing.assert_allclose(loss.get(), expected_loss, rtol=0, atol=1e-12)
    assert worst == expected_loss.argmax()
    print(f"the largest loss from a peak is {largest:.1%}, on day {worst}")
    save_curves(
        "drawdown.svg", {"value": value.get()[::5], "highest value so far": peak.get()[::5]}
    )


if __name__ == "__main__":
    main()
