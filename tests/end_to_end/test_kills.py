"""Nothing is lost: processes that are really killed, at random times and in the middle of a write."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import glfm
from glfm.datasets import make_clinic
from glfm.storage.model_files import read
from glfm.testing import assert_same_draws

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")

PROGRAM = Path(__file__).with_name("killed_fits.py")


def killed_fits(directory: Path, n_kills: int, *names: str) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), str(directory), str(n_kills), *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return killed_fits(tmp_path_factory.mktemp("kills"), 2, "one chain", "three chains")


@pytest.mark.parametrize("name", ["one chain", "three chains"])
def test_killed_at_random_times(fits: dict[str, Any], name: str) -> None:
    result = fits[name]
    assert result["kills"] == 2
    assert set(result["found"]) == {result["whole"]}


def test_draws_of_other_fits_differ(fits: dict[str, Any]) -> None:
    assert fits["one chain"]["whole"] != fits["three chains"]["whole"]


def test_killed_in_writing(fits: dict[str, Any]) -> None:
    result = fits["in writing"]
    assert result["found"] == result["whole"]
    places = {name: result[name] for name in result if name not in ("found", "whole")}
    assert all(place["killed"] and place["kept"] for place in places.values()), places
    # A process that dies leaves at most the file that it was writing, which the next one removes.
    assert [place["left"] for place in places.values()] == [1, 1, 1, 1, 0]


def test_a_disk_that_is_full(fits: dict[str, Any]) -> None:
    result = fits["full disk"]
    assert "cannot be written: File too large, so that the fit was stopped after" in result["sentence"]
    assert result["draws"] >= 2
    assert min(result["sweeps"]) > 0
    assert result["left"] == 0


@pytest.mark.reliability
def test_killed_dozens_of_times(tmp_path: Path, tell: Callable[[str], None]) -> None:
    names = ["one chain", "three chains", "by shards", "until converged"]
    result = killed_fits(tmp_path, 40, *names)
    for name in names:
        assert result[name]["kills"] == 40
        assert set(result[name]["found"]) == {result[name]["whole"]}
        kills, in_writing = result[name]["kills"], result[name]["in_writing"]
        tell(f"{name}: {kills} kills survived, {in_writing} of them while a file was written")


# ---- the command line, in fresh processes


class Command:
    """`glfm fit` of a table with a checkpoint."""

    def __init__(self, directory: Path, draws: int, chains: int = 2) -> None:
        self.directory = directory
        self.draws, self.chains = draws, chains
        make_clinic(n_rows=80).frame.to_csv(directory / "table.csv", index=False)
        self.checkpoint, self.output = directory / "run.ckpt", directory / "m.glfm"

    def start(self) -> subprocess.Popen[str]:
        options = ["--chains", str(self.chains), "--draws", str(self.draws), "--seed", "5", "--quiet"]
        options += ["--checkpoint", "run.ckpt", "--checkpoint-every", "0.02"]
        command = [sys.executable, "-m", "glfm", "fit", "table.csv", "-o", "m.glfm", *options]
        return subprocess.Popen(
            command,
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Children of a shell's background jobs would ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
        )

    def started(self) -> subprocess.Popen[str]:
        """Return the process once all its chains have made sweeps that are in the checkpoint."""
        before = self.sweeps()
        process = self.start()
        while process.poll() is None and self.sweeps() <= before:
            time.sleep(0.03)
        return process

    def sweeps(self) -> int:
        """Return how many sweeps the slowest chain has made by its checkpoint."""
        if not self.checkpoint.exists():
            return 0
        return min(chain.state.sweep for chain in read(self.checkpoint, glfm.GLFM().get_params())[0].chains)

    def kill(self, process: subprocess.Popen[str]) -> bool:
        """Kill; return whether there was still something to kill."""
        process.kill()
        process.communicate()
        return process.returncode == -signal.SIGKILL

    def finish(self) -> str:
        process = self.start()
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert out.startswith("Wrote m.glfm.")
        assert not self.checkpoint.exists()
        return err


def uninterrupted(command: Command) -> glfm.GLFM:
    from glfm.files import read_table

    model = glfm.GLFM(n_chains=command.chains, n_draws=command.draws, random_state=5, progress=False)
    with warnings.catch_warnings():  # of an order that is read into levels, which the command says too
        warnings.simplefilter("ignore", glfm.FitWarning)
        return model.fit(read_table(command.directory / "table.csv"))


def test_the_same_command_again(tmp_path: Path) -> None:
    command = Command(tmp_path, draws=60)
    assert command.kill(command.started())
    assert not command.output.exists()
    assert command.finish().startswith("glfm: going on from the checkpoint run.ckpt.\n")
    assert_same_draws(glfm.load(command.output).draws_, uninterrupted(command).draws_)
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", "m.glfm"}


@pytest.mark.reliability
@pytest.mark.parametrize("chains", [1, 3])
def test_the_same_command_again_and_again(tmp_path: Path, chains: int, tell: Callable[[str], None]) -> None:
    """At random times from the start of the process on; half of them once it has written something."""
    command = Command(tmp_path, draws=3000 // chains, chains=chains)
    whole, moments, kills = uninterrupted(command), random.Random(chains), 0
    begin = time.monotonic()
    command.finish()
    seconds = time.monotonic() - begin
    assert_same_draws(glfm.load(command.output).draws_, whole.draws_)
    command.output.unlink()
    for i in range(24):
        process = command.start() if i % 2 else command.started()
        time.sleep(moments.uniform(0.0, seconds if i % 2 else 0.3 * seconds))
        kills += command.kill(process)
    command.finish()
    tell(f"{chains} chains: {kills} kills of fresh processes survived")
    assert kills >= 12
    assert_same_draws(glfm.load(command.output).draws_, whole.draws_)


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.reliability), signal.SIGTERM]
)
def test_ctrl_c_and_sigterm_keep_what_there_is(tmp_path: Path, number: signal.Signals) -> None:
    command = Command(tmp_path, draws=10**6)
    process = command.started()
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert "glfm: The fit was interrupted after" in err
    assert err.endswith("glfm: the same command goes on from the checkpoint run.ckpt.\n")
    assert out.startswith("Wrote m.glfm.")
    assert not glfm.load(command.output).impute().isna().any().any()
    assert command.checkpoint.exists()
