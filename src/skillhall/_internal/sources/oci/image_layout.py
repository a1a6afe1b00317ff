"""Image layouts: the files of an image in a local folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from skillhall._internal.fs.handles import open_root, read_below
from skillhall._internal.skill.bundle import RelativePath
from skillhall._internal.sources.base import OpenedSource
from skillhall._internal.sources.folder.root import Root
from skillhall._internal.sources.oci.image import MAX_MANIFEST, describe_malformed, read_image
from skillhall._internal.strict_json import InvalidJson, JsonObject
from skillhall.errors import ArchiveRejected, SkillFileNotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillhall._internal.sources.base import SourceContext
    from skillhall._internal.sources.oci.image import Descriptor
    from skillhall._internal.sources.oci.oci_ref import LayoutRef

_INDEX = "index.json"


class _LayoutFolder(NamedTuple):
    """Folder of a layout; implements `BlobStore`."""

    path: str

    def read_file(self, path: str, max_bytes: int) -> bytes:
        """Read a file of the layout. Raises: SkillFileNotFound, NotAFile, TooLarge."""
        try:
            with open_root(self.path) as folder:
                return read_below(folder, RelativePath.parse(path), max_bytes)
        except OSError:
            raise SkillFileNotFound(path) from None

    def read_manifest(self, descriptor: Descriptor) -> bytes:
        """Read a manifest. Raises: as `read_file`."""
        return self._read_blob(descriptor)

    def read_blobs(self, descriptors: Sequence[Descriptor]) -> list[bytes]:
        """Read blobs. Raises: as `read_file`."""
        return [self._read_blob(one) for one in descriptors]

    def _read_blob(self, descriptor: Descriptor) -> bytes:
        return self.read_file(f"blobs/{descriptor.digest.replace(':', '/')}", descriptor.size)


def open_layout(reference: LayoutRef, context: SourceContext) -> OpenedSource:
    """Read the image of a layout, which must have exactly one.

    Raises: ArchiveRejected, NoSkillThere, SkillFileNotFound, NotAFile, TooLarge.
    """
    path = Root.resolve(reference.path, context.settings.working_directory).path
    folder, name = _LayoutFolder(path), os.path.basename(path)
    document = folder.read_file(_INDEX, MAX_MANIFEST)
    try:
        count = len(JsonObject.parse(document).require("manifests", list))
        if count != 1:
            problem = f"it contains {count} images instead of one"
            raise ArchiveRejected(name, "confusion", problem)
        bundles = read_image(document, folder, name, reference.text)
    except InvalidJson as error:
        raise ArchiveRejected(name, "malformed", describe_malformed(error)) from None
    return OpenedSource(reference, bundles)
