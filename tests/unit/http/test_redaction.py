"""Secrets are removed from texts before they are logged."""

from skillhall._internal.http.redaction import Redactor
from skillhall._internal.settings import Secret


def test_secret_at_the_cut_of_a_long_text_is_redacted() -> None:
    token = Secret("s3cret-token-of-the-server")
    text = "x" * 99_990 + token.reveal()
    assert "s3cret" not in Redactor([token]).redact(text)


def test_password_in_a_url_at_the_cut_is_redacted() -> None:
    text = "x" * 99_980 + "https://me:s3cret-password@git.example.org/x"
    assert "s3cret" not in Redactor([]).redact(text)
