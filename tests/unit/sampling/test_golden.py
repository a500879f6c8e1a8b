"""Golden draws, and the compiled kernels beside the same code as plain Python."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden import CHANGELOG, FILE, MODELS, changelog_line, differences, here, numbers

AGREE = 1e-12  # relative: sums are reordered by the compiler, and 21 sweeps pass that on


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    return json.loads(FILE.read_text())


@cache
def fitted(model: str) -> dict[str, Any]:
    return numbers(model)


# ---- golden draws


@pytest.mark.parametrize("model", MODELS)
def test_draws_are_golden(golden: dict[str, Any], model: str) -> None:
    changed = differences(golden["made with"], here())
    if changed:
        pytest.skip(f"golden draws are of another platform: {'; '.join(changed)}")
    assert fitted(model) == golden["draws"][model], (
        "The random stream has changed: if that is meant, run `make golden` and say so in the CHANGELOG."
    )


def test_another_seed_gives_other_draws() -> None:
    assert numbers("real", seed=2) != fitted("real")


def test_a_change_is_in_the_changelog(golden: dict[str, Any]) -> None:
    line = changelog_line(golden["draws"])
    assert line in CHANGELOG.read_text(), f"CHANGELOG.md needs the line: {line}"
    golden["draws"]["real"]["alpha"][0] *= 1.0 + 1e-15
    assert changelog_line(golden["draws"]) != line


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


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """What a process gives in which nothing is compiled."""
    script = Path(FILE).parents[1] / "golden.py"
    done = subprocess.run(
        [sys.executable, str(script), "--print"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def gaps(one: dict[str, Any], other: dict[str, Any]) -> dict[str, float]:
    """Return the largest relative difference of each list of numbers; infinity where others differ."""
    found = {}
    for name, values in one.items():
        is_number = [isinstance(value, float) for value in values]
        same = [a == b for a, b, number in zip(values, other[name], is_number, strict=True) if not number]
        pairs = np.array(
            [(a, b) for a, b, number in zip(values, other[name], is_number, strict=True) if number]
        ).reshape(-1, 2)
        gap = np.abs(pairs[:, 0] - pairs[:, 1]) / np.maximum(np.abs(pairs).max(axis=1), 1e-3)
        found[name] = float(gap.max(initial=0.0)) if all(same) else np.inf
    return found


@pytest.mark.parametrize("model", MODELS)
def test_compiled_and_plain_python_agree(plain: dict[str, Any], model: str) -> None:
    """Features, their number and filled levels to the bit, all numbers to rounding."""
    worst = gaps(fitted(model), plain[model])
    assert max(worst.values()) < AGREE, worst


def test_another_fit_does_not_agree() -> None:
    worst = gaps(numbers("mixed", seed=2), fitted("mixed"))
    assert worst["Z"] == np.inf
    assert min(worst[name] for name in ("alpha", "weights", "log-likelihood", "new rows")) > AGREE
