"""Golden draws: what tiny fits of every kind give on one platform, to the last bit.

`make golden` rewrites the file and says which line the CHANGELOG needs; with --print this script shows the
numbers of its own process, compiled or not.
"""

import hashlib
import json
import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pandas as pd

from glfm import GLFM
from glfm.kinds import KINDS
from kind_examples import example_of

FILE = Path(__file__).parent / "data" / "golden.json"
CHANGELOG = Path(__file__).parents[1] / "CHANGELOG.md"
MODELS = (*sorted(KINDS), "mixed")
SEED = 1


def here() -> dict[str, str]:
    """Return everything on which the last bit of a draw may depend."""
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": llvmlite.binding.get_host_cpu_name(),
        "C library": " ".join(platform.libc_ver()),
        "Python": ".".join(platform.python_version_tuple()[:2]),
        **{name: version(name) for name in ("numpy", "scipy", "numba", "llvmlite")},
        "kernels": "plain Python" if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0" else "compiled",
    }


def differences(made_with: dict[str, str], now: dict[str, str]) -> list[str]:
    """Return in words what is not as it was when the golden draws were made."""
    names = made_with | now
    return [
        f"{name}: {now.get(name, 'nothing')}, not {made_with.get(name, 'nothing')}"
        for name in names
        if now.get(name) != made_with.get(name)
    ]


def column(name: str, turn: int) -> pd.Series:
    """Return the example of a kind, twice, from another row on."""
    example = example_of(name)
    values = np.roll(np.concatenate([example.values, example.values[::-1]]), turn)
    if example.type == "ordered":
        return pd.Series(pd.Categorical(values, categories=example.declared_levels, ordered=True))
    return pd.Series(values)


def table(model: str) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return twelve rows with holes and their schema: three columns of one kind, or one of each."""
    kinds = {name: name for name in sorted(KINDS)} if model == "mixed" else dict.fromkeys("abc", model)
    columns = {name: column(kind, 5 * d) for d, (name, kind) in enumerate(kinds.items())}
    return pd.DataFrame(columns), kinds


def numbers(model: str, seed: int = SEED) -> dict[str, Any]:
    """Return what a fit draws, fills in, and says of rows it has never seen."""
    frame, schema = table(model)
    fitted = GLFM(schema, n_chains=2, n_warmup=15, n_draws=3, thin=2, random_state=seed, progress=False).fit(
        frame[:-2]
    )
    draws, new = fitted.draws_, frame[-2:]
    sampled, holes = fitted.impute(how="sample"), frame[:-2].isna().to_numpy()
    filled = [sampled.iloc[n, d] for n, d in np.argwhere(holes)]
    scores = fitted.log_likelihood(new.ffill(axis=0).bfill(axis=0), new)
    return {
        "K": [draw.n_features for draw in draws],
        "Z": [draw.packed.tobytes().hex() for draw in draws],
        "alpha": [draw.alpha for draw in draws],
        "weights": [float(np.abs(draw.weights).sum()) for draw in draws],
        "noise": [float(np.log(draw.variances).sum()) for draw in draws],
        "thresholds": [float(sum(theta.sum() for theta in draw.thetas)) for draw in draws],
        "log-likelihood": [draw.log_likelihood for draw in draws],
        "filled": [value if isinstance(value, str) else float(value) for value in filled],
        "new rows": [float(value) for value in scores.to_numpy().ravel() if not np.isnan(value)],
    }


def digest(draws: dict[str, Any]) -> str:
    """Return a short name of golden draws."""
    return hashlib.sha256(json.dumps(draws, sort_keys=True).encode()).hexdigest()[:8]


def changelog_line(draws: dict[str, Any]) -> str:
    """Return what the CHANGELOG must say of them."""
    return f"Random stream: golden draws {digest(draws)}"


def main() -> None:
    """Write the golden draws of this platform, or show them."""
    draws = {model: numbers(model) for model in MODELS}
    if "--print" in sys.argv:
        print(json.dumps(draws))
        return
    FILE.write_text(json.dumps({"made with": here(), "draws": draws}, indent=1) + "\n")
    said = changelog_line(draws) in CHANGELOG.read_text()
    print(changelog_line(draws), "- in the CHANGELOG" if said else "- put this line into the CHANGELOG")


if __name__ == "__main__":
    main()
