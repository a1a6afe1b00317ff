"""The components of a release, as a CycloneDX document."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import dev

_PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)


def build_sbom(version: str, distributions: Sequence[Path], root: Path) -> str:
    """Return the document for the files of a release and the packages that they need.

    The same input gives the same text: it has no time and no random serial number.
    """
    requirements = (root / dev.IMAGE_LOCK).read_text(encoding="utf-8")
    packages = [
        _describe("pypi", name, number) for name, number in sorted(_PIN.findall(requirements))
    ]
    browser = [_describe("npm", name, number) for name, number in _find_browser_packages(root)]
    files = [{"type": "file", "name": path.name, "hashes": [_hash(path)]} for path in distributions]
    main = _describe("pypi", "skillhall", version)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**main, "components": files}},
        "components": [*packages, *browser],
        "dependencies": [
            {"ref": main["bom-ref"], "dependsOn": [one["bom-ref"] for one in packages + browser]}
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _find_browser_packages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield the npm packages in the browser files, with their versions."""
    text = (root / "package-lock.json").read_text(encoding="utf-8")
    wanted = [source.split("/")[0] for source in dev.BROWSER_FILES.values()]
    for path, package in sorted(json.loads(text)["packages"].items()):
        name = path.removeprefix("node_modules/")
        if any(fnmatch(name, pattern) for pattern in (*wanted, *dev.EDITOR_PACKAGES)):
            yield name, package["version"]


def _describe(kind: str, name: str, version: str) -> dict[str, str]:
    url = f"pkg:{kind}/{name.replace('@', '%40')}@{version}"
    return {"type": "library", "bom-ref": url, "name": name, "version": version, "purl": url}


def _hash(path: Path) -> dict[str, str]:
    return {"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}
