"""The list of revoked digests that a server publishes, signed if it has a key."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from skillhall._internal.policy.trust.revocations import (
    LIST_TYPE,
    build_revocation_list,
    render_revocation_list,
)
from skillhall._internal.skill.bundle import sha256_hex
from skillhall._internal.skill_store.collection import EncodedDocument
from skillhall.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillhall._internal.signing.keys import PrivateKey
    from skillhall._internal.storage.server_revocations import RevocationCache

LIFETIME = timedelta(days=7)  # of a list; clients ask once a day
RENEWAL_INTERVAL = 3600.0  # seconds; until then, the same bytes are sent


class PublishedRevocations:
    """The list as a document, rendered after each change and every hour.

    Thread-safe.
    """

    def __init__(
        self,
        cache: RevocationCache,
        key: PrivateKey | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cache = cache
        self._key = key
        self._clock = clock
        self._lock = threading.Lock()
        self._rendered: tuple[object, float, EncodedDocument] | None = None

    @property
    def is_signed(self) -> bool:
        """Whether the list is in a signed envelope."""
        return self._key is not None

    def get_document(self) -> EncodedDocument:
        """Return the current list.

        Raises: DatabaseUnavailable if the database was never read, not even by an earlier process.
        """
        entries, now = self._cache.entries, self._clock()
        if entries is None:
            raise DatabaseUnavailable("the revocations have not been read yet")
        with self._lock:
            if self._rendered is None or self._is_outdated(entries, now):
                issued = datetime.fromtimestamp(int(now), UTC)
                times = (_format_time(issued), _format_time(issued + LIFETIME))
                data = render_revocation_list(build_revocation_list(entries, *times))
                if self._key is not None:
                    # Only servers with a key need the package for signatures.
                    from skillhall._internal.signing.signer import (  # noqa: PLC0415
                        sign_document,
                    )

                    data = sign_document(data, LIST_TYPE, self._key)
                self._rendered = entries, now, EncodedDocument(data, sha256_hex(data))
            return self._rendered[2]

    def _is_outdated(self, entries: object, now: float) -> bool:
        assert self._rendered is not None  # noqa: S101 - as the caller checked
        known, at, _ = self._rendered
        return known is not entries or abs(now - at) >= RENEWAL_INTERVAL


def _format_time(time_: datetime) -> str:
    return time_.isoformat(timespec="seconds").replace("+00:00", "Z")
