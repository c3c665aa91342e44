"""Texture references of a kernel that is compiled to several modules."""

from __future__ import annotations

import threading
from typing import Any


class Modules:
    """The modules of one source on one device, as one module to a texture reference: what is bound
    to a reference is bound in each, also in those that are compiled later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modules: list[Any] = []
        self._bound: dict[str, tuple[str, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._modules)

    def add(self, module: Any) -> None:
        """Adds a module, before its kernels are launched."""
        with self._lock:
            for name, (call, value) in self._bound.items():
                getattr(module, call)(name, value)
            self._modules.append(module)

    def get_global(self, name: str) -> tuple[int, int]:
        """The reference in one of them."""
        return self._modules[0].get_global(name)

    def _bind(self, name: str, made: Any) -> None:
        self._in_each("_bind", name, made)

    def _refuse(self, name: str, detail: str) -> None:
        self._in_each("_refuse", name, detail)

    def _in_each(self, call: str, name: str, value: Any) -> None:
        with self._lock:
            for module in self._modules:
                getattr(module, call)(name, value)
            self._bound[name] = (call, value)
