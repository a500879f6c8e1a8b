"""Load: thousands of small tables in one process and from several threads, with memory that stays."""

import json
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import soak

pytestmark = pytest.mark.reliability

MOST = 2500  # bytes per table, of the roughly 40,000 that a model would leave behind if it stayed


def run(*arguments: str) -> tuple[list[int], list[str]]:
    """Soak a process of its own, whose memory no other test has touched."""
    if not soak.STATUS.exists():
        pytest.skip("the memory of a process is read from /proc, which this system has not")
    command = [sys.executable, str(Path(soak.__file__)), *arguments]
    return tuple(json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout))


@cache
def one_after_the_other() -> tuple[list[int], list[str]]:
    return run("3000")


def leftover(n_tables: int, leak: bool) -> float:
    """Return how many bytes Python and NumPy hold on to per table."""
    tracemalloc.start()
    try:
        return soak.growth(soak.soak(n_tables, leak=leak, measure=soak.traced)[0])
    finally:
        tracemalloc.stop()


def test_a_table_leaves_nothing_behind() -> None:
    soak.soak(8)  # what is loaded or learnt once, by these very tables
    assert leftover(8, leak=False) < MOST
    assert leftover(8, leak=True) > 10 * MOST


def test_fits_in_threads_are_those_made_alone() -> None:
    alone = [soak.digest(soak.fit(seed)) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        assert [soak.digest(model) for model in pool.map(soak.fit, range(8))] == alone
    assert soak.digest(soak.fit(8)) not in alone


def test_fits_in_threads_leave_linear_algebra_its_threads() -> None:
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(4) as pool:
        before = [library["num_threads"] for library in threadpool_info()]
        list(pool.map(soak.fit, range(12)))
        assert [library["num_threads"] for library in threadpool_info()] == before


@pytest.mark.slow
def test_memory_stays_over_thousands_of_tables(tell) -> None:
    grown = soak.growth(one_after_the_other()[0])
    tell(f"3,000 tables: {grown:.0f} bytes more per table")
    assert grown < MOST


@pytest.mark.slow
def test_four_threads_give_the_same_and_keep_memory(tell) -> None:
    sizes, digests = run("2000", "4")
    assert digests == one_after_the_other()[1][:2000]
    tell(f"2,000 tables in four threads: {soak.growth(sizes):.0f} bytes more per table")
    assert soak.growth(sizes) < MOST


@pytest.mark.slow
def test_a_leak_is_seen(tell) -> None:
    grown = soak.growth(run("400", "--leak")[0])
    tell(f"models that are kept on purpose: {grown:,.0f} bytes more per table")
    assert grown > 10 * MOST
