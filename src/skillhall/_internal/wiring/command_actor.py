"""The actor of commands that change the data of a server."""

from skillhall._internal.policy.access.access_scopes import OPERATOR
from skillhall._internal.policy.access.actor import Actor, Via
from skillhall._internal.settings import read_os_user


def get_actor() -> Actor:
    """Return the operator, by the name of the OS user who runs the command."""
    return Actor(OPERATOR, read_os_user(), Via.CLI)
