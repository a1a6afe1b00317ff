"""How often the right skill is found, by Skillhall and by plain full-text search."""

from collections.abc import Iterator, Sequence

from benchmarks.finding.baselines import PlainSearch, SkillTexts
from benchmarks.finding.evaluation_set import (
    Half,
    compute_checksum,
    load_more_keywords,
    load_set,
)
from benchmarks.finding.recall import DEPTHS, Answer, RecallReport, RecallRow, Search, ask
from benchmarks.plan import Plan
from benchmarks.trees import TreeSpec, ensure_tree
from skillhall import Skills

PRODUCT = "skillhall"
# From the issue: first, in five, in ten; and keyword queries in three.
PROMPT_BARS = {1: 0.47, 5: 0.80, 10: 0.90}
KEYWORD_BARS = {3: 39 / 40}


def run(plan: Plan) -> Iterator[RecallReport]:
    """Yield the reports on one half of the evaluation set."""
    half = Half(plan.half)
    tree = ensure_tree(plan.data, finding_tree(plan.scale.finding))
    skills = Skills.load(tree.root)
    prompts, keywords = load_set().prompts(half), load_set().keywords(half)
    product = product_search(skills)
    title = f"finding among {plan.scale.finding:,} skills, {half} half"
    answers = ask(product, prompts)
    rows = [*_product_rows(answers, ask(product, keywords))]
    if half is Half.TUNING:
        rows.append(RecallRow("more keywords", ask(product, load_more_keywords())))
    yield RecallReport(f"{title}, {PRODUCT}", tuple(rows))
    plain = PlainSearch(read_texts(skills))
    searches: dict[str, Search] = {
        "BM25, name and description": plain.search_heads,
        "BM25, name, description and body": plain.search_texts,
        "fusion of both by reciprocal rank": plain.search_fused,
    }
    rows = [
        RecallRow(f"{name}{suffix}", ask(search, queries))
        for suffix, queries in (("", prompts), ("; keywords", keywords))
        for name, search in searches.items()
    ]
    yield RecallReport(f"{title}, plain full-text search", tuple(rows))


def finding_tree(skills: int) -> TreeSpec:
    """Return the parameters of the tree with the evaluation set."""
    return TreeSpec("finding", skills, generator=compute_checksum())


def product_search(skills: Skills) -> Search:
    """Return a search through the public API."""
    limit = DEPTHS[-1]

    def search(text: str) -> list[str]:
        return [hit.skill.name for hit in skills.search(text, limit=limit)]

    return search


def read_texts(skills: Skills) -> Iterator[SkillTexts]:
    """Yield the texts of all skills."""
    for skill in skills.values():
        yield SkillTexts(skill.name, skill.description, skill.body)


def _product_rows(prompts: Sequence[Answer], keywords: Sequence[Answer]) -> Iterator[RecallRow]:
    yield RecallRow("prompts", prompts, PROMPT_BARS)
    yield RecallRow("  long", [answer for answer in prompts if not answer.query.is_short])
    yield RecallRow("  short", [answer for answer in prompts if answer.query.is_short])
    for group in dict.fromkeys(answer.query.group for answer in prompts):
        yield RecallRow(f"  {group}", [a for a in prompts if a.query.group == group])
    yield RecallRow("keywords", keywords, KEYWORD_BARS)
