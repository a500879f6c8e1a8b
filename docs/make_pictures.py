"""Draw the pictures of pictures.md: the generated clinic, and the counties of the United States (GLFM_DATA)."""

from __future__ import annotations

from pathlib import Path

import glfm
from glfm.pictures import Artists, tile_map

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
    features = model.features()
    common = list(features.index[features["status"] == "clear"][:3])
    keep("dependence", model.plot.dependence())
    keep("pseudo", model.plot.pseudo("pop_density"))
    keep("map", model.plot.map("state", top=3, features=common))
    votes = frame["population"].astype(float) * frame["turnout"] / 100.0
    parties = {"Democrat": "democrat", "Republican": "republican", "Perot": "perot"}
    won = frame.assign(**{party: votes * frame[column] for party, column in parties.items()})
    won = won.groupby("state")[list(parties)].sum(min_count=1).dropna()
    colours = {"Democrat": "#0072B2", "Republican": "#D55E00", "Perot": "#009E73"}
    keep("election", tile_map(won.idxmax(axis=1), colours=colours, title="Most votes for president, 1992"))


if __name__ == "__main__":
    clinic()
    counties()
