"""The report: one self-contained HTML page about a fit, for readers who do not program."""

from glfm.report.content import Content, collect
from glfm.report.page import check_page, in_time, page_seconds, render, write

__all__ = ["Content", "check_page", "collect", "in_time", "page_seconds", "render", "write"]
