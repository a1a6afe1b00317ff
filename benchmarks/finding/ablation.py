"""What each ingredient of the ranking contributes: recall without it."""

import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.finding.evaluation_set import Half, load_set
from benchmarks.finding.quality import finding_tree
from benchmarks.finding.recall import DEPTHS, RecallReport, RecallRow, Search, ask
from benchmarks.plan import Plan
from benchmarks.trees import ensure_tree
from skillhall import Skills
from skillhall._internal.catalog.catalog import Catalog
from skillhall._internal.catalog.search.query_ranker import DEFAULT_RANKING, Ranking
from skillhall._internal.catalog.search.search_index import SearchIndex
from skillhall._internal.settings import Settings
from skillhall._internal.wiring.catalog import load_catalog

ALL = "all"


def ingredients() -> list[str]:
    """Return the names of the ingredients that can be left out."""
    fields = dataclasses.fields(DEFAULT_RANKING)
    return [one.name for one in fields if getattr(DEFAULT_RANKING, one.name) is True]


def run(plan: Plan) -> Iterator[RecallReport]:
    """Yield recall with all ingredients and without one or each of them."""
    root = ensure_tree(plan.data, finding_tree(plan.scale.finding)).root
    chosen = [one for one in ingredients() if plan.without in (ALL, one)]
    rankings = {"with everything": DEFAULT_RANKING}
    rankings |= {f"without {one}": _leave_out(one) for one in chosen}
    # As in the public API, which has one skill of each name.
    places = {str(skill.path) for skill in Skills.load(root).values()}
    catalog = load_catalog([str(root)], settings=Settings(".", ".", use_head_cache=False))
    half = Half(plan.half)
    queries = {"prompts": load_set().prompts(half), "keywords": load_set().keywords(half)}
    with tempfile.TemporaryDirectory(prefix="skillhall-index-") as folder:
        searches = {
            name: _make_search(str(Path(folder) / "index.db"), catalog, places, ranking)
            for name, ranking in rankings.items()
        }
        for kind, asked in queries.items():
            rows = [RecallRow(name, ask(search, asked)) for name, search in searches.items()]
            title = f"finding among {plan.scale.finding:,} skills, {half} half, {kind}, ablation"
            yield RecallReport(title, tuple(rows))


def _leave_out(ingredient: str) -> Ranking:
    return dataclasses.replace(DEFAULT_RANKING, **{ingredient: False})


def _make_search(path: str, catalog: Catalog, places: set[str], ranking: Ranking) -> Search:
    index = SearchIndex(path, ranking=ranking)
    index.update(catalog)
    index.read_texts()

    def search(text: str) -> list[str]:
        result = index.search(text, DEPTHS[-1], keep=lambda skill: skill.location in places)
        return [hit.skill.name for hit in result.hits]

    return search
