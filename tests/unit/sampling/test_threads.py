"""Sweeps leave the threads of linear algebra alone, which wait busily for more and take cores from chains."""

import os
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import glfm
from glfm.sampling.chain import Chain
from glfm.sampling.collapsed import CollapsedSampler


@pytest.fixture(scope="module")
def chain() -> Chain:
    # Linear algebra uses threads for more than 10,000 numbers.
    table = glfm.datasets.make_clinic(1500).frame
    model = glfm.GLFM(n_chains=1, n_warmup=2, n_draws=1, random_state=0, progress=False).fit(table)
    return model.fit_.chains[0].copy()


def of_other_threads(chain: Chain, also=lambda state: None) -> float:
    """Return the processor time of other threads in twenty sweeps, as a share of this one's."""
    sampler, state = chain.sampler, chain.state.copy()
    assert isinstance(sampler, CollapsedSampler)
    sampler.sweep(state)
    time.sleep(0.3)  # what still waits falls asleep
    process, thread = time.process_time(), time.thread_time()
    for _ in range(20):
        sampler.sweep(state)
        also(state)
    process, thread = time.process_time() - process, time.thread_time() - thread
    return process / thread - 1.0


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core")
def test_sweeps_keep_no_other_thread_busy(chain):
    with threadpool_limits(2, user_api="blas"):
        assert of_other_threads(chain) < 0.2
        control = of_other_threads(chain, lambda state: np.vdot(state.Y, state.Y))
    if control < 0.2:
        pytest.skip("the linear algebra of this machine does not wait busily, so that nothing can be told")
