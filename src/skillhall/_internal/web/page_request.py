"""Requests and handlers of pages: forms, preferences, notices and errors."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from typing import NamedTuple, Self, TypeAlias
from urllib.parse import parse_qsl, quote

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope

from skillhall._internal.http.access import actor_of, may
from skillhall._internal.http.credentials import Credential
from skillhall._internal.http.http_error import HttpError
from skillhall._internal.http.multipart import MULTIPART_TYPE, read_multipart
from skillhall._internal.http.request import CREDENTIAL_KEY, content_type, read_body
from skillhall._internal.policy.access.actor import Actor
from skillhall._internal.policy.access.roles import Action
from skillhall._internal.skill_store.collection import Collection
from skillhall._internal.web.site import Site
from skillhall._internal.web.translations import Translations, load_translations, negotiate_language
from skillhall._internal.workspace.workspace import Workspace
from skillhall.errors import SkillhallError

LANGUAGE_COOKIE = "skillhall_language"
THEME_COOKIE = "skillhall_theme"
NOTICE_COOKIE = "skillhall_notice"
SITE_KEY = "skillhall.site"  # in the ASGI scope
THEMES = ("auto", "light", "dark")
# Main menu: text key below `menu`, and URL.
SECTIONS = {
    "skills": "/skills",
    "reviews": "/reviews",
    "sessions": "/sessions",
    "playground": "/playground",
    "sources": "/sources",
}
# Sections of the pages whose path does not start with the name of the section.
_OTHER_SECTIONS = {"skill": "skills", "policy": "skills"} | dict.fromkeys(
    ("session", "template", "templates"), "sessions"
)
_NOTICE_LIFETIME = 60  # seconds; a notice is shown by the next page or not at all
_MAX_NAMES = 5  # in a notice
_MAX_SUBJECT_LENGTH = 400  # characters of a notice's subject
_MAX_UPLOAD_BYTES = 110 * 1024 * 1024  # form with files: one skill may have 100 MB
_MAX_FORM_BYTES = 2 * 1024 * 1024  # form without files: a SKILL.md, percent-encoded
_MAX_PARTS = 2_100  # a skill has at most 2,000 files
_MAX_FIELDS = 4_000


class Notice(NamedTuple):
    """Message about the last change, shown once by the next page."""

    key: str  # text key below `notice`
    subject: str = ""
    # A change id, "session/block" of a deleted block, or "?query" of a removed repository.
    undo_ref: str = ""

    @property
    def undo_url(self) -> str:
        """URL that undoes the change; "" if it cannot be undone."""
        if self.undo_ref.startswith("?"):
            return f"/sources/follow{self.undo_ref}"
        session, _, block = self.undo_ref.partition("/")
        if block:
            return f"/session/{quote(session, safe='')}/blocks/{quote(block, safe='')}/restore"
        return f"/changes/{quote(self.undo_ref, safe='')}/undo" if self.undo_ref else ""

    def encode(self) -> str:
        """Encode the notice for its cookie."""
        text = json.dumps([self.key, self.subject[:_MAX_SUBJECT_LENGTH], self.undo_ref])
        return base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")

    @classmethod
    def parse(cls, text: str, translations: Translations) -> Self | None:
        """Parse the value of a notice cookie; None if it is not valid."""
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            key, subject, undo_ref = map(str, json.loads(base64.urlsafe_b64decode(padded)))
        except (ValueError, TypeError, UnicodeError, binascii.Error, RecursionError):
            return None
        return cls(key, subject, undo_ref) if f"notice.{key}" in translations.messages else None


class PageRequest(Request):
    """Request for a page. The form of a POST is read before the handler runs."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self.fields: ImmutableMultiDict[str, str] = ImmutableMultiDict()  # of the form
        self.files: tuple[tuple[str, bytes], ...] = ()  # name and content
        self.error: SkillhallError | None = None  # of the submitted form, which is shown again
        self.failed_form = ""  # the form with the error, on a page with several

    async def read_form(self) -> None:
        """Read the form into `fields` and `files`. Raises: HttpError, ClientDisconnect."""
        # Not Starlette's `form()`, which limits neither the size nor the time of an upload.
        kind = content_type(self)
        if kind == MULTIPART_TYPE:
            upload = await read_multipart(self, _MAX_UPLOAD_BYTES, _MAX_PARTS)
            self.fields = ImmutableMultiDict(upload.fields)
            self.files = tuple((file.name, file.data) for file in upload.files)
            return
        if kind not in ("application/x-www-form-urlencoded", ""):
            raise HttpError("unsupported_media_type", "the request body must be a form")
        body = await read_body(self, _MAX_FORM_BYTES)
        try:
            text = body.decode("ascii")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise HttpError("invalid_argument", "the form cannot be read") from None
        self.fields = ImmutableMultiDict(pairs)

    def field(self, name: str) -> str:
        """Return a field of the form; "" if it is missing."""
        return self.fields.get(name, "")

    def number_field(self, name: str) -> int:
        """Return a field of the form as a number.

        A field that is not a number becomes -1, which is never a valid version.
        """
        return parse_number(self.field(name))

    @property
    def site(self) -> Site:
        """Services behind the pages."""
        site: Site = self.scope[SITE_KEY]
        return site

    @property
    def collection(self) -> Collection:
        """Skills of this server."""
        return self.site.collection

    @property
    def workspace(self) -> Workspace:
        """Sessions of this server. Raises: HttpError, DatabaseUnavailable."""
        if self.site.workspace is None:
            raise HttpError("not_found", "sessions are not enabled on this server")
        return self.site.workspace.acting_as(self.actor).open()

    def add_cookie(self, response: Response, name: str, value: str, seconds: int) -> None:
        """Set a cookie; 0 seconds deletes it."""
        cookie = self.site.credentials.build_cookie(name, value, seconds)
        response.headers.append("set-cookie", cookie.decode("ascii"))

    def join_names(self, names: Iterable[str]) -> str:
        """Join the names of changed things for a notice; of many, only the first ones."""
        all_names = [*names]
        text, rest = ", ".join(all_names[:_MAX_NAMES]), len(all_names) - _MAX_NAMES
        return f"{text} {self.translations('recent.more', count=rest)}" if rest > 0 else text

    def redirect(self, url: str, notice: str, subject: str, undo_ref: str = "") -> Response:
        """Redirect to a page that shows a notice."""
        response = redirect(url)
        text = Notice(notice, subject, undo_ref).encode()
        self.add_cookie(response, NOTICE_COOKIE, text, _NOTICE_LIFETIME)
        return response

    @cached_property
    def translations(self) -> Translations:
        """Texts in the visitor's language."""
        site: Site | None = self.scope.get(SITE_KEY)  # None on the page for unknown paths
        runtime = None if site is None else site.runtime
        default = "" if runtime is None else runtime.values.language
        chosen = self.cookies.get(LANGUAGE_COOKIE, "") or default
        return load_translations(
            negotiate_language(chosen, self.headers.get("accept-language", ""))
        )

    @cached_property
    def notice(self) -> Notice | None:
        """Message about the last change, if it has not been shown yet."""
        return Notice.parse(self.cookies.get(NOTICE_COOKIE, ""), self.translations)

    @property
    def theme(self) -> str:
        """Color theme."""
        theme = self.cookies.get(THEME_COOKIE, "")
        return theme if theme in THEMES else "auto"

    @property
    def credential(self) -> Credential | None:
        """Credential of the request; None if none is required."""
        return self.scope.get(CREDENTIAL_KEY)

    def may(self, action: Action) -> bool:
        """Whether the user may perform an action."""
        return may(self.scope, action)

    @property
    def sections(self) -> dict[str, str]:
        """URLs of the sections of the main menu that the user can open."""
        site: Site | None = self.scope.get(SITE_KEY)  # None on the page for unknown paths
        is_reviewed = site is not None and site.collection.is_reviewed
        has_reviews = is_reviewed and self.may(Action.WRITE_SKILLS)
        return {key: url for key, url in SECTIONS.items() if key != "reviews" or has_reviews}

    @property
    def can_read_audit(self) -> bool:
        """Whether there is an audit log that the user may read."""
        site: Site | None = self.scope.get(SITE_KEY)
        return site is not None and site.audit is not None and self.may(Action.READ_AUDIT)

    @property
    def can_read_status(self) -> bool:
        """Whether the user may read the status; not on the page for an unknown route."""
        return SITE_KEY in self.scope and self.may(Action.READ_STATUS)

    @property
    def has_checklist(self) -> bool:
        """Whether there is a security checklist; not on the page for an unknown route."""
        site: Site | None = self.scope.get(SITE_KEY)
        return site is not None and site.trust is not None

    @property
    def can_revoke(self) -> bool:
        """Whether the user may revoke skills."""
        return self.has_checklist and self.may(Action.REVIEW_SKILLS)

    @property
    def can_read_inventory(self) -> bool:
        """Whether there are inventories that the user may read."""
        return self.has_checklist and self.may(Action.READ_INVENTORY)

    @property
    def server_url(self) -> str:
        """URL by which clients reach this server."""
        return self.site.settings.server.public_url or str(self.base_url).rstrip("/")

    @property
    def actor(self) -> Actor:
        """Who sent the request."""
        return actor_of(self.scope)

    @property
    def is_signed_in(self) -> bool:
        """Whether the browser is signed in."""
        return self.credential is not None and self.credential.sign_in is not None

    @property
    def shows_users(self) -> bool:
        """Whether the menu has a link to the users."""
        return self.credential is not None and self.may(Action.MANAGE_USERS)

    @property
    def section(self) -> str:
        """Section of the main menu that the page belongs to; "" for none."""
        folder = self.scope["path"].split("/")[1]
        section = _OTHER_SECTIONS.get(folder, folder)
        return section if section in SECTIONS else ""

    @property
    def return_path(self) -> str:
        """Page to show after a change of theme or language, percent-encoded."""
        if self.method == "GET":
            return str(self.scope["raw_path"], "latin-1")
        # The response to a POST has no URL of its own to return to.
        return SECTIONS.get(self.section, "/")


PageHandler: TypeAlias = Callable[[PageRequest], Response]


def on_error(page: PageHandler, form: str = "") -> Callable[[PageHandler], PageHandler]:
    """Show `page` again if the handler of one of its forms raises an error.

    `form` is the name of that form, on a page with several forms.
    """

    def decorate(handler: PageHandler) -> PageHandler:
        @wraps(handler)
        def handle(request: PageRequest) -> Response:
            try:
                return handler(request)
            except SkillhallError as error:
                request.error, request.failed_form = error, form
                return page(request)

        return handle

    return decorate


def redirect(url: str) -> RedirectResponse:
    """Redirect with status 303, so that the browser follows with GET."""
    return RedirectResponse(url, 303)


def parse_number(text: str) -> int:
    """Parse a non-negative integer from a form or URL; return -1 for anything else."""
    is_number = text.isascii() and text.isdigit() and len(text) < 18  # noqa: PLR2004 - fits 64 bits
    return int(text) if is_number else -1
