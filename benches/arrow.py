"""Serialisation of record batches to the device, compared with copies of one numpy array.

    PYGPU_BACKEND=cuda python benches/arrow.py [--mib N] [--rounds N]

Prints GB/s, the best of all rounds, and each batch's ratio to the copy. The cases alternate
within each round. Each batch has the same number of bytes: in 64 columns, in 16 KiB columns,
with nulls, and of strings. "copy" is `memcpy_htod` from pageable memory, which the batches also
use, into existing memory; "new" allocates for each copy, as a batch does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from pygpu import arrow, autoinit, driver


def columns(nbytes: int, width: int) -> pa.RecordBatch:
    """Returns float32 columns of `width` bytes."""
    values = np.random.default_rng(1).random(width // 4, "f4")
    return pa.record_batch({f"c{number}": values.copy() for number in range(nbytes // width)})


def nulls(nbytes: int) -> pa.RecordBatch:
    """Returns 4 MiB columns in which a tenth of the elements is null."""
    count = 1 << 20
    generator = np.random.default_rng(2)
    return pa.record_batch(
        {
            f"c{number}": pa.array(
                generator.random(count, "f4"), mask=generator.random(count) < 0.1
            )
            for number in range(nbytes // (4 * count))
        }
    )


def texts(nbytes: int) -> pa.RecordBatch:
    """Returns a column of 12-byte strings with their offsets."""
    values = [f"text {number:07}" for number in range(1 << 16)]
    return pa.record_batch({"text": pa.array(values * (nbytes // (len(values) * 16)))})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    nbytes = options.mib << 20
    context = arrow.Context()
    source = np.random.default_rng(3).random(nbytes // 8)
    kept = driver.mem_alloc(nbytes)

    def copy() -> int:
        driver.memcpy_htod(kept, source)
        return nbytes

    def new() -> int:
        driver.memcpy_htod(driver.mem_alloc(nbytes), source)
        return nbytes

    def serialised(batch: pa.RecordBatch) -> Callable[[], int]:
        return lambda: arrow.serialize_record_batch(batch, context).size

    ways = {
        "copy": copy,
        "new": new,
        "64 columns": serialised(columns(nbytes, nbytes // 64)),
        "16 KiB columns": serialised(columns(nbytes, 16 << 10)),
        "nulls": serialised(nulls(nbytes)),
        "texts": serialised(texts(nbytes)),
    }
    speeds = dict.fromkeys(ways, 0.0)
    for _ in range(options.rounds):
        for name, call in ways.items():
            driver.Context.synchronize()
            start = time.perf_counter()
            moved = call()
            driver.Context.synchronize()
            speeds[name] = max(speeds[name], moved / (time.perf_counter() - start) / 1e9)
    for name, speed in speeds.items():
        print(f"{name:16}{speed:8.2f} GB/s   {speed / speeds['copy']:.2f} of the copy")


if __name__ == "__main__":
    assert autoinit.context is not None
    main()
