"""Kernels as plain Python, so that a step of them can be replaced by a wrong one."""

from types import ModuleType

import pytest


def run_plainly(monkeypatch: pytest.MonkeyPatch, module: ModuleType, *names: str) -> None:
    """Let some kernels of a module run as plain Python."""
    for name in names:
        value = getattr(module, name)
        monkeypatch.setattr(module, name, getattr(value, "py_func", value))
