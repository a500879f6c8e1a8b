"""The report in a real browser: it draws, listens to the keyboard, fits a phone, and runs nothing foreign."""

import base64
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import glfm
from glfm.datasets import make_clinic
from tables import HOSTILE
from tables import hostile as hostile_table

PHONE = 360
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium = os.environ.get("GLFM_CHROMIUM") or shutil.which("chromium")
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("there is no chromium with chromedriver: install Debian's chromium and chromium-driver")
    selenium = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = selenium.Chrome(options=options, service=Service(driver))
    yield found
    found.quit()


def _write(frame: pd.DataFrame, path: Path, n_warmup: int, schema: dict[str, str] | None = None) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", glfm.FitWarning)
        model = glfm.GLFM(
            schema, n_chains=2, n_warmup=n_warmup, n_draws=8, thin=1, random_state=0, progress=False
        )
        return model.fit(frame).report(path, title=HOSTILE["script"])


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _write(make_clinic(200).frame, tmp_path_factory.mktemp("clinic") / "clinic.html", 150)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "hostile.html"
    return _write(hostile_table(90), path, 40, {HOSTILE["proto"]: "categorical"})


def _open(browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wishes = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}  # clicks do not wait
    features = [{"name": name, "value": value} for name, value in wishes.items()]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(path.as_uri())


def _drawn(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('picture').innerHTML"))


def _said(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('said').textContent"))


def _press(browser: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    for key in keys:
        ActionChains(browser).send_keys(key).perform()


def _choose(browser: Any, index: int) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.select import Select

    Select(browser.find_element(By.ID, "column")).select_by_index(index)


def _boxes(browser: Any) -> list[Any]:
    from selenium.webdriver.common.by import By

    found: list[Any] = browser.find_elements(By.CSS_SELECTOR, "#picks input")
    return found


@pytest.mark.parametrize("table", ["hostile", pytest.param("clinic", marks=pytest.mark.slow)])
def test_no_errors_and_no_requests(browser: Any, table: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(table)
    _open(browser, path)
    n_columns = browser.execute_script("return document.getElementById('column').options.length")
    for column in range(n_columns):
        _choose(browser, column)
    for box in _boxes(browser):
        box.click()
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith(("data:", path.as_uri()))] == []
    assert path.as_uri() in asked


def test_choosing_a_column_changes_the_picture(browser: Any, clinic: Path) -> None:
    _open(browser, clinic)
    pictures = set()
    n_columns = browser.execute_script("return document.getElementById('column').options.length")
    names = list(make_clinic(200).frame)
    assert n_columns == len(names)
    for column, name in enumerate(names):
        _choose(browser, column)
        drawn = _drawn(browser)
        assert drawn.startswith("<svg")
        assert "NaN" not in drawn
        assert _said(browser).startswith(f"{name} (")
        pictures.add(drawn)
    assert len(pictures) == n_columns


def test_ticking_a_pattern_changes_the_picture(browser: Any, clinic: Path) -> None:
    _open(browser, clinic)
    before = _drawn(browser), _said(browser)
    box = _boxes(browser)[3]
    was = box.is_selected()
    box.click()
    assert box.is_selected() != was
    after = _drawn(browser), _said(browser)
    assert after[0] != before[0]
    assert after[1] != before[1]
    box.click()
    assert (_drawn(browser), _said(browser)) == before
    for one in _boxes(browser):
        if one.is_selected():
            one.click()
    assert _said(browser) == "Nothing is ticked."


def test_what_is_drawn_is_what_the_model_says(browser: Any, clinic: Path) -> None:
    """The bars of a column with levels, in the order of the boxes that are ticked."""
    _open(browser, clinic)
    data = json.loads(browser.execute_script("return document.getElementById('data').textContent"))
    at = next(i for i, column in enumerate(data["columns"]) if column["type"] == "levels")
    _choose(browser, at)
    bars = browser.execute_script(
        "return [...document.querySelectorAll('#picture rect[x=\"0\"]')].map(r => r.getAttribute('width'))"
    )
    series = data["columns"][at]["series"][:4]
    wanted = np.array(series).T.ravel()
    drawn = np.array(bars, dtype=float)
    assert drawn.size == wanted.size
    large = wanted > 0.02
    np.testing.assert_allclose(drawn[large] / drawn.max(), wanted[large] / wanted.max(), rtol=1e-6)


def test_the_keyboard_alone_is_enough(browser: Any, clinic: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    _open(browser, clinic)
    browser.execute_script("document.querySelector('#patterns h2').scrollIntoView()")
    active = (
        "return document.activeElement.id || document.activeElement.type || document.activeElement.tagName"
    )
    for _ in range(80):
        _press(browser, Keys.TAB)
        if browser.execute_script(active) == "column":
            break
    assert browser.execute_script(active) == "column"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert browser.execute_script(outline) != "none"
    before = _drawn(browser)
    _press(browser, Keys.ARROW_DOWN)
    if _drawn(browser) == before:  # the last column, or the first: the other way then
        _press(browser, Keys.ARROW_UP)
    middle = _drawn(browser)
    assert middle != before
    _press(browser, Keys.TAB)
    assert browser.execute_script(active) == "checkbox"
    _press(browser, Keys.SPACE)
    assert _drawn(browser) != middle


def test_hostile_text_runs_nothing_and_is_shown(browser: Any, hostile: Path) -> None:
    _open(browser, hostile)
    shown = browser.execute_script("return document.body.innerText")
    for name, text in HOSTILE.items():
        assert text in shown or name in ("long", "one word", "emoji")
    for column, name in enumerate(HOSTILE.values()):
        _choose(browser, column)
        assert _said(browser).startswith(name[:50])
        assert "<img" not in _drawn(browser)
    assert browser.execute_script("return typeof window.hacked") == "undefined"
    assert browser.execute_script("return document.querySelectorAll('img, b, script').length") == 2


def test_a_script_that_slips_in_would_not_run(browser: Any, hostile: Path, tmp_path: Path) -> None:
    """The policy of the page stands even where escaping would fail; without it, the same script runs."""
    html = hostile.read_text(encoding="utf-8")
    slipped = html.replace(
        "<main>", "<main><script>window.hacked=1</script><b onclick='window.hacked=1'>x</b>", 1
    )
    assert slipped != html
    (tmp_path / "slipped.html").write_text(slipped, encoding="utf-8")
    _open(browser, tmp_path / "slipped.html")
    assert browser.execute_script("return typeof window.hacked") == "undefined"
    open_page = slipped.replace("Content-Security-Policy", "x-none")
    (tmp_path / "open.html").write_text(open_page, encoding="utf-8")
    _open(browser, tmp_path / "open.html")
    assert browser.execute_script("return window.hacked") == 1


@pytest.mark.parametrize("table", ["hostile", pytest.param("clinic", marks=pytest.mark.slow)])
def test_a_phone_needs_no_sideways_scrolling(
    browser: Any, table: str, request: pytest.FixtureRequest
) -> None:
    _open(browser, request.getfixturevalue(table), PHONE)
    for shut in (True, False):
        if not shut:
            browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        n_columns = browser.execute_script("return document.getElementById('column').options.length")
        for column in range(n_columns):
            _choose(browser, column)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE


def _contrast(browser: Any, selector: str) -> float:
    """Return the contrast of the text of an element with the page behind it."""
    colours = browser.execute_script(
        "const e = document.querySelector(arguments[0]);"
        "return [getComputedStyle(e).color, getComputedStyle(document.body).backgroundColor]",
        selector,
    )
    light = []
    for colour in colours:
        parts = np.array([float(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]) / 255
        linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        light.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(light) + 0.05) / (min(light) + 0.05)


def test_light_and_dark_can_be_read(browser: Any, clinic: Path) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        _open(browser, clinic, scheme=scheme)
        grounds.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
        assert _contrast(browser, ".lead") > 10
        for selector in ("figcaption", "thead th", "nav a", "summary"):
            assert _contrast(browser, selector) > 4.5
    assert grounds[0] != grounds[1]


def test_the_first_screen_says_what_was_found(browser: Any, clinic: Path) -> None:
    _open(browser, clinic)
    box = "const r = document.querySelector(arguments[0]).getBoundingClientRect(); return [r.top, r.bottom]"
    assert browser.execute_script(box, ".lead")[1] < 400
    assert browser.execute_script(box, ".found .strip")[1] < 800
    places = [
        browser.execute_script(box, f"#{name}")[0] for name in ("short", "features", "converged", "table")
    ]
    assert places == sorted(places)
    widths = "return [...document.querySelectorAll('.strip')].map(s => s.getBoundingClientRect().width)"
    assert min(browser.execute_script(widths)) > 150
    assert browser.execute_script("return document.querySelectorAll('.strip rect:not(.track)').length") > 3


def test_it_prints(browser: Any, clinic: Path) -> None:
    _open(browser, clinic)
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 20_000
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return getComputedStyle(document.querySelector('nav')).display"
    assert browser.execute_script(hidden) == "none"
    tall = "return document.querySelector('#converged details .scroll table').getBoundingClientRect().height"
    assert browser.execute_script(tall) > 50


def test_without_javascript_all_but_the_view_is_there(browser: Any, clinic: Path) -> None:
    try:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
        _open(browser, clinic)
        from selenium.webdriver.common.by import By

        shown = browser.find_element(By.TAG_NAME, "body").text
        assert "This view needs JavaScript" in shown
        for words in ("of rows", "Found again", "Surprising cells", "chains", "seed"):
            assert words in shown
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
