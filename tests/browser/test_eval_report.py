"""The HTML page with eval results, opened as a file: layout, contrast and its security policy."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from skillhall._internal.evals.reports.html_report import render_html
from tests.support.browsers import BrowserSession
from tests.support.eval_results import make_hostile_results, make_results


@pytest.fixture
def report(browser: Browser, tmp_path: Path) -> BrowserSession:
    page = render_html([make_results(), make_hostile_results()])
    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    session = BrowserSession.open(browser, tmp_path.as_uri(), bypass_csp=True)  # for axe
    session.open_page("/report.html")
    return session


def test_report_is_accessible_on_wide_and_narrow_screens_in_light_and_dark(
    report: BrowserSession,
) -> None:
    report.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert report.find_accessibility_problems() == []
    report.close()


def test_report_shows_plots_and_transcripts_without_scripts(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(render_html([make_results()]), encoding="utf-8")
    session = BrowserSession.open(browser, tmp_path.as_uri(), java_script_enabled=False)
    page = session.open_page("/report.html")
    expect(page.get_by_role("img", name=re.compile("with the skill: 1.00")).first).to_be_visible()
    page.get_by_text(re.compile("^Case 1:")).click()
    page.get_by_text("Transcript", exact=True).first.click()
    expect(page.get_by_text("1,2,3").first).to_be_visible()
    session.close()  # fails if the policy of the page blocked anything
