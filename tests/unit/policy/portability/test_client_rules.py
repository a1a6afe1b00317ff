from skillhall._internal.policy.portability.client_rules import (
    Outcome,
    judge_portability,
    parse_client_table,
)
from skillhall._internal.policy.portability.traits import Trait

TABLE = """
[traits]
bom = { text = "it has a BOM", repair = "remove it" }

[[clients]]
id = "reader"
label = "Reader"
kind = "library"
package = "reader"
registry = "pypi"
version = "1.0"
checked = "2026-11-19"
rules = [
  { trait = "bom", outcome = "dropped", source = "reader.py" },
  { trait = "description-too-long", outcome = "loss", field = "description", source = "reader.py" },
]
"""
CLIENTS = [*parse_client_table(TABLE).clients.values()]


def test_skill_without_traits_is_loaded() -> None:
    (verdict,) = judge_portability([], CLIENTS)
    assert (verdict.outcome, verdict.reasons) == (Outcome.LOADS, ())


def test_skill_is_loaded_with_a_loss() -> None:
    (verdict,) = judge_portability([Trait.DESCRIPTION_TOO_LONG], CLIENTS)
    assert verdict.outcome is Outcome.LOSS
    assert [rule.field for rule in verdict.reasons] == ["description"]


def test_dropped_skill_has_only_reasons_for_that() -> None:
    (verdict,) = judge_portability([Trait.BOM, Trait.DESCRIPTION_TOO_LONG], CLIENTS)
    assert verdict.outcome is Outcome.DROPPED
    assert [rule.trait for rule in verdict.reasons] == [Trait.BOM]


def test_trait_without_a_rule_is_no_reason() -> None:
    (verdict,) = judge_portability([Trait.HIDDEN], CLIENTS)
    assert verdict.outcome is Outcome.LOADS
