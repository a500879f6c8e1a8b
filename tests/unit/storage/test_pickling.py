"""Models, kinds and transforms can be pickled and copied."""

import copy
import io
import pickle

import joblib
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import glfm
from glfm.kinds.mappings import TRANSFORMS
from glfm.testing import assert_same_draws
from tables import BRIEF, noted


def same_draws(one, other):
    assert_same_draws(one.draws_, other.draws_)
    for a, b in zip(one.draws_, other.draws_, strict=True):
        assert a.log_likelihood == b.log_likelihood


@pytest.fixture(scope="module")
def bare(model, tmp_path_factory):
    return glfm.load(model.save(tmp_path_factory.mktemp("bare") / "m.glfm", data=False))


class TestPickling:
    def test_models(self, model):
        copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        out = io.BytesIO()
        joblib.dump(model, out)
        out.seek(0)
        for again in (*copies, joblib.load(out)):
            same_draws(model, again)
            pd.testing.assert_frame_equal(model.impute(), again.impute())

    @pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
    def test_models_of_other_libraries(self, convert):
        model = glfm.GLFM(**BRIEF).fit(convert(noted()[["change", "ward"]].reset_index(drop=True)))
        again = pickle.loads(pickle.dumps(model))
        assert again.impute().equals(model.impute())

    def test_models_without_rows(self, model, tmp_path):
        bare = glfm.load(model.save(tmp_path / "m.glfm", data=False))
        again = pickle.loads(pickle.dumps(bare))
        pd.testing.assert_frame_equal(again.impute(noted()), bare.impute(noted()))

    def test_kinds(self, learnt):
        assert pickle.loads(pickle.dumps(learnt)) == learnt
        assert copy.deepcopy(learnt) == learnt

    @pytest.mark.parametrize("name", TRANSFORMS)
    def test_transforms(self, name):
        again = pickle.loads(pickle.dumps(TRANSFORMS[name]))
        assert again == TRANSFORMS[name]
        kind = glfm.Positive(transform=TRANSFORMS[name])
        assert pickle.loads(pickle.dumps(kind)) == kind
