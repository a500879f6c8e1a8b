"""Numbers in words."""

import numpy as np

from glfm.kinds import KINDS
from glfm.report.formatting import chance, clipped, counted, listed, number, pair, percent


def test_words() -> None:
    shares = (0, 1e-5, 0.003, 0.02, 0.391, 0.997, 1)
    said = ["0", "under 0.1", "0.3", "2", "39", "over 99", "100"]
    assert [percent(share).replace("\xa0%", "") for share in shares] == said
    assert [number(value) for value in (0, 1.23456, -12.5, 123.45, 1_234_567, np.nan)] == [
        "0",
        "1.23",
        "\u221212.5",
        "123.5",
        "1,234,567",
        "unknown",
    ]
    assert [counted(n, "row") for n in (0, 1, 2, 1200)] == ["no rows", "one row", "two rows", "1,200 rows"]
    assert [chance(np.log(p)) for p in (0.3, 1 / 2345, 1e-9)] == [
        "1 in 3",
        "1 in 2,300",
        "less than 1 in a million",
    ]
    assert clipped("abcdef", 4) == "abc…"
    assert [listed(list(parts)) for parts in ("", "a", "ab", "abc")] == ["", "a", "a and b", "a, b and c"]
    real = KINDS["real"]()
    pairs = [(0.0767, 1.01), (9.14, 72.9), (39.0, 24.0), (0.02, 0.031), (12.01, 12.02), (-1.1, 2500.0)]
    assert [pair(real, *ends) for ends in pairs] == [
        ("0.08", "1.01"),
        ("9.1", "72.9"),
        ("39", "24"),
        ("0.020", "0.031"),
        ("12", "12"),
        ("\u22121.1", "2,500"),
    ]
