# ruff: noqa: F403
from . import backend as backend
from . import gpuarray as gpuarray
from .backend import *
from .gpuarray import *

def __dir__() -> list[str]: ...
