"""Whether two commits draw the same: the golden cases in two environments, to the last bit.

    python tests/compare_draws.py ../before/.venv/bin/python [.venv/bin/python]

Each environment has its own glfm; the cases are those beside this script. The second is the present one if
it is left out. Environments with other versions of NumPy or Numba may differ for that reason alone.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def printed(python: str) -> dict[str, Any]:
    """Return what the golden cases give under an interpreter."""
    script = Path(__file__).parent / "golden.py"
    done = subprocess.run([python, str(script), "--print"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in words which parts of which cases are not the same."""
    lines = [f"{case}: only in one of them" for case in old.keys() ^ new.keys()]
    for case in old.keys() & new.keys():
        pairs = (old[case], new[case]), (old[case]["bits"], new[case]["bits"])
        parts = {name for a, b in pairs for name in a | b if a.get(name) != b.get(name)} - {"bits"}
        if parts:
            lines.append(f"{case}: {', '.join(sorted(parts))}")
    return sorted(lines)


def main() -> None:
    """Compare, say what differs, and exit with 1 if anything does."""
    parser = argparse.ArgumentParser(description="Whether two environments draw the same, to the last bit.")
    parser.add_argument("old", help="the Python interpreter of one environment")
    parser.add_argument("new", nargs="?", default=sys.executable, help="that of the other; the present one")
    chosen = parser.parse_args()
    old = printed(chosen.old)
    lines = differing(old, printed(chosen.new))
    print("\n".join(lines) if lines else f"All {len(old)} cases are the same to the last bit.")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
