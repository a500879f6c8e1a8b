"""The number of threads of linear algebra is the process's: set while somebody needs it, then restored."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from glfm.kernels.threads import one_blas_thread


def n_threads() -> set[int]:
    np.dot(np.ones(2), np.ones(2))  # loads the library
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        assert n_threads() == {2}
        yield
        assert n_threads() == {2}


@pytest.mark.usefixtures("two_threads")
class TestOneThread:
    def test_nested(self):
        with one_blas_thread():
            with one_blas_thread():
                assert n_threads() == {1}
            assert n_threads() == {1}
        assert n_threads() == {2}

    def test_a_decorator_serves_every_call(self):
        known = one_blas_thread()(n_threads)
        assert known() == known() == {1}

    def test_after_an_error(self):
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            _ = 1 / 0
        assert n_threads() == {2}


def test_several_threads():
    before, known = n_threads(), one_blas_thread()(n_threads)
    with ThreadPoolExecutor(4) as pool:
        assert all(seen == {1} for seen in pool.map(lambda _: known(), range(40)))
    assert n_threads() == before
