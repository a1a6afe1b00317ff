"""The report of the MCP conformance suite, which counts every failure that can be tested."""

from collections.abc import Mapping

import pytest

from tools.mcp_conformance import NOT_APPLICABLE, NOT_APPLICABLE_CHECKS, report

CHECK = next(iter(NOT_APPLICABLE_CHECKS))
SKIPPED = {name: [{"id": "x", "status": "FAILURE"}] for name in NOT_APPLICABLE}


def run(check: Mapping[str, object]) -> int:
    return report({**SKIPPED, "ping": [{"id": "ok", "status": "SUCCESS"}, dict(check)]})


def test_untestable_check_and_inapplicable_scenarios_are_no_failures(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run({"id": CHECK, "status": "FAILURE", "details": {"untestable": True}}) == 0
    assert f"{len(SKIPPED) + 1} scenarios, 1 applicable, 0 failed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "check",
    [
        {"id": CHECK, "status": "FAILURE"},
        {"id": CHECK, "status": "FAILURE", "details": {"untestable": False}},
        {"id": "other", "status": "FAILURE", "details": {"untestable": True}},
    ],
)
def test_every_other_failed_check_is_a_failure(check: Mapping[str, object]) -> None:
    assert run(check) == 1


def test_scenario_without_a_successful_check_is_a_failure() -> None:
    assert report({**SKIPPED, "ping": []}) == 1


def test_scenario_that_the_suite_no_longer_has_is_a_failure() -> None:
    assert report({"ping": [{"id": "ok", "status": "SUCCESS"}]}) == 1
