"""Fits that are stopped by trouble with a file or by Ctrl-C leave what can be gone on from."""

import errno
import itertools
import os
import signal
import threading
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import glfm
from glfm.errors import FileError, FitWarning, SamplerError
from glfm.frames.frame import Frame
from glfm.sampling.chain import Chain
from glfm.sampling.priors import Priors, Schedule
from glfm.sampling.problem import LocalProblem
from glfm.schema.encoding import encode
from glfm.storage import model_files
from glfm.testing import assert_same_draws
from stopped_fits import ENDLESS, SETTINGS, fit, fit_one_sweep
from tables import patients


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return patients()


@pytest.fixture(scope="module")
def whole(frame) -> glfm.GLFM:
    return fit(frame)


@pytest.fixture(autouse=True)
def compiled(whole):
    """What stops a fit must not come while its kernels are compiled."""


class TestTrouble:
    """The disk is full, the directory is gone, a chain fails: the last good checkpoint stays."""

    def test_a_full_disk(self, frame, tmp_path, monkeypatch):
        path, real, count = tmp_path / "run.ckpt", os.fsync, itertools.count()

        def full(handle):
            if next(count) >= 6:  # each file takes two: itself and its directory
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(handle)

        monkeypatch.setattr(os, "fsync", full)
        model = glfm.GLFM(**ENDLESS)
        sentence = (
            r"cannot be written: No space left on device, so that the fit was stopped after \d+, \d+ of"
        )
        with pytest.raises(FileError, match=sentence):
            model.fit(frame, checkpoint=path, checkpoint_every=1e-3)
        monkeypatch.undo()
        self.is_usable_and_resumable(model, frame, path)
        assert list(tmp_path.iterdir()) == [path]

    def test_a_directory_that_vanishes(self, frame, tmp_path):
        here, gone = tmp_path / "here", tmp_path / "gone"
        here.mkdir()
        threading.Timer(0.5, here.rename, (gone,)).start()
        model = glfm.GLFM(**ENDLESS)
        with pytest.raises(FileError, match="cannot be written: No such file or directory, so that the fit"):
            model.fit(frame, checkpoint=here / "run.ckpt", checkpoint_every=1e-3)
        self.is_usable_and_resumable(model, frame, gone / "run.ckpt")

    def is_usable_and_resumable(self, model, frame, path):
        assert len(model.draws_) >= 1
        assert not model.impute().isna().any().any()
        found = model_files.read(path, model.get_params())[0]
        sweeps = [chain.state.sweep for chain in found.chains]
        again = fit_one_sweep(frame, ENDLESS, resume=path)
        assert [chain.state.sweep for chain in again.fit_.chains] == [sweep + 1 for sweep in sweeps]

    def test_at_the_very_end(self, frame, whole, tmp_path, monkeypatch):
        real, count = os.fsync, itertools.count()

        def full(handle):
            if next(count) >= 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(handle)

        monkeypatch.setattr(os, "fsync", full)
        model = glfm.GLFM(**SETTINGS)
        with pytest.raises(FileError, match="the fit itself is complete"):
            model.fit(frame, checkpoint=tmp_path / "run.ckpt", checkpoint_every=3600)
        assert_same_draws(model.draws_, whole.draws_)

    def test_one_chain_fails(self, frame, tmp_path, monkeypatch):
        from glfm.sampling.collapsed import CollapsedSampler

        real = CollapsedSampler.draw_weights

        def fails(self, state, matrices):
            if state.sweep == 9:
                raise SamplerError("The weights are not finite.")
            real(self, state, matrices)

        monkeypatch.setattr(CollapsedSampler, "draw_weights", fails)
        model = glfm.GLFM(**ENDLESS)
        with pytest.raises(SamplerError):  # and the other chain does not go on forever
            model.fit(frame, checkpoint=tmp_path / "run.ckpt", checkpoint_every=1e-3)
        assert not hasattr(model, "draws_"), "a fit with a fault in it is none"
        assert model_files.read_stage(tmp_path / "run.ckpt") == model_files.Stage()


class StopsAt(threading.Event):
    """A stop that is asked for when somebody looks for the n-th time."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.left = n

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_sweep_that_is_given_up_leaves_no_trace(frame):
    """Wherever a sweep is stopped, the chain stands before it and goes on as if nothing had been."""
    read = Frame.read(patients(5000).drop(columns="ward"))
    schema = glfm.Schema.infer(read, None)
    problem = LocalProblem(schema.kinds, encode(read, schema.kinds), Priors())

    def chain():
        return Chain(problem, Schedule(1, 3), np.random.SeedSequence(5))

    whole, stopped = chain(), chain()
    list(whole)
    looks = StopsAt(10**9)
    list(chain().sweeps(looks))
    n_looks = 10**9 - looks.left
    assert n_looks > 4 * 6  # several in every sweep: 3 blocks of rows, moves, 3 blocks of cells, the end
    for n in range(n_looks // 4):
        before, state = stopped.state.sweep, stopped.state
        for _ in stopped.sweeps(StopsAt(n)):
            pytest.fail("the sweep was not stopped")
        assert stopped.state is state
        assert (stopped.state.sweep, stopped.draws) == (before, [])
    assert len(list(stopped.sweeps(StopsAt(10**9)))) == 4
    assert_same_draws(stopped.draws, whole.draws)
    assert_array_equal(whole.state.rng, stopped.state.rng)


class TestInterrupt:
    """Ctrl-C, really sent, once the first checkpoint after the start has been written."""

    @pytest.fixture
    def interrupt(self, monkeypatch):
        """Send Ctrl-C when n checkpoints have been written, the last of chains that have made a sweep."""
        from glfm.storage.checkpoints import Checkpoint

        def after(n: int, took: float = 0.0, swept: bool = True) -> None:
            real, count = Checkpoint.save, itertools.count(1)
            sent = threading.Event()

            def save(self, chains):
                ready = not swept or all(chain.state.sweep for chain in chains)
                real(self, chains)
                self.took = took
                if next(count) >= n and ready and not sent.is_set():
                    sent.set()
                    os.kill(os.getpid(), signal.SIGINT)

            monkeypatch.setattr(Checkpoint, "save", save)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        yield after
        signal.signal(signal.SIGINT, before)

    @pytest.mark.parametrize("settings", [ENDLESS, {**ENDLESS, "n_warmup": 10**7}], ids=["draws", "warm-up"])
    def test_usable_savable_continuable(self, settings, interrupt, frame, tmp_path):
        path = tmp_path / "run.ckpt"
        interrupt(3)
        with pytest.warns(FitWarning, match=r"interrupted after \d+, \d+ of"):
            model = glfm.GLFM(**settings).fit(frame, checkpoint=path, checkpoint_every=0.05)
        assert not model.impute().isna().any().any()
        sweeps = [chain.state.sweep for chain in model.fit_.chains]
        assert min(sweeps) > 0
        again = glfm.load(model.save(tmp_path / "m.glfm"))
        assert_same_draws(again.draws_, model.draws_)
        found, _ = model_files.read(path, model.get_params())
        assert [chain.state.sweep for chain in found.chains] == sweeps, "the last sweep is in the checkpoint"
        resumed = fit_one_sweep(frame, settings, resume=path)
        assert [chain.state.sweep for chain in resumed.fit_.chains] == [sweep + 1 for sweep in sweeps]

    def test_nobody_waits_for_a_large_file(self, interrupt, frame, tmp_path):
        path = tmp_path / "run.ckpt"
        interrupt(3, took=5.0)
        model = fit(frame, ENDLESS, checkpoint=path, checkpoint_every=0.05)
        kept = [chain.state.sweep for chain in model_files.read(path, model.get_params())[0].chains]
        assert all(0 < a <= chain.state.sweep for a, chain in zip(kept, model.fit_.chains, strict=True))
        assert len(model.draws_) >= 2

    def test_without_a_sweep_there_is_no_fit(self, interrupt, frame, whole, tmp_path, monkeypatch):
        from glfm.sampling.collapsed import CollapsedSampler
        from glfm.sampling.shard import Stopped

        def waits(self, state, adapt, stop):
            stop.wait()
            raise Stopped

        monkeypatch.setattr(CollapsedSampler, "sweep", waits)
        interrupt(2, swept=False)
        model = glfm.GLFM(**SETTINGS)
        with pytest.raises(KeyboardInterrupt):
            model.fit(frame, checkpoint=tmp_path / "run.ckpt", checkpoint_every=1e-3)
        with pytest.raises(Exception, match="not fitted"):
            model.impute()
        monkeypatch.undo()
        assert_same_draws(fit(frame, resume=tmp_path / "run.ckpt").draws_, whole.draws_)

    def test_a_chain_that_does_not_listen_is_left_behind(
        self, interrupt, frame, whole, tmp_path, monkeypatch
    ):
        """As one does that is being compiled: what it finishes later changes nothing."""
        from glfm.sampling.collapsed import CollapsedSampler

        real, let_go, deaf_threads = CollapsedSampler.sweep, threading.Event(), []

        def deaf(self, state, adapt, stop):
            if state.sweep == 7 and len(deaf_threads) < 2:
                deaf_threads.append(threading.current_thread())
                let_go.wait()
            real(self, state, adapt)

        monkeypatch.setattr(CollapsedSampler, "sweep", deaf)
        interrupt(40)
        with pytest.warns(FitWarning, match="interrupted after 7, 7 of"):
            model = glfm.GLFM(**SETTINGS, n_jobs=2).fit(
                frame, checkpoint=tmp_path / "run.ckpt", checkpoint_every=0.01
            )
        before = deepcopy(model.draws_)
        left = [chain.sampler for chain in model.fit_.chains]
        let_go.set()
        for thread in deaf_threads:
            thread.join()
        assert [chain.state.sweep for chain in model.fit_.chains] == [7, 7]
        assert_same_draws(model.draws_, before)
        assert all(set(vars(sampler)) <= {"problem", "pool"} for sampler in left), "no work space is shared"
        assert_same_draws(fit(frame, resume=tmp_path / "run.ckpt").draws_, whole.draws_)
        assert_same_draws(model.continue_fit(2).draws_, fit(frame, {**SETTINGS, "n_draws": 6}).draws_)
