"""What all tests share: the data sets, every registered kind with an example, and fits of small tables."""

import os
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.frames.column import Column
from glfm.kinds import KINDS, Kind
from glfm.testing import assert_same_draws
from kind_examples import example_of
from tables import QUICK, mixed, people


def pytest_configure(config: pytest.Config) -> None:
    """Let ArviZ give its notice of the day before several processes do so at once, and fail over its date."""
    if config.getoption("numprocesses", None) and find_spec("arviz"):
        with warnings.catch_warnings(action="ignore"):
            import arviz  # noqa: F401


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give long tests more time than pyproject.toml does."""
    for item in items:
        if {"slow", "reliability"} & set(item.keywords) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(7200))


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say in words what a test tried and found: shown at the end of a run, and on the page of reliability."""
    return lambda words: record_property("told", words)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests have told."""
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    lines = [
        f"{report.nodeid.split('::')[-1]}: {words}"
        for report in reports
        for name, words in report.user_properties
        if name == "told"
    ]
    if lines:
        terminalreporter.section("tried and found")
        terminalreporter.write_line("\n".join(lines))


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The directory of the data sets, which are never part of the repository."""
    directory = os.environ.get("GLFM_DATA")
    if not directory:
        pytest.skip("GLFM_DATA is not set: it names the directory of the data sets")
    if not Path(directory).is_dir():
        pytest.fail(f"GLFM_DATA names {directory}, which is not a directory")
    return Path(directory)


@pytest.fixture(scope="session", params=sorted(KINDS))
def kind_name(request: pytest.FixtureRequest) -> str:
    """The name of every registered kind, one after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def example(kind_name: str) -> Column:
    """A small column, with a hole, that suits the kind."""
    return example_of(kind_name)


@pytest.fixture(scope="session")
def learnt(kind_name: str, example: Column) -> Kind:
    """The kind, learnt from its example."""
    return KINDS[kind_name]().learn(example)


@pytest.fixture(scope="session", params=sorted(name for name, cls in KINDS.items() if not cls.is_number))
def level_kind(request: pytest.FixtureRequest) -> Kind:
    """Every registered kind whose values are levels, learnt from its example."""
    return KINDS[request.param]().learn(example_of(request.param))


def lent(model: glfm.GLFM) -> Iterator[glfm.GLFM]:
    """Lend a fit to all tests of a session, none of which may change it: what does takes a `deepcopy`."""
    draws = deepcopy(model.draws_)
    yield model
    assert_same_draws(model.draws_, draws)


@pytest.fixture(scope="session")
def mixed_model() -> Iterator[glfm.GLFM]:
    """A fit of `mixed()`, with features: all kinds, holes everywhere, few rows and sweeps."""
    yield from lent(glfm.GLFM(**QUICK | {"n_warmup": 100, "thin": 4, "random_state": 1}).fit(mixed()))


@pytest.fixture(scope="session")
def people_model() -> Iterator[glfm.GLFM]:
    """A fit of `people()` that has found its two traits."""
    yield from lent(
        glfm.GLFM({"weight": "real", "name": "ignore"}, **QUICK | {"n_warmup": 60, "thin": 4}).fit(people())
    )


@pytest.fixture(scope="session")
def weighted_model() -> Iterator[glfm.GLFM]:
    """A fit of `people()` with features that have scores."""
    schema = {"weight": "real", "name": "ignore"}
    yield from lent(glfm.GLFM(schema, weighted=True, **QUICK | {"n_warmup": 60, "thin": 4}).fit(people()))


@pytest.fixture(scope="session")
def clinic_model() -> Iterator[glfm.GLFM]:
    """A fit of the clinic that has found its traits."""
    yield from lent(
        glfm.GLFM(**QUICK | {"n_warmup": 150, "n_draws": 15, "thin": 4}).fit(make_clinic(200).frame)
    )
