"""Reports as tests read them."""

import re
import warnings
from html.parser import HTMLParser
from typing import Any

import glfm
from glfm.analysis.summary import Summary
from glfm.report import Content, collect


def fitted(frame: Any, **settings: Any) -> glfm.GLFM:
    chosen = {
        "n_chains": 2,
        "n_warmup": 40,
        "n_draws": 10,
        "thin": 1,
        "random_state": 0,
        "progress": False,
    } | settings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        return glfm.GLFM(**chosen).fit(frame)


def content_of(model: glfm.GLFM, title: str | None = None) -> Content:
    return collect(Summary(model.fit_), title)


class Page(HTMLParser):
    """The elements, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag == "style":
            self.styles.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.cdata_elem == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self.cdata_elem == "style":
            self.styles[-1] += data
        else:
            self.text += data

    @property
    def words(self) -> str:
        return re.sub(r"[ \n]+", " ", self.text)  # and no-break spaces stay
