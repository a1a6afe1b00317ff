"""`skillhall sign`: signs skills, and creates keys for it."""

import os
from contextlib import AbstractContextManager
from pathlib import Path

import click

from skillhall._internal.cli.command_result import CommandResult
from skillhall._internal.cli.errors import require_extra
from skillhall._internal.cli.options import flag, json_command
from skillhall._internal.cli.search_options import read_settings
from skillhall._internal.cli.terminal import format_count

_MAX_KEY_SIZE = 64 * 1024  # bytes


@json_command("sign", "skillhall sign skills/pdf-tools --key acme.key")
@click.argument("folders", nargs=-1, metavar="[FOLDER]...")
@click.option("--key", metavar="FILE", help="Sign with this private key.")
@flag("--sigstore", help="Sign with the identity of this CI workflow, using Sigstore.")
@click.option(
    "--trust-config", metavar="FILE", help="Use this private Sigstore instead of the public one."
)
@click.option(
    "--new-key",
    metavar="NAME",
    help="Create the private key NAME.key (keep it secret) and the public key NAME.pub.",
)
def command(
    *,
    folders: tuple[str, ...],
    key: str | None,
    sigstore: bool,
    trust_config: str | None,
    new_key: str | None,
) -> CommandResult:
    """Sign the skill in each FOLDER.

    The signature is the file skill.oms.sig in the folder, in the format of OpenSSF Model Signing.
    It covers all files of the skill. Sign again after each change. With --sigstore, the signature
    names the CI workflow that runs the command, and there is no key to keep.

    The passphrase of an encrypted key is read from SKILLHALL_SIGNING_PASSPHRASE; if it is set, a
    new key is encrypted.
    """
    secret = read_settings().signing_passphrase
    passphrase = secret.reveal().encode() if secret else None
    if new_key is not None:
        if folders or key or sigstore:
            raise click.UsageError("--new-key cannot be combined with other options or FOLDER")
        return _create_key(new_key, passphrase)
    if (key is None) is not sigstore or not folders or (trust_config and not sigstore):
        usage = "name at least one FOLDER and either a --key or --sigstore, or use --new-key"
        raise click.UsageError(usage)
    with _require_signing():
        from skillhall._internal.authoring.skill_signing import (
            sign_skill,
            sign_with_identity,
            sign_with_key,
        )
        from skillhall._internal.signing.keys import load_private_key
    if key is not None:
        sign = sign_with_key(load_private_key(_read_key(key), key, passphrase))
    else:
        config = _read_key(trust_config) if trust_config else b""
        with require_extra("sigstore", "the package for Sigstore is"):
            sign = sign_with_identity(config, trust_config or "Sigstore")
    signed = [sign_skill(folder, sign) for folder in folders]
    rows = [{"name": one.name, "path": one.path, "files": one.files} for one in signed]
    return CommandResult(
        {"skills": rows},
        lines=[one.path for one in signed],
        messages=[f"signed {format_count(len(signed), 'skill')}"],
    )


def _require_signing() -> AbstractContextManager[None]:
    return require_extra("signing", "the package for signatures is")


def _create_key(name: str, passphrase: bytes | None) -> CommandResult:
    with _require_signing():
        from skillhall._internal.authoring.skill_signing import create_key_files
    folder, base = os.path.split(name)
    if not base:
        raise click.UsageError("--new-key needs a file name")
    created = create_key_files(folder or ".", base, passphrase)
    protection = "encrypted" if passphrase else "not encrypted"
    return CommandResult(
        {"privateKey": created.private, "publicKey": created.public},
        lines=[created.private, created.public],
        messages=[f"created a private key ({protection}; keep it secret) and its public key"],
    )


def _read_key(path: str) -> bytes:
    with Path(path).open("rb") as file:
        return file.read(_MAX_KEY_SIZE)
