"""Rules for exfiltration: credentials that are read or packed, and then sent.

Every quantifier is bounded and no repeated group contains another long repetition, so that no line
can make a pattern slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from skillhall._internal.skill.finding import Code
from skillhall._internal.skill.risks.lazy_pattern import LazyPattern
from skillhall._internal.skill.risks.rule_engine import (
    Piece,
    RiskRule,
    RuleHit,
    ScannedText,
    all_of,
    any_of,
    either,
    in_order,
    split_words,
)
from skillhall._internal.skill.risks.triggers import (
    Trigger,
    all_words,
    any_word,
    combine_words,
    with_literals,
)

_MAX_LINES = 200  # lines with a credential folder that are checked in one file
_MAX_LINES_BETWEEN = 15  # lines between reading and sending

# Files with credentials, in any folder.
_CREDENTIAL_FILE = (
    r"\.ssh/id_\w{1,20}(?![\w.]{0,20}\.pub\b)|\.ssh/\*|\.aws/credentials|\.git-credentials|\.docker/config\.json|\.kube/config"
    r"|/etc/shadow\b|\.gnupg/|wallet\.dat|login\.keychain|application_default_credentials"
    r"|(?:\bcat\s{1,4}|@|<\s{0,2})[\w~$/{}.-]{0,60}\.(?:env|netrc|npmrc|pypirc)\b"
    r"|\b(?:printenv|env)\s{0,4}\||\$\((?:printenv|env)\s{0,2}\)"
    r"|(?:dumps\(|dict\()\s{0,2}os\.environ\b|stringify\(\s{0,2}process\.env\s{0,2}\)"
)
# Folders with keys, tokens, browser passwords or wallets, and little else.
_CREDENTIAL_FOLDER = (
    r"(?:(?<![\w.-])\.(?:ssh|aws|gnupg|kube|docker|azure|password-store|electrum|bitcoin|ethereum"
    r"|mozilla/firefox|config/(?:gcloud|gh|solana|google-chrome|chromium|op)"
    r"|local/share/keyrings)"
    r"|library/keychains|application support/(?:google/chrome|firefox|bravesoftware))(?![\w-])"
    r"(?!/[\w.*-]{0,60}(?:\.pub|known_hosts|authorized_keys)\b)"
)
_READ_OR_PACK = (
    r"\b(?:tar|bsdtar|gtar|zip|7z[ar]?|rar|cpio|gzip|zstd|xz|base64|xxd|openssl\s{1,4}enc|cat"
    r"|find|cp\s{1,4}-\w{0,4}r\w{0,4}|make_archive|zipfile|tarfile|compress-archive|archiver"
    r"|rglob|glob|iterdir|listdir|scandir|walk|open|read_bytes|read_text|readfile(?:sync)?|get-content)\b"
)
_NETWORK_COMMAND = (
    r"(?:curl|wget|nc|ncat|netcat|socat|telnet|ssh|http|https|xh|openssl\s{1,4}s_client"
    r"|aws\s{1,4}s3\s{1,4}(?:cp|mv)|gsutil\s{1,4}(?:-m\s{1,4})?cp|rclone\s{1,4}rcat|gh\s{1,4}gist)"
)
_UPLOAD = (
    r"\bcurl\b[^\n]{0,200}\s(?:-d|-f|-t|--data[a-z-]{0,12}|--form|--upload-file|-x\s{0,2}post)"
    r"(?=[\s@=\"'$])"
    r"|\bwget\b[^\n]{0,120}--post-|\|\s{0,4}(?:nc|ncat|netcat)\s|\brequests\.(?:post|put)\("
    r"|\bfetch\(|\burlopen\(|\bhttpx\.(?:post|put)\(|\binvoke-restmethod\b[^\n]{0,120}\bpost\b"
    r"|\baxios\.(?:post|put)\(|\bsession\.(?:post|put)\(|\.sendall\(|\bupload_file(?:obj)?\("
    r"|\binvoke-webrequest\b[^\n]{0,120}\bpost\b|>\s{0,2}/dev/(?:tcp|udp)/"
    r"|webhook\.site|requestbin|pipedream\.net|discord(?:app)?\.com/api/webhooks"
    r"|api\.telegram\.org/bot"
)
_PIPE_TO_NETWORK = rf"\|\s{{0,8}}(?:sudo\s{{1,4}})?{_NETWORK_COMMAND}\s"
# A copy to another host, but not with a key as an option ("scp -i ~/.ssh/id_rsa").
_REMOTE_COPY = (
    r"\b(?:scp|rsync)\b(?:\s{1,4}-[a-df-hj-z]{1,8})?(?:\s{1,4}-[a-df-hj-z]{1,8})?"
    rf"\s{{1,4}}[\"']?[^\s\"'|;-]{{0,60}}{_CREDENTIAL_FOLDER}[^\s\"']{{0,60}}[\"']?\s{{1,4}}[\w.@$\{{\}}-]{{1,80}}:"
)

# Every match of `_CREDENTIAL_FOLDER` contains one of these.
_FOLDER_NEEDLES = split_words(
    ".ssh .aws .gnupg .kube .docker .azure .config/ .mozilla .password-store .electrum .bitcoin "
    ".ethereum .local/share/keyrings keychain google/chrome firefox bravesoftware"
)
# Parts of `_CREDENTIAL_FILE` and `_CREDENTIAL_FOLDER`.
_LOCATION_TRIGGERS = (
    *any_word(
        ".ssh .aws .gnupg .kube .docker .azure .config .mozilla .electrum .bitcoin .ethereum"
    ),
    *all_words(".password store", ".local share keyrings"),
    *with_literals(
        {
            "library/keychains": "keychains",
            "application support/": "support",
            ".git-credentials": ".git",
            "/etc/shadow": "shadow",
            "application_default_credentials": "default",
            "wallet.dat": "",
            "login.keychain": "",
        }
    ),
)
# The other files, which are only reported with a match of `_UPLOAD`.
_FILE_WORDS = "env printenv environ netrc npmrc pypirc"
_UPLOAD_WORDS = (
    "curl wget nc ncat netcat requests fetch urlopen httpx invoke axios session sendall upload "
    "tcp udp telegram"
)
_UPLOAD_LITERALS = ("webhook.site", "requestbin", "pipedream.net", ".com/api/webhooks")

EXFILTRATION_RULE = RiskRule(
    Code.CREDENTIAL_EXFIL,
    "reads credentials and sends data",
    (
        *_FOLDER_NEEDLES,
        *split_words(
            "credentials /etc/shadow wallet.dat .env .netrc .npmrc .pypirc printenv env| $(env "
            "os.environ process.env"
        ),
        "env |",
    ),
    either(
        all_of(_CREDENTIAL_FILE, _UPLOAD),
        in_order(_READ_OR_PACK, _CREDENTIAL_FOLDER, rf"{_PIPE_TO_NETWORK}|{_UPLOAD}"),
        in_order(_UPLOAD, _READ_OR_PACK, _CREDENTIAL_FOLDER),
        in_order(r"\b(?:curl|wget)\b[^\n]{0,120}(?:\$\(|`)", _READ_OR_PACK, _CREDENTIAL_FOLDER),
        any_of(_REMOTE_COPY),
    ),
    (
        *_LOCATION_TRIGGERS,
        *combine_words(_FILE_WORDS, _UPLOAD_WORDS),
        *(
            Trigger((word,), literal)
            for word in split_words(_FILE_WORDS)
            for literal in _UPLOAD_LITERALS
        ),
    ),
)

_find_packing = either(
    in_order(_READ_OR_PACK, _CREDENTIAL_FOLDER), in_order(_CREDENTIAL_FOLDER, _READ_OR_PACK)
)
_CREDENTIAL_FOLDER_PATTERN = LazyPattern(_CREDENTIAL_FOLDER)
_ARCHIVE_NAME = LazyPattern(
    r"(?<![\w$.{}-])([\w$.{}-]{1,60}?)\.(?:tgz|tar|gz|zip|bz2|xz|zst|7z|b64|txt|bin|dat|enc|json)\b"
)
_ASSIGNMENT = LazyPattern(
    r"(?:^|[\s;(])(?:export\s{1,3}|const\s{1,3}|let\s{1,3}|var\s{1,3}|\$)?([a-z_]\w{0,40})\s{0,3}"
    r"(?::?=)(?!=)|\bas\s{1,3}([a-z_]\w{0,40})|\bfor\s{1,3}([a-z_]\w{0,40})\s{1,3}in\b"
    r"|make_archive\(\s{0,3}[\"'](?:[\w./~-]{0,60}/)?([\w-]{1,40})[\"']"
)
_ARCHIVE_ADDITION = LazyPattern(
    r"\b([a-z_]\w{0,30})\.(?:add|write|append|update|extend|writestr)\("
)
_ARCHIVE_TARGET = LazyPattern(
    r"(?:fileobj\s{0,2}=\s{0,2}|zipfile\(\s{0,2}|open\(\s{0,2}(?!fileobj))([a-z_]\w{0,30})\b"
)
_MAX_OPEN_DISTANCE = 1500  # characters between opening an archive and adding to it
_SEND_COMMAND = LazyPattern(
    rf"{_UPLOAD}|\b(?:scp|rsync|sftp)\b[^\n]{{0,200}}[\w.@-]{{1,80}}:|{_PIPE_TO_NETWORK}"
    r"|\b(?:nc|ncat|netcat)\b[^\n]{0,80}<|\b(?:curl|wget)\b[^\n]{0,200}\s(?:-t|--upload-file)"
)
_PAYLOAD = (
    r"(?:data|json|files?|body|content|payload|[a-z0-9_]{1,20}=@|@|-t|-d|--[a-z-]{4,16}|<|scp|rsync"
    r"|cat|open\(|send\w{0,6}\(|upload\w{0,12}\()"
)


def find_sent_archives(lines: ScannedText, is_mention: Callable[[int], bool]) -> Iterator[RuleHit]:
    """Find credential folders that are read into a variable or file and sent later."""
    checked: set[int] = set()
    for match in _CREDENTIAL_FOLDER_PATTERN.finditer(lines.lower):
        start, line = lines.read_line(match.start())
        if start in checked or len(checked) >= _MAX_LINES:
            continue
        checked.add(start)
        piece = Piece(start, line, line.lower())
        at = _find_packing(piece)
        # A line that the rule matches by itself is reported by `apply_rule`.
        if at is not None and EXFILTRATION_RULE.find(piece) is None and _is_sent(lines, piece):
            is_mentioned = is_mention(start + at)
            yield lines.build_hit(EXFILTRATION_RULE, start + at, piece, is_mention=is_mentioned)


def _is_sent(lines: ScannedText, piece: Piece) -> bool:
    """Whether one of the next lines sends a variable or file that this line fills."""
    text, end = lines.lower, piece.start + len(piece.text) + 1
    above = text[max(0, piece.start - _MAX_OPEN_DISTANCE) : piece.start].split("\n")
    above = above[-_MAX_LINES_BETWEEN:]
    names = {*_find_assigned_names(piece.lower), *_find_archive_names(above, piece.lower)}
    # Lines of code rarely exceed 200 characters; the slice bounds the work.
    below = text[end : end + _MAX_LINES_BETWEEN * 200].split("\n")
    for line in below[:_MAX_LINES_BETWEEN]:
        used = [name for name in names if re.search(rf"(?<![\w]){re.escape(name)}(?!\w)", line)]
        if used and _SEND_COMMAND.search(line):
            sent = "|".join(map(re.escape, used))
            if re.search(rf"{_PAYLOAD}[^\n]{{0,80}}(?<!\w)(?:{sent})(?!\w)", line):
                return True
        # The data may be passed on under another name.
        if used:
            names.update(_find_assigned_names(line), _find_archive_names(above, line))
    return False


def _find_archive_names(above: list[str], line: str) -> Iterator[str]:
    """Yield names of the archive that the line adds to, if it was opened above."""
    added = _ARCHIVE_ADDITION.search(line)
    if added is None:
        return
    for other in above:
        if re.search(rf"\b(?:as\s+{added[1]}\b|{added[1]}\s{{0,3}}=)", other):
            yield from _find_assigned_names(other)
            yield from (match[1] for match in _ARCHIVE_TARGET.finditer(other))


def _find_assigned_names(line: str) -> Iterator[str]:
    for match in _ARCHIVE_NAME.finditer(line):
        yield match.group(1)
    for match in _ASSIGNMENT.finditer(line):
        yield next(group for group in match.groups() if group)
