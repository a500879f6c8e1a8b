"""Golden draws, and the compiled kernels beside the same code as plain Python."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import golden as cases
from compare_draws import differing
from compile_kernels import TOGETHER
from glfm.kinds import KINDS
from golden import CASES, CHANGELOG, FILE, MODELS, SAMPLED, bits, changelog_line, differences, here, numbers
from kind_examples import EXAMPLES

AGREE = 1e-12  # relative: sums are reordered by the compiler, and 14 sweeps pass that on
PLAIN = (  # those that take a second or two in plain Python
    *MODELS,
    "collapsed, no bias, bounded",
    "one shard",
    "three shards, pinned rows",
    "weighted, pinned rows",
    "cells of new rows",
)


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(FILE.read_text())


@cache
def fitted(case: str) -> dict[str, Any]:
    return CASES[case]()


# ---- golden draws


@pytest.mark.parametrize("case", CASES)
def test_draws_are_golden(golden: dict[str, Any], case: str) -> None:
    changed = differences(golden["made with"], here())
    if changed:
        pytest.skip(f"golden draws are of another platform: {'; '.join(changed)}")
    assert fitted(case) == golden["draws"][case], (
        "The random stream has changed: if that is meant, run `make golden` and say so in the CHANGELOG."
    )


def test_another_seed_gives_other_draws() -> None:
    assert numbers("real", seed=2) != fitted("real")


def test_a_change_is_in_the_changelog(golden: dict[str, Any]) -> None:
    line = changelog_line(golden["draws"])
    assert line in CHANGELOG.read_text(), f"CHANGELOG.md needs the line: {line}"
    golden["draws"]["real"]["alpha"][0] *= 1.0 + 1e-15
    assert changelog_line(golden["draws"]) != line


def test_every_case_is_in_the_file(golden: dict[str, Any]) -> None:
    assert list(golden["draws"]) == list(CASES)
    assert all(any(golden["draws"][case]["K"]) for case in SAMPLED), "a fit without features pins little"


def test_kernels_are_compiled_before_tests_by_some_of_the_cases() -> None:
    first, second = TOGETHER
    assert {*first, *second} <= set(CASES)
    assert not set(first) & set(second)


def test_every_kind_is_pinned() -> None:
    assert set(cases.KINDS) == set(KINDS), "a new kind needs a line in tests/golden.py, then `make golden`"
    for name, values in cases.KINDS.items():
        pd.testing.assert_series_equal(pd.Series(values), pd.Series(EXAMPLES[name].values.tolist()))


def test_one_bit_or_word_makes_other_bits() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    assert bits(frame) == bits(frame.copy()) == bits(frame.assign(a=[1.0, -np.nan]))
    others = [
        frame.assign(a=[np.nextafter(1.0, 2.0), np.nan]),
        frame.assign(a=[1.0, 0.0]),
        frame.assign(b=["y", None]),
        frame.rename(columns={"b": "c"}),
        [frame, 0.0],
    ]
    assert len({bits(value) for value in [frame, *others, [frame, -0.0]]}) == len(others) + 2


def test_commits_are_compared_part_by_part(golden: dict[str, Any]) -> None:
    old = golden["draws"]
    new = json.loads(json.dumps(old))
    assert differing(old, new) == []
    new["real"]["bits"]["B"] = "another"
    new["one shard"]["alpha"][0] += 1.0
    del new["densities"]
    assert differing(old, new) == ["densities: only in one of them", "one shard: alpha", "real: B"]


def test_what_differs_is_said_by_name() -> None:
    made_with = {"numpy": "2.1", "numba": "0.60", "machine": "x86_64"}
    now = {"numpy": "2.2", "machine": "x86_64", "scipy": "1.13"}
    assert differences(made_with, now) == [
        "numpy: 2.2, not 2.1",
        "numba: nothing, not 0.60",
        "scipy: 1.13, not nothing",
    ]
    assert differences(made_with, made_with) == []


# ---- two ways to run the same code


def plainly_fitted() -> dict[str, Any]:
    """What a process gives in which nothing is compiled."""
    script = Path(FILE).parents[1] / "golden.py"
    done = subprocess.run(
        [sys.executable, str(script), "--print", "--short", *PLAIN],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def shortly_fitted(case: str) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cases.SHORT.items():
            patch.setitem(cases.SCHEDULE, name, value)
        return CASES[case]()


def gaps(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Return the largest relative difference of each list of numbers; infinity where others differ."""
    found = {}
    for name, values in one.items():
        if name == "bits":
            continue
        is_number = [isinstance(value, float) for value in values]
        same = [a == b for a, b, number in zip(values, other[name], is_number, strict=True) if not number]
        pairs = np.array(
            [(a, b) for a, b, number in zip(values, other[name], is_number, strict=True) if number]
        ).reshape(-1, 2)
        gap = np.abs(pairs[:, 0] - pairs[:, 1]) / np.maximum(np.abs(pairs).max(axis=1), 1e-3)
        found[name] = float(gap.max(initial=0.0)) if all(same) else np.inf
    return found


def test_compiled_and_plain_python_agree() -> None:
    """Features, their number and filled levels to the bit, all numbers to rounding."""
    plain = plainly_fitted()
    worst = {case: gaps(shortly_fitted(case), plain[case]) for case in PLAIN}
    assert all(max(gaps.values()) < AGREE for gaps in worst.values()), worst


def test_another_fit_does_not_agree() -> None:
    worst = gaps(numbers("mixed", seed=2), fitted("mixed"))
    assert worst["Z"] == np.inf
    assert min(worst[name] for name in ("alpha", "weights", "log-likelihood", "new rows")) > AGREE
