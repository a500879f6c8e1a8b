"""What became of the inputs that properties were tried on."""

from collections import Counter
from collections.abc import Callable

import pytest


@pytest.fixture
def tell_inputs(tell: Callable[[str], None]) -> Callable[[Counter[str]], None]:
    """Say how many inputs there were, and what became of them."""

    def say(outcomes: Counter[str]) -> None:
        each = ", ".join(f"{n:,} {what}" for what, n in sorted(outcomes.items()))
        tell(f"{sum(outcomes.values()):,} inputs ({each})")

    return say
