"""What a wheel and a source distribution hold: `make dist` runs this on the directory that it made."""

import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

CACHES = {".nbi", ".nbc", ".pyc", ".pyo"}
WANTED = {
    ".whl": ("glfm/__init__.py", "glfm/py.typed", "/licenses/LICENSE"),
    ".gz": ("src/glfm/py.typed", "LICENSE", "CITATION.cff", "CHANGELOG.md", "Makefile", "pyproject.toml"),
}
TOO_MUCH = {".whl": ("tests/", "docs/", "benchmarks/"), ".gz": ("docs/_build/", ".venv", "dist/")}


def names(archive: Path) -> list[str]:
    """Return the files of a wheel or of a source distribution, without the directory around the latter."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as file:
            return file.namelist()
    with tarfile.open(archive) as file:
        return [name.split("/", 1)[1] for name in file.getnames() if "/" in name]


def faults(archive: Path) -> list[str]:
    """Return what is missing in an archive, and what should not be in it."""
    held = names(archive)
    missing = [
        f"{end} is missing" for end in WANTED[archive.suffix] if not any(n.endswith(end) for n in held)
    ]
    caches = [f"{name} is a cache" for name in held if PurePosixPath(name).suffix in CACHES]
    others = [f"{name} does not belong there" for name in held if name.startswith(TOO_MUCH[archive.suffix])]
    return [f"{archive.name}: {fault}" for fault in missing + caches + others]


def main() -> int:
    """Print what is held and what is wrong, and return how many faults there are."""
    archives = [path for path in sorted(Path(sys.argv[1]).iterdir()) if path.suffix in WANTED]
    found = [fault for archive in archives for fault in faults(archive)]
    for archive in archives:
        print(f"{archive.name}: {len(names(archive))} files, {archive.stat().st_size // 1000} kB")
    if len(archives) != len(WANTED):
        found.append(f"There are {len(archives)} archives, not a wheel and a source distribution.")
    print("\n".join(found), end="\n" if found else "")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
