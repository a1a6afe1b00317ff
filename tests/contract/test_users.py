"""Contract of users in both databases."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from skillhall._internal.policy.access.access_scopes import AccessScope
from skillhall._internal.policy.access.actor import USER_OWNER_PREFIX, Actor, Via
from skillhall._internal.policy.access.roles import Role
from skillhall._internal.storage.access_tokens import AccessTokens
from skillhall._internal.storage.accounts.user_accounts import UserAccounts
from skillhall._internal.storage.accounts.user_rows import SqlUserTable
from skillhall._internal.storage.records import TOKENS_CHANGED, SignIn, StoredUser
from skillhall._internal.storage.sql.engine import Database
from skillhall._internal.storage.sql.tables import audit, events
from skillhall._internal.storage.sql.token_rows import SqlSignInTable, SqlTokenTable
from skillhall.errors import Conflict, FieldRefused, LinkExpired, TokenNotFound, UserNotFound
from tests.support.actors import ACTOR

ADMIN = Actor("ada", via=Via.REST)
PASSWORD = "purple ladder winter"  # noqa: S105 - of tests alone


class Clock:
    now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(database: Database, clock: Clock) -> UserAccounts:
    return UserAccounts(SqlUserTable(database), clock)


def add_sign_in(database: Database, owner: str, name: str = "a") -> None:
    times = ("2026-01-02T00:00:00+00:00", "2026-01-02T00:00:00+00:00", "2036-01-02T00:00:00+00:00")
    sign_in = SignIn(name, f"d{name}", owner, *times, "", "")
    SqlSignInTable(database).add(sign_in, actor=ACTOR)


def list_actions(database: Database) -> list[tuple[str, str, str]]:
    query = select(audit.c.actor, audit.c.action, audit.c.subject).order_by(audit.c.id)
    rows = database.read(lambda connection: connection.execute(query).all())
    return [(row[0], row[1], row[2]) for row in rows]


def test_user_is_added_listed_and_found(accounts: UserAccounts) -> None:
    added = accounts.add("dev1", Role.AUTHOR, ADMIN, " Dev One ").user
    other = accounts.add("ada", Role.ADMINISTRATOR, ADMIN).user
    assert accounts.list() == [other, added]
    assert accounts.find("dev1") == added
    assert (added.display, added.role, added.password, added.disabled) == (
        "Dev One",
        "author",
        "",
        None,
    )
    with pytest.raises(Conflict, match="the user 'dev1' already exists"):
        accounts.add("dev1", Role.READER, ADMIN)
    with pytest.raises(UserNotFound):
        accounts.find("dev2")


@pytest.mark.parametrize(
    "name", ["", "Dev", "a/b", "a b", "-a", "é", "x" * 65, "operator", "system", "web", "a\n"]
)
def test_invalid_or_reserved_name_is_refused(accounts: UserAccounts, name: str) -> None:
    with pytest.raises(FieldRefused, match="name: "):
        accounts.add(name, Role.READER, ADMIN)
    assert accounts.list() == []


def test_display_name_is_printable(accounts: UserAccounts) -> None:
    for display in ("a\nb", "x" * 101, "\x1b"):
        with pytest.raises(FieldRefused, match="display: "):
            accounts.add("dev1", Role.READER, ADMIN, display)


def test_identity_belongs_to_one_user(database: Database) -> None:
    table = SqlUserTable(database)
    table.add(StoredUser("1", "dev1", "", "reader", "t", "https://id", "s"), ADMIN, None)
    table.add(StoredUser("2", "dev2", "", "reader", "t", "https://other", "s"), ADMIN, None)
    with pytest.raises(Conflict):
        table.add(StoredUser("3", "dev3", "", "reader", "t", "https://id", "s"), ADMIN, None)
    found = table.find_identity("https://other", "s")
    assert found is not None
    assert found.name == "dev2"
    assert table.find_identity("", "") is None


def test_link_sets_a_password_once_and_ends_sign_ins(
    accounts: UserAccounts, database: Database
) -> None:
    created = accounts.add("dev1", Role.AUTHOR, ADMIN)
    add_sign_in(database, f"{USER_OWNER_PREFIX}{created.user.id}")
    assert accounts.find_link(created.code) == created.user
    joined = accounts.use_link(created.code, PASSWORD, Actor("", via=Via.WEB))
    assert joined.password.startswith("scrypt$")
    assert accounts.find("dev1").password == joined.password
    assert SqlSignInTable(database).list() == []
    for use in (accounts.find_link, lambda code: accounts.use_link(code, PASSWORD, ADMIN)):
        with pytest.raises(LinkExpired):
            use(created.code)
    assert list_actions(database)[-1] == ("dev1", "user.password", "dev1")


def test_weak_password_does_not_use_up_the_link(accounts: UserAccounts) -> None:
    created = accounts.add("dev1", Role.AUTHOR, ADMIN)
    with pytest.raises(FieldRefused):
        accounts.use_link(created.code, "dev1-dev1-dev1", ADMIN)
    assert accounts.use_link(created.code, PASSWORD, ADMIN).name == "dev1"


def test_link_expires_after_a_day_and_with_the_next_link(
    accounts: UserAccounts, clock: Clock
) -> None:
    first = accounts.add("dev1", Role.AUTHOR, ADMIN).code
    second = accounts.create_link("dev1", ADMIN).code
    clock.now += timedelta(hours=24, seconds=-1)
    assert accounts.find_link(second).name == "dev1"
    with pytest.raises(LinkExpired):
        accounts.find_link(first)
    clock.now += timedelta(seconds=1)
    with pytest.raises(LinkExpired):
        accounts.use_link(second, PASSWORD, ADMIN)


def test_role_of_another_user_can_be_changed_and_not_the_own_one(accounts: UserAccounts) -> None:
    accounts.add("ada", Role.ADMINISTRATOR, ADMIN)
    accounts.add("dev1", Role.AUTHOR, ADMIN)
    assert accounts.set_role("dev1", Role.REVIEWER, ADMIN).role == "reviewer"
    assert accounts.find("dev1").role == "reviewer"
    for change in (
        lambda: accounts.set_role("ada", Role.READER, ADMIN),
        lambda: accounts.disable("ada", ADMIN),
        lambda: accounts.remove("ada", ADMIN),
    ):
        with pytest.raises(FieldRefused, match="your own account"):
            change()


def test_subject_needs_an_identity_provider_and_belongs_to_one_user(database: Database) -> None:
    with pytest.raises(FieldRefused, match="subject: this server has no identity provider"):
        UserAccounts(SqlUserTable(database)).add("dev1", Role.READER, ADMIN, subject="s")
    accounts = UserAccounts(SqlUserTable(database), issuer="https://id")
    for subject in ("x" * 256, "a\nb", " "):
        with pytest.raises(FieldRefused, match="subject: must be 1 to 255"):
            accounts.add("dev1", Role.READER, ADMIN, subject=subject)
    added = accounts.add("dev1", Role.READER, ADMIN, subject=" s ")
    assert (added.code, added.user.issuer, added.user.subject) == ("", "https://id", "s")
    with pytest.raises(Conflict, match="a user with the subject 's' already exists"):
        accounts.add("dev2", Role.READER, ADMIN, subject="s")


def test_user_with_a_subject_owns_the_tokens_with_the_chosen_name(database: Database) -> None:
    AccessTokens(SqlTokenTable(database)).create("ci", "dev1", actor=ACTOR)
    accounts = UserAccounts(SqlUserTable(database), issuer="https://id")
    assert accounts.add("dev1", Role.READER, ADMIN, subject="s").tokens == 1


def test_last_administrator_stays_while_there_are_users(accounts: UserAccounts) -> None:
    operator = Actor("operator")
    accounts.add("ada", Role.ADMINISTRATOR, operator)
    accounts.add("dev1", Role.AUTHOR, operator)
    changes = (
        lambda: accounts.set_role("ada", Role.READER, operator),
        lambda: accounts.disable("ada", operator),
        lambda: accounts.remove("ada", operator),
    )
    for change in changes:
        with pytest.raises(FieldRefused, match="'ada' is the last active administrator"):
            change()
    assert accounts.set_role("ada", Role.ADMINISTRATOR, operator).role == "administrator"
    accounts.add("eve", Role.ADMINISTRATOR, operator)
    accounts.disable("eve", operator)
    with pytest.raises(FieldRefused, match="last active"):
        accounts.remove("ada", operator)
    accounts.remove("eve", operator)
    accounts.remove("dev1", operator)
    accounts.remove("ada", operator)  # the last user turns sign-in off
    assert accounts.list() == []


def test_administrators_who_remove_each_other_at_once_leave_one(accounts: UserAccounts) -> None:
    names = [f"admin{number}" for number in range(4)]
    for name in names:
        accounts.add(name, Role.ADMINISTRATOR, ADMIN)

    def remove(name: str) -> None:
        with contextlib.suppress(FieldRefused):
            accounts.remove(name, ADMIN)

    accounts.add("dev1", Role.READER, ADMIN)
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(remove, names)]
    assert len([user for user in accounts.list() if user.role == "administrator"]) == 1


def test_disabled_user_has_no_sign_ins_and_no_links(
    accounts: UserAccounts, database: Database
) -> None:
    created = accounts.add("dev1", Role.AUTHOR, ADMIN)
    token = AccessTokens(SqlTokenTable(database)).create("ci", "dev1", actor=ACTOR)
    add_sign_in(database, f"{USER_OWNER_PREFIX}{created.user.id}")
    add_sign_in(database, token.stored.id, "b")
    add_sign_in(database, "operator", "c")
    assert accounts.disable("dev1", ADMIN).disabled is not None
    assert [sign_in.id for sign_in in SqlSignInTable(database).list()] == ["c"]
    with pytest.raises(LinkExpired):
        accounts.find_link(created.code)
    with pytest.raises(FieldRefused, match="is disabled"):
        accounts.create_link("dev1", ADMIN)
    assert accounts.enable("dev1", ADMIN).disabled is None
    assert accounts.create_link("dev1", ADMIN).code


def test_password_is_changed_with_the_current_one_and_ends_other_sign_ins(
    accounts: UserAccounts, database: Database
) -> None:
    user = accounts.use_link(accounts.add("dev1", Role.AUTHOR, ADMIN).code, PASSWORD, ADMIN)
    for name in ("here", "there"):
        add_sign_in(database, f"{USER_OWNER_PREFIX}{user.id}", name)
    with pytest.raises(FieldRefused, match="current: "):
        accounts.change_password(user, "wrong", "another good one", ADMIN)
    changed = accounts.change_password(user, PASSWORD, "green bottle summer", ADMIN, "here")
    assert accounts.find("dev1") == changed
    assert [sign_in.id for sign_in in SqlSignInTable(database).list()] == ["here"]


def test_tokens_belong_to_the_user_with_the_name_of_their_owner(
    accounts: UserAccounts, database: Database
) -> None:
    tokens = AccessTokens(SqlTokenTable(database))
    tokens.create("old", "dev1", actor=ACTOR)
    tokens.create("other", "operator", actor=ACTOR)
    added = accounts.add("dev1", Role.AUTHOR, ADMIN)
    assert added.tokens == 1
    new = tokens.create("new", "dev1", [AccessScope.READ], actor=ACTOR).stored
    assert new.user == added.user.id
    owners = {token.label: token.user for token in tokens.list()}
    assert owners == {"old": added.user.id, "other": None, "new": added.user.id}
    assert [token.label for token in tokens.list(user=added.user.id)] == ["old", "new"]
    with pytest.raises(TokenNotFound):
        tokens.revoke("other", added.user.id, actor=ACTOR)
    tokens.revoke("new", added.user.id, actor=ACTOR)


def test_removed_user_leaves_no_token_sign_in_or_link(
    accounts: UserAccounts, database: Database
) -> None:
    tokens = AccessTokens(SqlTokenTable(database))
    added = accounts.add("dev1", Role.AUTHOR, ADMIN)
    tokens.create("ci", "dev1", actor=ACTOR)
    tokens.create("other", actor=ACTOR)
    add_sign_in(database, f"{USER_OWNER_PREFIX}{added.user.id}")
    accounts.remove("dev1", ADMIN)
    assert accounts.list() == []
    assert [token.label for token in tokens.list()] == ["other"]
    [revoked] = [token for token in tokens.list(with_revoked=True) if token.label == "ci"]
    assert revoked.revoked is not None
    assert SqlSignInTable(database).list() == []
    with pytest.raises(LinkExpired):
        accounts.find_link(added.code)


def test_every_change_is_recorded_and_announced(accounts: UserAccounts, database: Database) -> None:
    accounts.add("dev1", Role.AUTHOR, ADMIN)
    accounts.set_role("dev1", Role.READER, ADMIN)
    accounts.disable("dev1", ADMIN)
    accounts.enable("dev1", ADMIN)
    accounts.create_link("dev1", ADMIN)
    accounts.remove("dev1", ADMIN)
    actions = ["add", "role", "disable", "enable", "link", "remove"]
    assert list_actions(database) == [("ada", f"user.{action}", "dev1") for action in actions]
    query = select(events.c.kind)
    kinds = database.read(lambda connection: connection.execute(query).scalars().all())
    assert [*kinds] == [TOKENS_CHANGED] * len(actions)
