# ruff: noqa: F403
from . import backend as backend
from . import gpuarray as gpuarray
from .backend import *
from .gpuarray import SUPPORTED_DTYPES as SUPPORTED_DTYPES
from .gpuarray import Allocator as Allocator
from .gpuarray import GPUArray as GPUArray
from .gpuarray import HostAllocator as HostAllocator
from .gpuarray import PagelockedAllocator as PagelockedAllocator
from .gpuarray import UnsupportedDataType as UnsupportedDataType
from .gpuarray import to_gpu as to_gpu

def __dir__() -> list[str]: ...
