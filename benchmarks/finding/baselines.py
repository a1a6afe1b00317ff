"""Plain full-text searches over the same skills, to compare with."""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchmarks.finding.recall import DEPTHS

FUSION_CONSTANT = 30
FUSION_DEPTH = 100
NAME_WEIGHT = 2.0
_TOKENIZER = "porter unicode61 remove_diacritics 2"
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STOP_WORDS = """
a about after all also am an and any are as at be because been before but by can could did do does
don for from get had has have he her here hi his how i if in into is it its just like me my need no
not now of on one only or other our out please s she should so some t that the their them then there
these they this to up us ve want was we what when where which who why will with without would you
your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())


class SkillTexts(NamedTuple):
    """The texts of a skill that are searched."""

    name: str
    description: str
    body: str


class PlainSearch:
    """BM25 of SQLite over heads and over whole texts, and the fusion of both."""

    def __init__(self, skills: Iterable[SkillTexts], path: str = ":memory:") -> None:
        self.database = sqlite3.connect(path)
        self._names: list[str] = []
        for table in ("heads", "texts"):
            columns = "name, description" + (", body" if table == "texts" else "")
            self.database.execute(
                f"CREATE VIRTUAL TABLE {table} USING fts5({columns}, content='', "
                f"tokenize='{_TOKENIZER}')"
            )
        for number, skill in enumerate(skills):
            self._names.append(skill.name)
            name, description, body = (_separate(text) for text in skill)
            row = (number, name, description)
            self.database.execute(
                "INSERT INTO heads (rowid, name, description) VALUES (?,?,?)", row
            )
            self.database.execute(
                "INSERT INTO texts (rowid, name, description, body) VALUES (?,?,?,?)", (*row, body)
            )
        self.database.commit()

    def search_heads(self, text: str) -> list[str]:
        """Search names and descriptions."""
        return self._to_names(self.match("heads", text, DEPTHS[-1]))

    def search_texts(self, text: str) -> list[str]:
        """Search names, descriptions and bodies together."""
        return self._to_names(self.match("texts", text, DEPTHS[-1]))

    def search_fused(self, text: str) -> list[str]:
        """Fuse both rankings by reciprocal rank."""
        scores: dict[int, float] = {}
        for table in ("heads", "texts"):
            for rank, row in enumerate(self.match(table, text, FUSION_DEPTH), 1):
                scores[row] = scores.get(row, 0.0) + 1 / (FUSION_CONSTANT + rank)
        best = sorted(scores, key=lambda row: (-scores[row], row))
        return self._to_names(best[: DEPTHS[-1]])

    def match(self, table: str, text: str, limit: int) -> list[int]:
        """Return the rows of one MATCH ordered by bm25."""
        expression = match_expression(text)
        if not expression:
            return []
        statement = (
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? "  # noqa: S608 - our own table names
            f"ORDER BY bm25({table}, {NAME_WEIGHT}), rowid LIMIT ?"
        )
        return [row for (row,) in self.database.execute(statement, (expression, limit))]

    def _to_names(self, rows: Sequence[int]) -> list[str]:
        return [self._names[row] for row in rows]


def match_expression(text: str) -> str:
    """Return an FTS5 expression that matches any word of the text besides stop words."""
    words = [word.lower() for word in _WORD.findall(_separate(text))]
    unique = dict.fromkeys(word for word in words if word not in STOP_WORDS)
    return " OR ".join(f'"{word}"' for word in unique)


def _separate(text: str) -> str:
    """Put spaces around characters of scripts without spaces."""
    return text if text.isascii() else _UNSPACED.sub(r" \g<0> ", text)
