"""Run the notebooks of docs/notebooks and keep what they show: `make notebooks`."""

import hashlib
import os
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))
SECONDS = 300  # for one cell; the first fit of an installation compiles the sampler


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook with what its cells show now; files that they write go to the folder."""
    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")  # debuggers of kernels warn without it
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=SECONDS, resources=resources, coalesce_streams=True).execute()
    for cell in code_cells(notebook):
        cell.metadata.pop("execution", None)  # times, which differ in every run
    notebook.metadata.pop("language_info", None)  # the version of Python, likewise
    notebook.metadata["shows"] = fingerprint(notebook)
    return notebook


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """Return the cells that are run."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def fingerprint(notebook: nbformat.NotebookNode) -> str:
    """Return a hash of the code: outputs that were kept with another one are stale."""
    return hashlib.sha256("\n\n".join(cell.source for cell in code_cells(notebook)).encode()).hexdigest()[:16]


def stale(notebook: nbformat.NotebookNode) -> list[str]:
    """Return why the outputs that a notebook is kept with are not those of its code."""
    reasons = []
    if notebook.metadata.get("shows") != fingerprint(notebook):
        reasons.append("The code is not that of `make notebooks`.")
    if [cell.execution_count for cell in code_cells(notebook)] != list(
        range(1, len(code_cells(notebook)) + 1)
    ):
        reasons.append("The cells were not run once each, in order.")
    return reasons


def shown(notebook: nbformat.NotebookNode) -> list[list[tuple[str, ...]]]:
    """Return what each cell shows, as the types of its outputs."""
    return [
        [(output.output_type, *sorted(output.get("data", {}))) for output in cell.outputs]
        for cell in code_cells(notebook)
    ]


def main() -> None:
    """Run every notebook, or those that are named, and write what they show into them."""
    names = sys.argv[1:]
    for path in NOTEBOOKS:
        if names and path.stem not in names:
            continue
        before = getrusage(RUSAGE_CHILDREN)
        nbformat.write(run(path, path.parent), path)
        after = getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"{path.name}: {used:.0f} s of processor, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
