"""JUnit XML: one test suite for each skill, for the test views of CI systems.

Failures are failed runs with the skill, queries with the wrong result, and gates. Runs without the
skill are a baseline and cannot fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from skillhall._internal.evals.eval_records import Arm, RunStatus, Verdict
from skillhall._internal.evals.reports.skill_results import describe_difference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillhall._internal.evals.eval_records import GradedRun
    from skillhall._internal.evals.gates import GateResult
    from skillhall._internal.evals.reports.skill_results import SkillResults
    from skillhall._internal.evals.triggers.trigger_score import QueryScore

_MAX_TEXT = 4000  # characters of the evidence in a failure


def render_junit(results: Iterable[SkillResults]) -> bytes:
    """Return the document."""
    root = Element("testsuites", name="skillhall eval")
    for one in results:
        root.append(_build_suite(one))
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    indent(root)
    data: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _build_suite(results: SkillResults) -> Element:
    suite = Element("testsuite", name=clean_xml_text(results.skill_name))
    _add_properties(suite, results)
    for graded in results.runs:
        if graded.run.key.arm is Arm.WITH_SKILL:
            _add_run(suite, results.skill_name, graded)
    if results.triggers is not None:
        for score in results.triggers.score.queries:
            _add_query(suite, results.skill_name, score)
    for gate in results.gates:
        _add_gate(suite, results.skill_name, gate)
    cases = suite.findall("testcase")
    suite.set("tests", str(len(cases)))
    for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    return suite


def _add_properties(suite: Element, results: SkillResults) -> None:
    values: dict[str, str] = {}
    if results.summary is not None:
        values["digest"] = results.summary.subject.skill_digest
        values["agent"] = results.summary.subject.agent
        for arm in results.summary.arms:
            if arm.pass_rate is not None:
                values[f"pass_rate.{arm.arm}"] = f"{arm.pass_rate.value:.4f}"
        for difference in results.summary.differences:
            values[f"delta.{difference.baseline}"] = describe_difference(difference)
    if results.triggers is not None:
        score = results.triggers.score
        values["triggers"] = score.verdict
        for name in ("recall", "precision", "false_triggers"):
            value = getattr(score, name).value
            if value is not None:
                values[f"triggers.{name}"] = f"{value:.4f}"
    properties = SubElement(suite, "properties")
    for name, value in values.items():
        SubElement(properties, "property", name=name, value=clean_xml_text(value))


def _add_run(suite: Element, skill: str, graded: GradedRun) -> None:
    key = graded.run.key
    case = _add_case(suite, f"{skill}.cases", f"case {key.case_id}, run {key.repeat}")
    case.set("time", f"{graded.run.usage.duration_ms / 1000:.3f}")
    status = graded.run.status
    failed = [one for one in graded.results if one.verdict is Verdict.FAILED]
    if status is RunStatus.SKIPPED:
        SubElement(case, "skipped", message=clean_xml_text(graded.run.reason))
    elif status is RunStatus.FAILED:
        SubElement(case, "error", message=clean_xml_text(graded.run.reason), type=str(status))
    elif status is RunStatus.LIMITED:
        SubElement(case, "failure", message=clean_xml_text(graded.run.reason), type=str(status))
    elif failed:
        message = f"{len(failed)} of {len(graded.results)} assertions failed"
        failure = SubElement(case, "failure", message=message, type="assertion")
        lines = [f"{one.text}\n  evidence: {one.evidence}" for one in failed]
        failure.text = clean_xml_text("\n".join(lines))[:_MAX_TEXT]
    elif graded.outcome is None:
        SubElement(case, "skipped", message="not all assertions were judged")


def _add_query(suite: Element, skill: str, score: QueryScore) -> None:
    case = _add_case(suite, f"{skill}.triggers", score.query.query)
    expected = "should trigger" if score.query.should_trigger else "should not trigger"
    if score.is_right is None:
        SubElement(case, "skipped", message="no complete run")
    elif not score.is_right:
        taken = ", ".join(f"{name or 'no skill'} {runs}" for name, runs in score.taken.items())
        message = f"{expected}; loaded in {score.loads} of {score.runs} runs"
        failure = SubElement(case, "failure", message=message, type="trigger")
        failure.text = clean_xml_text(f"loaded first: {taken}")


def _add_gate(suite: Element, skill: str, gate: GateResult) -> None:
    case = _add_case(suite, f"{skill}.gates", str(gate.gate))
    if not gate.passed:
        SubElement(case, "failure", message=clean_xml_text(str(gate)), type="gate")


def _add_case(suite: Element, class_name: str, name: str) -> Element:
    return SubElement(
        suite, "testcase", classname=clean_xml_text(class_name), name=clean_xml_text(name)
    )


def clean_xml_text(text: str) -> str:
    """Return the text without characters that XML cannot contain."""
    return "".join(
        character
        if character in "\t\n"
        or " " <= character <= "\ud7ff"
        or (character >= "\ue000" and character not in "\ufffe\uffff")
        else "\ufffd"
        for character in text
    )
