"""What clients send, checked once; the same models describe it in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillhall._internal.http.http_error import HttpError

_M = TypeVar("_M", bound=BaseModel)
_MAX_PROBLEMS = 10  # problems that are told
_MAX_FILE_MODE = 0o177777  # what `stat` gives, with the file's type
_OCTAL_PATTERN = r"^(0o)?[0-7]{1,7}$"


class RenderPromptRequest(BaseModel):
    """The values for a prompt's arguments."""

    model_config = ConfigDict(strict=True)

    arguments: (
        dict[str, str | bool | int | Annotated[float, Field(allow_inf_nan=False)] | None] | None
    ) = Field(
        None,
        description="Numbers and booleans are filled in as their JSON text; null is no value.",
        examples=[{"topic": "tides"}],
    )


def _non_blank_field(description: str) -> Any:  # noqa: ANN401 - what pydantic calls a field
    return Field(None, min_length=1, pattern=r"\S", description=description)


class RefreshRequest(BaseModel):
    """Which source to refresh, instead of the query parameters of the same names."""

    model_config = ConfigDict(strict=True, extra="forbid")

    repo: str | None = _non_blank_field("Another repository for this call.")
    path: str | None = Field(None, description="The folder in it, or in the configured repository.")
    branch: str | None = Field(
        None, description="The branch of it, or of the configured repository."
    )
    source: str | None = _non_blank_field("The name of an upload, instead of a repository.")

    def non_blank_fields(self) -> dict[str, str]:
        """The names that are set. As in the query, an empty path or branch is not."""
        return {name: value for name, value in self if value and value.strip()}


class UploadFileRequest(BaseModel):
    """One file of an upload."""

    model_config = ConfigDict(strict=True)

    path: str = Field(description="Relative, with slashes.", examples=["pdf/SKILL.md"])
    content: str = Field(description="The bytes in canonical base64.", examples=["LS0tCg=="])
    mode: (
        Annotated[int, Field(ge=0, le=_MAX_FILE_MODE)]
        | Annotated[str, Field(pattern=_OCTAL_PATTERN)]
        | None
    ) = Field(
        None,
        description="The file's mode, as a number or as octal text; only permissions are kept.",
        examples=["0644", 420],
    )

    @property
    def mode_bits(self) -> int | None:
        """The mode as a number."""
        return int(self.mode, 8) if isinstance(self.mode, str) else self.mode


class UploadRequest(BaseModel):
    """A source that a client sends: up to 100 files, 256 KiB together."""

    model_config = ConfigDict(strict=True)

    source: str = Field(description="The name to ask for it by.", examples=["team-skills"])
    content_hash: str = Field(
        "", alias="contentHash", description="The same one again changes nothing."
    )
    files: list[UploadFileRequest]


class CreateSkillRequest(BaseModel):
    """A new skill."""

    model_config = ConfigDict(strict=True)

    id: str = Field(description="What its folder is called.", examples=["pdf-tools"])
    name: str
    description: str
    body: str = Field("", description="The instructions, in Markdown.")


class EditSkillRequest(BaseModel):
    """The words of a skill, and the digest of what they replace."""

    model_config = ConfigDict(strict=True)

    digest: str = Field(description="Of the skill as it was read; another one now is refused.")
    name: str
    description: str
    body: str = Field(description="The instructions, in Markdown.")


class ImportSkillsRequest(BaseModel):
    """A source of skills, as `skillhall add` takes it; folders of the server are refused."""

    model_config = ConfigDict(strict=True)

    source: str = Field(examples=["acme/skills/pdf@v2"])
    id: str | None = Field(None, description="What to call it, if the source holds one skill.")
    replace: bool = Field(default=False, description="Replace a skill that is there already.")


def parse_model(model: type[_M], value: object) -> _M:
    """The value as the model. Raises: Refused."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise HttpError(
            "invalid_argument",
            "the body has not the right form",
            details={"problems": _validation_problems(error)},
        ) from None


def inline_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The model's JSON Schema, in one piece."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})
    found: dict[str, Any] = _inline_refs(schema, parts)
    return found


def _inline_refs(value: Any, parts: dict[str, Any]) -> Any:  # noqa: ANN401 - any part of a schema
    """The same without references to parts."""
    if isinstance(value, list):
        return [_inline_refs(one, parts) for one in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        rest = {key: one for key, one in value.items() if key != "$ref"}
        return {**_inline_refs(parts[value["$ref"].rpartition("/")[2]], parts), **rest}
    return {key: _inline_refs(one, parts) for key, one in value.items()}


def _validation_problems(error: ValidationError) -> list[dict[str, str]]:
    """Where and what; never the value, which may be a secret."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [
        {"where": ".".join(map(str, one["loc"]))[:200], "problem": one["msg"]}
        for one in found[:_MAX_PROBLEMS]
    ]
