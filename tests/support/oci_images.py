"""Images by the OCI specification, and a small registry for them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from tests.support.archives import tgz_of
from tests.support.http_server import HttpServer, ReceivedRequest, Route, respond

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
REALM = "/token"


def digest_of(data: bytes) -> str:
    return f"sha256:{sha256(data).hexdigest()}"


def describe(data: bytes, media_type: str = LAYER, **fields: object) -> dict[str, object]:
    """Return the descriptor of a blob; `fields` replace or add some."""
    return {"mediaType": media_type, "digest": digest_of(data), "size": len(data), **fields}


def make_manifest(layers: Iterable[Mapping[str, object]], **fields: object) -> bytes:
    document = {"schemaVersion": 2, "mediaType": MANIFEST, "config": describe(b"{}")}
    return json.dumps({**document, "layers": [*layers], **fields}).encode()


def make_index(*manifests: Mapping[str, object], **fields: object) -> bytes:
    document = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests}
    return json.dumps({**document, **fields}).encode()


def pack_layer(files: Mapping[str, bytes], folder: str = "skills/pdf/") -> bytes:
    return tgz_of({f"{folder}{path}": data for path, data in files.items()})


@dataclass
class ImageFiles:
    """What a registry serves, by path; `tag` names the latest image."""

    repository: str = "acme/skills"
    files: dict[str, bytes] = field(default_factory=dict)

    def add_blob(self, data: bytes) -> bytes:
        self.files[f"/v2/{self.repository}/blobs/{digest_of(data)}"] = data
        return data

    def add_manifest(self, data: bytes, tag: str = "latest") -> bytes:
        for name in (tag, digest_of(data)):
            self.files[f"/v2/{self.repository}/manifests/{name}"] = data
        return data

    def add_image(self, *layers: bytes, tag: str = "latest") -> bytes:
        """Add an image; return its manifest."""
        described = [describe(self.add_blob(layer)) for layer in layers]
        return self.add_manifest(make_manifest(described), tag)

    def add_layout(self, folder: Path, tag: str) -> None:
        """Add the image of a layout, as programs that upload it do."""
        [entry] = json.loads((folder / "index.json").read_bytes())["manifests"]
        for blob in (folder / "blobs/sha256").iterdir():
            self.add_blob(blob.read_bytes())
        digest = str(entry["digest"]).removeprefix("sha256:")
        self.add_manifest((folder / "blobs/sha256" / digest).read_bytes(), tag)


@dataclass
class Registry:
    """Registry on a test server; with `token`, clients need one from its token service."""

    site: HttpServer
    images: ImageFiles = field(default_factory=ImageFiles)
    token: str = ""
    login: str = ""  # Authorization header that the token service asks for
    realm: str = ""  # of another token service
    challenge: str = ""  # replaces the one for tokens

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.site.port}"

    @property
    def text(self) -> str:
        return f"oci://{self.host}/{self.images.repository}"

    def find_route(self, request: ReceivedRequest) -> Route:
        path, authorization = request.target.partition("?")[0], request.headers.get("authorization")
        if path == REALM:
            if authorization == (self.login or None):
                return respond(body=json.dumps({"token": self.token}).encode())
            return respond("401 Unauthorized")
        if self.token and authorization != f"Bearer {self.token}":
            realm = self.realm or self.site.url(REALM)
            challenge = f'Bearer realm="{realm}",service="acme",scope="repository:x:push"'
            headers = {"WWW-Authenticate": self.challenge or challenge}
            return respond("401 Unauthorized", headers=headers)
        data = self.images.files.get(path)
        return respond("404 Not Found") if data is None else respond(body=data)
