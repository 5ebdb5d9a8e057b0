"""A check as JUnit XML: one test case for each policy rule. Read by GitLab and most build servers.

https://docs.gitlab.com/ci/testing/unit_test_reports/
"""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from pii_tracer.review.policy_check_report import CheckReport, Located
from pii_tracer.review.policy_rules import Level, Rule
from reports.escape import visible


def render_junit(report: CheckReport) -> str:
    """One suite; a rule that denies is a failed case, a rule that only warns passes and says so in its output."""
    denied = {item.finding.rule for item in report.denied}
    suite = Xml.Element(
        "testsuite",
        name=f"pii-tracer check {visible(report.plan_id)}",
        tests=str(len(report.rules)),
        failures=str(len(denied)),
        errors="0",
        skipped="0",
    )
    for rule in report.rules:
        suite.append(_case(report, rule))
    whole = Xml.Element("testsuites", tests=str(len(report.rules)), failures=str(len(denied)))
    whole.append(suite)
    Xml.indent(whole)
    return Xml.tostring(whole, encoding="unicode", xml_declaration=False) + "\n"


def _case(report: CheckReport, rule: Rule) -> Xml.Element:
    found = report.of(rule.id)
    case = Xml.Element("testcase", classname="pii-tracer.policy", name=rule.id, file=visible(report.plan_file))
    denials = [item for item in found if item.finding.level is Level.DENY]
    if denials:
        first = visible(denials[0].finding.message)
        failure = Xml.SubElement(case, "failure", type=rule.id, message=first)
        failure.text = _lines(report, denials)
    warnings = [item for item in found if item.finding.level is Level.WARN]
    if warnings:
        Xml.SubElement(case, "system-out").text = _lines(report, warnings)
    return case


def _lines(report: CheckReport, items: list[Located]) -> str:
    return "\n".join(
        f"{item.finding.level.value}: {visible(item.finding.message)} ({visible(report.plan_file)}:{item.line})"
        for item in items
    )
