"""Kernels as plain Python, so that a step of them can be replaced by a wrong one."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numba
import pytest


def run_plainly(monkeypatch: pytest.MonkeyPatch, module: ModuleType, *names: str) -> None:
    """Let some kernels of a module run as plain Python, and call others from there."""
    for name, value in list(vars(module).items()):
        if name in names:
            monkeypatch.setattr(module, name, getattr(value, "py_func", value))
        elif "no_cpython_wrapper" in getattr(value, "targetoptions", {}):
            monkeypatch.setattr(module, name, _with_entry(value))


def _with_entry(inner: Callable[..., Any]) -> Callable[..., Any]:
    """Return an inner kernel with an entry from Python."""

    @numba.njit
    def call(*arguments):  # type: ignore[no-untyped-def]
        return inner(*arguments)

    return call
