"""The interfaces of PyCUDA and numba in one program, opened and closed in every order: no
crash, no hang, and no output at exit, whichever objects still exist."""

from __future__ import annotations

import pytest
from processes import run_python

STEPS = {
    "autoinit": "import pygpu.autoinit",
    "primary": "import pygpu.autoprimaryctx",
    "array": "kept.append(gpuarray.to_gpu(np.arange(9)))",
    "numba's": "kept.append(cuda.to_device(np.arange(9)))",
    "stream": "kept.append(cuda.stream())",
    "context": "kept.append(driver.Device(0).make_context())",
    "use": "[np.array(it.get() if hasattr(it, 'get') else it) for it in kept[:1]]",
    "close": "cuda.close()",
    "reset": "cuda.current_context().reset()",
    "detach": "sys.modules['pygpu.autoinit'].context.detach()",
    "pop": "driver.Context.pop()",
}
ORDERS = [
    "autoinit close",
    "autoinit array close use",
    "autoinit numba's close",
    "numba's autoinit close array",
    "autoinit close detach",
    "autoinit detach close",
    "close autoinit array",
    "autoinit close array numba's use",
    "autoinit array reset use",
    "autoinit pop close",
    "autoinit close pop",
    "primary array close use",
    "primary autoinit close array",
    "autoinit primary stream close",
    "autoinit array context close use",
    "autoinit context pop close detach",
    "stream autoinit close close",
]


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_is_left_to_say_at_the_end(order):
    lines = ["import sys", "import numpy as np", "from pygpu import cuda, driver, gpuarray"]
    lines += ["driver.init()", "kept = []"]
    for step in order.split():
        lines += ["try:", f"    {STEPS[step]}"]
        # Using a destroyed object raises this package's error.
        lines += ["except driver.Error:", "    pass"]
    done = run_python("\n".join(lines))
    assert (done.stdout, done.stderr) == ("", "")
