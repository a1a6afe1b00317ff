"""Request models: they validate bodies and describe them in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.roles import Role

_MAX_FILE_MODE = 0o177777  # `st_mode` includes the file type
_OCTAL_PATTERN = r"^(0o)?[0-7]{1,7}$"


class RenderPromptRequest(BaseModel):
    """Values for the arguments of a prompt."""

    model_config = ConfigDict(strict=True)

    arguments: (
        dict[str, str | bool | int | Annotated[float, Field(allow_inf_nan=False)] | None] | None
    ) = Field(
        None,
        description="Numbers and booleans are inserted as JSON; null means no value.",
        examples=[{"topic": "tides"}],
    )


def _non_blank_field(description: str) -> Any:  # noqa: ANN401 - as pydantic's `Field`
    return Field(None, min_length=1, pattern=r"\S", description=description)


class RefreshRequest(BaseModel):
    """The source to refresh. Alternative to the query parameters of the same names."""

    model_config = ConfigDict(strict=True, extra="forbid")

    repo: str | None = _non_blank_field("URL of a repository, instead of the configured one.")
    path: str | None = Field(None, description="Folder in the repository.")
    branch: str | None = Field(None, description="Branch of the repository.")
    source: str | None = _non_blank_field("Name of an upload, instead of a repository.")

    def non_blank_fields(self) -> dict[str, str]:
        """Return the fields that are set. Blank ones count as not set, as in the query."""
        return {name: value for name, value in self if value and value.strip()}


class UploadFileRequest(BaseModel):
    """A file of an upload."""

    model_config = ConfigDict(strict=True)

    path: str = Field(description="Relative path with slashes.", examples=["pdf/SKILL.md"])
    content: str = Field(description="Content in canonical base64.", examples=["LS0tCg=="])
    mode: (
        Annotated[int, Field(ge=0, le=_MAX_FILE_MODE)]
        | Annotated[str, Field(pattern=_OCTAL_PATTERN)]
        | None
    ) = Field(
        None,
        description="File mode, as a number or an octal string. Only permissions are used.",
        examples=["0644", 420],
    )

    @property
    def mode_bits(self) -> int | None:
        """The mode as a number; `None` if it is not set."""
        return int(self.mode, 8) if isinstance(self.mode, str) else self.mode


class UploadRequest(BaseModel):
    """A source uploaded by a client: up to 100 files, 256 KiB in total."""

    model_config = ConfigDict(strict=True)

    source: str = Field(description="Name of the upload.", examples=["team-skills"])
    content_hash: str = Field(
        "", alias="contentHash", description="An upload with the same hash changes nothing."
    )
    files: list[UploadFileRequest]


class CreateSkillRequest(BaseModel):
    """A new skill."""

    model_config = ConfigDict(strict=True)

    id: str = Field(description="Folder name of the skill.", examples=["pdf-tools"])
    name: str
    description: str
    body: str = Field("", description="Instructions, in Markdown.")


class EditSkillRequest(BaseModel):
    """The new text of a skill, and the digest of the version it replaces."""

    model_config = ConfigDict(strict=True)

    digest: str = Field(
        description="Digest of the skill as last read. If it is outdated, the edit is rejected."
    )
    name: str
    description: str
    body: str = Field(description="Instructions, in Markdown.")


class ImportSkillsRequest(BaseModel):
    """A source of skills, as for `skillhall add`. Folders on the server are rejected."""

    model_config = ConfigDict(strict=True)

    source: str = Field(examples=["acme/skills/pdf@v2"])
    id: str | None = Field(None, description="Id for the skill, if the source has only one.")
    replace: bool = Field(default=False, description="Replace existing skills.")


class RevokeSkillRequest(BaseModel):
    """A version of a skill to revoke or restore."""

    model_config = ConfigDict(strict=True, extra="forbid")

    digest: str = Field(
        "", description="Digest of the files; by default, of the current files of `skill`."
    )
    skill: str = Field("", description="Id of the skill.")
    reason: str = Field(description="Reason, which is public.")
    instead: str = Field("", description="Version to use instead.", examples=["pdf@4"])
    revoked: bool = Field(default=True, description="`false` undoes a revocation.")


class InventoryItemRequest(BaseModel):
    """A skill on a machine."""

    model_config = ConfigDict(strict=True, extra="forbid")

    name: str
    digest: str = Field("", description="`sha256:` and 64 hexadecimal digits.")
    source: str = Field("", examples=["github.com/acme/skills"])
    commit: str = ""
    signer: str = ""
    state: str = Field("", description="`approved`, `new`, `changed` or `blocked`.")
    risk: str = Field("", description="`L0` to `L3`.")


class SendInventoryRequest(BaseModel):
    """The skills of a machine."""

    model_config = ConfigDict(strict=True, extra="forbid")

    label: str = Field(description="Name of the machine or group.", examples=["laptop-7"])
    skills: list[InventoryItemRequest]


_COMMENT = Field("", max_length=2000, description="Shown to the author and to other reviewers.")


class VersionCommentRequest(BaseModel):
    """An optional comment on a version."""

    model_config = ConfigDict(strict=True, extra="forbid")

    comment: str = _COMMENT


class ReturnVersionRequest(BaseModel):
    """The reason for returning a version to its author."""

    model_config = ConfigDict(strict=True, extra="forbid")

    comment: str = Field(
        min_length=1, max_length=2000, description="What the author should change."
    )


class YankVersionRequest(BaseModel):
    """The reason for yanking a version."""

    model_config = ConfigDict(strict=True, extra="forbid")

    reason: str = Field(min_length=1, max_length=2000, description="Published with the revocation.")


class UseVersionRequest(BaseModel):
    """The approved version to serve."""

    model_config = ConfigDict(strict=True, extra="forbid")

    number: int = Field(ge=1, le=2**31 - 1)
    comment: str = _COMMENT


class AddUserRequest(BaseModel):
    """A new user."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(description="Name to sign in with.", examples=["dev1"])
    role: Role = Field(Role.READER, description="What the user may do.")
    display: str = Field("", description="Name that pages show.")
    subject: str = Field(
        "",
        description=(
            "Subject (`sub`) of the person at the identity provider, if you know it. Otherwise,"
            " the person signs in by a link."
        ),
    )


class EditUserRequest(BaseModel):
    """Changes to a user."""

    model_config = ConfigDict(extra="forbid")

    role: Role | None = Field(None, description="What the user may do.")
    disabled: bool | None = Field(
        None, strict=True, description="Whether tokens and sign-ins of the user are rejected."
    )


class CreateTokenRequest(BaseModel):
    """A new token of one's own."""

    model_config = ConfigDict(extra="forbid")

    label: str = Field(examples=["ci"])
    scopes: list[AccessScope] | None = Field(
        None, description="What the token allows. By default, the same as for other new tokens."
    )
    days: int | None = Field(
        None, ge=1, le=3650, description="Lifetime. By default, it never expires."
    )


class ChangeSettingsRequest(BaseModel):
    """New values of settings."""

    model_config = ConfigDict(strict=True, extra="forbid")

    settings: dict[str, str | int | None] = Field(
        description="Values by name; null restores the default.",
        examples=[{"budget_total": 100000, "language": None}],
    )
