from skillhall._internal.embeddings.embedding_text import (
    MAX_BODY,
    build_embedding_text,
    compute_text_digest,
)


def test_text_contains_the_name_as_words_the_description_and_the_body() -> None:
    assert build_embedding_text("pdf-tools", "Merge PDFs.", "\n# PDF\n") == (
        "pdf tools\nMerge PDFs.\n# PDF"
    )


def test_text_contains_only_the_start_of_a_long_body() -> None:
    text = build_embedding_text("notes", "", "x" * 5000)
    assert text == "notes\n" + "x" * MAX_BODY


def test_text_has_no_characters_that_servers_reject() -> None:
    assert build_embedding_text("a", "b\0c\ud800", "") == "a\nb c?"


def test_digests_differ_between_texts() -> None:
    assert compute_text_digest("a") != compute_text_digest("b")
    assert len(compute_text_digest("a")) == 64
