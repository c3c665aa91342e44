"""Functions with numpy's names that combine other operations on the device.

Each has numpy's name, arguments and result. ``gpuarray`` has it as an attribute, and numpy's own
function calls it for a GPUArray. To add one, define it in a module here and write its name below.
"""

HOMES = {
    "._array.as_numpy.conversion": """
        array asarray ascontiguousarray asfortranarray load may_share_memory save shares_memory""",
    "._array.as_numpy.linear": """
        cross einsum inner kron matrix_norm matrix_power matrix_transpose matvec multi_dot norm
        outer qr svd tensordot vdot vecdot vecmat vector_norm""",
    "._array.as_numpy.numeric": """
        allclose angle array_equal array_equiv choose clip convolve correlate diff ediff1d fix
        gradient interp isclose nan_to_num piecewise polyval round select sinc trapezoid unwrap
        vander""",
    "._array.as_numpy.order": """
        argpartition argsort bincount digitize histogram histogram2d histogram_bin_edges in1d
        intersect1d isin lexsort partition searchsorted setdiff1d setxor1d sort union1d unique""",
    "._array.as_numpy.selection": """
        argwhere copyto delete extract fill_diagonal insert place put putmask ravel_multi_index
        take_along_axis unravel_index""",
    "._array.as_numpy.shaping": """
        append apply_along_axis apply_over_axes atleast_1d atleast_2d atleast_3d block
        column_stack diag diagflat dsplit dstack fftshift hsplit ifftshift meshgrid pad
        resize rot90 sliding_window_view squeeze tri trim_zeros vsplit""",
    "._array.as_numpy.statistics": """
        average corrcoef cov median nanargmax nanargmin nancumprod nancumsum nanmax nanmean
        nanmedian nanmin nanpercentile nanquantile nanstd nanvar percentile quantile""",
}
# PyCUDA has other functions of these names in ``gpuarray``.
DIFFERENT = {"dot": "linear", "take": "selection"}
