import sys
from collections.abc import Iterable
from types import ModuleType

import pytest

from skillhall._internal.embeddings.embedding_model import EmbeddingFailed
from skillhall._internal.embeddings.fastembed_model import FastEmbedModel


class TextEmbedding:
    """Stand-in for the class of fastembed, whose models must be downloaded."""

    def __init__(self, name: str, cache_dir: str) -> None:
        assert cache_dir == "cache"
        if name != "known":
            raise ValueError(f"model {name} is not supported, token=hf-secret")

    def passage_embed(self, texts: Iterable[str]) -> Iterable[list[float]]:
        return ([3.0, 4.0] for text in texts if text != "lost")

    def query_embed(self, query: str) -> Iterable[list[float]]:
        yield [0.0, 2.0] if query else [0.0, 0.0]


@pytest.fixture
def fastembed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fastembed", module)


def test_vectors_have_length_one(fastembed: None) -> None:
    model = FastEmbedModel("known", "cache")
    assert model.id == "fastembed:known"
    [first, second] = model.embed_texts(["a", "b"])
    assert [*first] == pytest.approx([0.6, 0.8])
    assert second == first
    assert [*model.embed_query("a", 1)] == [0, 1]


def test_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbeddingFailed, match="'fastembed' is not installed") as failure:
        FastEmbedModel("known", "cache").embed_texts(["a"])
    assert "skillhall[embeddings]" in failure.value.hint
    assert not failure.value.is_temporary


def test_model_that_cannot_be_loaded_is_an_error_without_foreign_text(fastembed: None) -> None:
    with pytest.raises(EmbeddingFailed, match=r"cannot be loaded \(ValueError\)") as failure:
        FastEmbedModel("unknown", "cache").embed_texts(["a"])
    assert "hf-secret" not in str(failure.value)


def test_wrong_results_are_errors(fastembed: None) -> None:
    model = FastEmbedModel("known", "cache")
    with pytest.raises(EmbeddingFailed, match="1 vectors for 2 texts"):
        model.embed_texts(["a", "lost"])
    with pytest.raises(EmbeddingFailed, match=r"it failed \(ValueError\)"):
        model.embed_query("", 1)
