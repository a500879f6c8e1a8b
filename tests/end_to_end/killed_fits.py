"""Fits that are killed again and again: a process of its own, whose children die; see test_kills.py.

python killed_fits.py DIRECTORY N_KILLS FIT ... prints, as JSON, what became of every fit.
"""

import hashlib
import itertools
import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import glfm
from glfm.datasets import make_clinic
from glfm.errors import FileError
from glfm.storage import archive, model_files

FRAME = make_clinic(n_rows=80).frame
SETTINGS = {"random_state": 3, "progress": False, "n_jobs": 2, "thin": 1}
FITS = {
    "one chain": ({"n_chains": 1, "n_warmup": 100, "n_draws": 150}, None),
    "three chains": ({"n_chains": 3, "n_warmup": 100, "n_draws": 100}, None),
    "by shards": ({"n_chains": 2, "n_warmup": 100, "n_draws": 100, "sampler": "hybrid"}, None),
    "until converged": ({"n_chains": 2, "n_warmup": 5, "n_draws": 25}, "converged"),
}


def fit(name: str, path: Path | None = None, **more: object) -> glfm.GLFM:
    """Fit, or go on with it if there is a checkpoint."""
    settings, until = FITS[name]
    model = glfm.GLFM(**{**SETTINGS, **settings, **more})
    if path is None:
        return model.fit(FRAME, until=until)
    resume = path if path.exists() else None
    return model.fit(FRAME, until=until, checkpoint=path, checkpoint_every=0.005, resume=resume)


def digest(model: glfm.GLFM) -> str:
    """Return what no two different sets of draws share."""
    found = hashlib.sha256()
    for draw in model.draws_:
        place = np.array([draw.chain, draw.index, draw.alpha])
        for part in (place, draw.packed, draw.weights, draw.variances, *draw.thetas):
            found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def child(work: Callable[[], None]) -> int:
    """Do something in a process of its own; return its number."""
    number = os.fork()
    if number == 0:
        try:
            work()
        finally:
            os._exit(0)  # a failure shows in what is then not there
    return number


def sweeps(path: Path) -> list[int]:
    """Return where the chains of a checkpoint stand, which must be readable."""
    return [chain.state.sweep for chain in model_files.read(path, glfm.GLFM().get_params())[0].chains]


def leftovers(path: Path) -> int:
    return len(list(path.parent.glob(f".{path.name}.*")))


def at_random(name: str, directory: Path, n_kills: int) -> dict[str, object]:
    """Kill a fit, and the one that goes on from it, and so on, at random times."""
    begin = time.monotonic()
    result: dict[str, object] = {"whole": digest(fit(name))}
    seconds = time.monotonic() - begin
    path, done = directory / "run.ckpt", directory / "done"
    moments = random.Random(name)
    kills, found, reached, in_writing = 0, [], [], 0
    while kills < n_kills or path.exists() or not found:
        number = child(lambda: done.write_text(digest(fit(name, path))) and None)
        if kills < n_kills:
            time.sleep(moments.uniform(0.0, 0.5 * seconds))
            os.kill(number, signal.SIGKILL)
        _, status = os.waitpid(number, 0)
        if os.WIFSIGNALED(status):
            kills += 1
            in_writing += leftovers(path)
            if path.exists():
                reached.append(sweeps(path))
        else:
            found.append(done.read_text() + ("" if leftovers(path) == 0 else " and something was left"))
            done.unlink()
            path.unlink()
    return {**result, "kills": kills, "in_writing": in_writing, "reached": reached, "found": found}


def in_writing(directory: Path) -> dict[str, object]:
    """Kill a fit at chosen places of its third checkpoint, and of the third after that, and so on."""
    path, done = directory / "run.ckpt", directory / "done"

    def die_in(owner: object, name: str, before: bool, n: int = 1) -> None:
        """Die in the n-th call of a function for the third checkpoint."""
        files, calls = itertools.count(1), itertools.count(1)
        made, real = archive.tempfile.mkstemp, getattr(owner, name)
        now = [0]

        def mkstemp(**named: object) -> object:
            now[0] = next(files)
            return made(**named)

        def dies(*arguments: object, **named: object) -> object:
            last = now[0] == 3 and next(calls) == n
            if last and before:
                os.kill(os.getpid(), signal.SIGKILL)
            result = real(*arguments, **named)
            if last:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        archive.tempfile.mkstemp = mkstemp
        setattr(owner, name, dies)

    places: dict[str, tuple[Any, ...]] = {
        "file made": (archive.os, "fdopen", True),
        "half written": (archive, "_write_array", True, 12),
        "not on disk": (archive.os, "fsync", True),
        "not in place": (archive.Path, "replace", True),
        "in place": (archive.Path, "replace", False),
    }
    result: dict[str, object] = {"whole": digest(fit("three chains"))}
    for place, where in places.items():
        before = sweeps(path) if path.exists() else None

        def work(where: tuple[Any, ...] = where) -> None:
            die_in(*where)
            fit("three chains", path)

        _, status = os.waitpid(child(work), 0)
        result[place] = {
            "killed": os.WIFSIGNALED(status),
            "left": leftovers(path),
            "kept": before is None or sweeps(path) >= before,
        }
    os.waitpid(child(lambda: done.write_text(digest(fit("three chains", path))) and None), 0)
    result["found"] = done.read_text()
    path.unlink()
    return result


def full_disk(directory: Path) -> dict[str, object]:
    """Fit until a file becomes larger than the system allows."""
    path, said = directory / "full.ckpt", directory / "said"

    def work() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        model = glfm.GLFM(**{**SETTINGS, "n_chains": 2, "n_warmup": 5, "n_draws": 10**7})
        try:
            model.fit(FRAME, checkpoint=path, checkpoint_every=0.005)
        except FileError as error:
            said.write_text(json.dumps([str(error), len(model.draws_)]))

    os.waitpid(child(work), 0)
    sentence, n_draws = json.loads(said.read_text())
    return {"sentence": sentence, "draws": n_draws, "sweeps": sweeps(path), "left": leftovers(path)}


def main() -> None:
    warnings.simplefilter("ignore", glfm.FitWarning)
    directory, n_kills, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    result = {name: at_random(name, directory, n_kills) for name in names}
    print(json.dumps({**result, "in writing": in_writing(directory), "full disk": full_disk(directory)}))


if __name__ == "__main__":
    main()
