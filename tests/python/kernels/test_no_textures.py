"""AMD devices without texture hardware."""

import pytest
from device import IS_DOUBLE
from processes import run_python

from pygpu import choose_backend

pytestmark = pytest.mark.skipif(
    choose_backend() != "hip" or not IS_DOUBLE, reason="the double of HIP can be without textures"
)

REFUSED = """
import numpy as np
import pytest
import pygpu.autoinit
from pygpu import driver

matrix = np.zeros((2, 3), np.float32)
for name, arguments in {
    "Array": (driver.ArrayDescriptor(),),
    "TextureReference": (),
    "SurfaceReference": (),
    "matrix_to_array": (matrix, "C"),
    "np_to_array": (matrix, "F"),
    "gpuarray_to_array": (matrix[None], "C", True),
    "make_multichannel_2d_array": (np.zeros((2, 3, 4), np.uint8), "C"),
    "matrix_to_texref": (matrix, None, "C"),
    "memcpy_atoh": (matrix, None, 0),
    "py_memcpy_htoa": (None, 0, matrix),
}.items():
    reason = "no hardware for textures and surfaces: hipDeviceAttributeImageSupport is 0"
    with pytest.raises(driver.Unsupported, match=reason) as refusal:
        getattr(driver, name)(*arguments)
    assert "gfx90a" in str(refusal.value)
"""


def test_textures_are_refused_by_name():
    run_python(REFUSED, DOUBLE_TEXTURES="0")
