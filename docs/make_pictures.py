"""Draw the plots of explore.md (clinic, counties) and sensitivity.md (Titanic); the last two tables need GLFM_DATA."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

import glfm
from glfm.plots.artists import Artists
from glfm.plots.style import save
from glfm.plots.us_states import tile_map

IMAGES = Path(__file__).parent / "images"
SETTINGS = {"n_chains": 2, "n_warmup": 300, "n_draws": 50, "random_state": 0}


def keep(name: str, artists: Artists) -> None:
    artists.save(IMAGES / f"plot-{name}.png")


def clinic() -> None:
    model = glfm.GLFM(**SETTINGS).fit(glfm.datasets.make_clinic().frame)
    keep("patterns", model.plot.patterns())
    keep("effects", model.plot.effects())
    keep("shares", model.plot.shares(top=8))
    keep("shares-by", model.plot.shares(top=6, by="ward"))
    keep("features", model.plot.features())
    keep("trace", model.plot.trace())
    keep("missing", model.plot.missing())
    keep("imputed", model.plot.imputed(["crp", "visits", "ward", "pain"]))


def counties() -> None:
    frame, schema, _ = glfm.datasets.load_counties()
    schema |= dict.fromkeys(["county", "state", "msa", "pmsa"], "ignore")
    schema["pop_density"] = glfm.Count(transform="log1p")
    model = glfm.GLFM(schema, **SETTINGS).fit(frame)
    keep("dependence", model.plot.dependence())
    keep("pseudo", model.plot.pseudo("pop_density"))
    keep("map", model.plot.map("state", top=3))
    votes = frame["population"].astype(float) * frame["turnout"] / 100.0
    parties = {"Democrat": "democrat", "Republican": "republican", "Perot": "perot"}
    won = frame.assign(**{party: votes * frame[column] for party, column in parties.items()})
    won = won.groupby("state")[list(parties)].sum(min_count=1).dropna()
    colours = {"Democrat": "#0072B2", "Republican": "#D55E00", "Perot": "#009E73"}
    keep("election", tile_map(won.idxmax(axis=1), colours=colours, title="Most votes for president, 1992"))


def gap(table: pd.DataFrame) -> tuple[float, float]:
    lived, died = (table.loc[table["survived"] == answer, "age"].astype(float) for answer in ("yes", "no"))
    return lived.mean() - died.mean(), lived.var() / lived.size + died.var() / died.size


def titanic() -> None:
    frame, schema, _ = glfm.datasets.load_titanic()
    schema |= dict.fromkeys(["boat", "home_dest"], "ignore")
    model = glfm.GLFM(schema, **SETTINGS).fit(frame)
    result = model.sensitivity("age", np.arange(-2, 2.01, 0.5), statistic=gap, threshold=0)
    print(result)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    result.plot(figure.subplots())
    save(figure, IMAGES / "sensitivity.png")


if __name__ == "__main__":
    clinic()
    titanic()
    counties()
