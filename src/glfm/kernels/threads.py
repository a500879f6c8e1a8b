"""Threads of linear algebra, which wait busily for more work beside those of chains."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

_lock = threading.RLock()  # the number of threads is the process's: whoever sets it must also restore it


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Use one thread of linear algebra, one user at a time; also as a decorator.

    Matrices here are small: a second thread costs more than it does, and up to sixteen times the time where
    other work keeps the cores busy. And bits must not depend on how many threads there are.
    """
    with _lock, threadpool_limits(1, user_api="blas"):
        yield
