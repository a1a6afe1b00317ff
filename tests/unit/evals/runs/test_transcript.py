"""Redaction of transcripts."""

from skillhall._internal.evals.runs.transcript import SecretRedactor


def test_given_secrets_are_removed_everywhere() -> None:
    redactor = SecretRedactor(["very-secret", "very-secret-too"])
    transcript: list[dict[str, object]] = [
        {"role": "assistant", "calls": [{"tool": "a", "arguments": {"key": "very-secret-too"}}]},
        {"role": "tool", "content": "is very-secret"},
    ]

    assert redactor.redact_transcript(transcript) == [
        {"role": "assistant", "calls": [{"tool": "a", "arguments": {"key": "***"}}]},
        {"role": "tool", "content": "is ***"},
    ]


def test_short_values_are_not_removed() -> None:
    assert SecretRedactor(["on"]).redact_values("turn it on") == "turn it on"


def test_strings_that_look_like_secrets_are_removed() -> None:
    key = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

    assert key not in SecretRedactor().redact(f"the token {key} works")
