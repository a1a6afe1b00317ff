from pathlib import Path

import pytest

from skillhall._internal.authoring.portability import (
    check_agents,
    judge_skill_md,
    load_client_table,
)
from skillhall._internal.installer.agent_folders import AGENTS
from skillhall._internal.policy.portability.client_rules import Outcome
from skillhall._internal.policy.portability.traits import Trait
from skillhall.errors import UnknownAgent
from tests.support.portability.comparison import DEVELOPMENT_MODULES, KNOWN, compare
from tests.support.portability.odd_skills import ODD_SKILLS, write_odd_skills
from tests.support.portability.python_readers import read_all


def test_every_trait_has_a_text() -> None:
    assert list(load_client_table().texts) == list(Trait)


def test_every_rule_is_unique_and_names_its_source() -> None:
    for client in load_client_table().clients.values():
        keys = [(rule.trait, rule.field) for rule in client.rules]
        assert len(keys) == len(set(keys)), client.id
        assert all(rule.source for rule in client.rules)


def test_agents_in_the_table_are_known_agents() -> None:
    clients = load_client_table().clients.values()
    assert {one.id for one in clients if one.kind == "agent"} <= set(AGENTS)


def test_agent_without_rules_is_judged_by_the_client_guide() -> None:
    (verdict,) = judge_skill_md(ODD_SKILLS["description-missing"], "x", ["cursor"])
    assert (verdict.agent, verdict.client.id) == ("cursor", "client-guide")
    assert verdict.outcome is Outcome.DROPPED


def test_unknown_agent_is_rejected_with_close_names() -> None:
    with pytest.raises(UnknownAgent):
        check_agents(["codex", "cursor", "codx"], ["cursor"])


@pytest.mark.parametrize("client", sorted(DEVELOPMENT_MODULES))
@pytest.mark.filterwarnings("ignore::Warning")  # of the libraries
def test_rules_agree_with_the_library(client: str, tmp_path: Path) -> None:
    write_odd_skills(tmp_path)
    assert compare(client, read_all(client, tmp_path)) == []


def test_known_disagreements_are_about_odd_skills() -> None:
    assert {skill for _, skill in KNOWN} <= ODD_SKILLS.keys()
