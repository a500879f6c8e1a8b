"""Compiled loops: plain functions on arrays, no classes. With NUMBA_DISABLE_JIT=1 they run as Python."""
