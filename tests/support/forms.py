"""Multipart forms as browsers send them."""

from collections.abc import Iterable, Mapping

BOUNDARY = "----form7f3a"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def make_form(
    files: Iterable[tuple[str, str, bytes]] = (), fields: Mapping[str, str] | None = None
) -> bytes:
    """Encode files, each a (field, name, bytes), and then fields."""
    parts = [
        f'name="{field}"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'.encode() + data
        for field, name, data in files
    ]
    parts += [f'name="{name}"\r\n\r\n{text}'.encode() for name, text in (fields or {}).items()]
    start = f"--{BOUNDARY}\r\nContent-Disposition: form-data; ".encode()
    body = b"".join(start + part + b"\r\n" for part in parts)
    return body + f"--{BOUNDARY}--\r\n".encode()
