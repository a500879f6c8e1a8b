"""Reports of a clinic, and of a table whose text is hostile."""

import pytest

import glfm
from glfm.report import Content, render
from pages import Page, content_of, fitted
from pictures import graded
from tables import HOSTILE
from tables import hostile as hostile_table


@pytest.fixture
def model(clinic_model):
    return clinic_model


@pytest.fixture(scope="session")
def content(clinic_model: glfm.GLFM) -> Content:
    return content_of(clinic_model, "Clinic")


@pytest.fixture(scope="session")
def page(content: Content) -> Page:
    return Page(render(content))


@pytest.fixture(scope="session")
def graded_content() -> Content:
    return content_of(fitted(graded(), n_warmup=60))


@pytest.fixture(scope="session")
def hostile() -> tuple[Content, str]:
    content = content_of(fitted(hostile_table(), schema={HOSTILE["proto"]: "categorical"}), HOSTILE["script"])
    return content, render(content)
