"""Text of numbers, shares, probabilities and names."""

from __future__ import annotations

import math

from glfm.frames.times import format_days
from glfm.kinds.base import Kind

MINUS = "\u2212"
DASH = "\u2013"  # between the ends of a range
UNKNOWN = "\u2013"  # in a table, for want of a number
_SPACE = "\u00a0"  # no line break between a number and its sign
_SMALL = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def percent(share: float) -> str:
    """Return a share in per cent, never rounded to 0 or 100."""
    if not math.isfinite(share):
        return "unknown"
    value = 100.0 * share
    if value in (0.0, 100.0):
        text = f"{value:.0f}"
    elif value < 0.1:
        text = "under 0.1"
    elif value < 9.95:
        text = f"{value:.1f}".removesuffix(".0")
    elif value > 99.5:
        text = "over 99"
    else:
        text = f"{value:.0f}"
    return f"{text}{_SPACE}%"


def number(value: float) -> str:
    """Return a number with three or four significant digits."""
    if not math.isfinite(value):
        return "unknown"
    size = abs(value)
    if size >= 1e9 or 0 < size < 1e-3:
        return f"{value:.3g}".replace("-", MINUS)
    if size >= 1000:
        text = f"{value:,.0f}"
    elif size >= 100:
        text = f"{value:.1f}".removesuffix(".0")
    else:
        text = f"{value:.3g}"
    return text.replace("-", MINUS)


def value(kind: Kind, x: float) -> str:
    """Return a value of a column of numbers; days become dates, times or durations."""
    time = kind.time
    return number(x) if time is None or not math.isfinite(x) else format_days(x, time)


def pair(kind: Kind, a: float, b: float) -> tuple[str, str]:
    """Return two values of a column, with as many decimals as the larger needs, or more to differ."""
    size = max(abs(a), abs(b))
    is_plain = kind.time is None and math.isfinite(a) and math.isfinite(b) and 0.01 <= size < 1000
    if is_plain and not (a == round(a) and b == round(b)):
        digits = 3 if size < 0.1 else max(2 - math.floor(math.log10(max(1.005 * size, 1.0))), 0)
        texts = [f"{x:.{digits}f}" for x in (a, b)]
        if texts[0] != texts[1]:
            first, second = (text.replace("-", MINUS) for text in texts)
            return first, second
    return value(kind, a), value(kind, b)


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return a number with a noun: "one row", "1,234 rows"."""
    text = _SMALL[n] if n < len(_SMALL) else f"{n:,}"
    return f"{text} {noun if n == 1 else plural or noun + 's'}"


def chance(log_p: float) -> str:
    """Return a probability, given as its logarithm, as "1 in 2,300"."""
    if log_p < math.log(1e-6):
        return "less than 1 in a million"
    odds = math.exp(-log_p)
    digits = -(math.floor(math.log10(odds)) - 1) if odds >= 10 else 0
    return f"1 in {round(odds, digits):,.0f}"


def clipped(text: object, most: int = 60) -> str:
    """Return text cut to `most` characters."""
    whole = str(text)
    return whole if len(whole) <= most else whole[: most - 1].rstrip() + "…"


def listed(parts: list[str]) -> str:
    """Return parts of a sentence as a list: "a, b and c"."""
    return ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else "".join(parts)
