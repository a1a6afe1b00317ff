"""Entry of a sandboxed process: restricts itself, then executes the command.

It runs as a script in its own interpreter, with the standard library only:
`python sandbox_entry.py RULES COMMAND…`, where RULES is JSON. `--probe` prints the restrictions
that this system supports.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys

if sys.platform != "win32":
    import resource

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = (
    *(0x00020000, 0x10000000, 0x20000000),
    *(0x40000000, 0x08000000),
)
_NO_NEW_PRIVILEGES = 38  # of prctl
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls of Landlock
_ABI_FLAG, _PATH_BENEATH = 1, 1
_FILE_READ = 1 << 0 | 1 << 2  # execute, read
_READ = _FILE_READ | 1 << 3  # and list folders
_TRUNCATE_ABI, _REFER_ABI = 3, 2
_CANNOT_START = 126


def main(arguments: list[str]) -> None:
    """Apply the rules and replace this process by the command."""
    if arguments == ["--probe"]:
        supported = {"network": _isolate_namespaces(), "files": _landlock_abi() > 0}
        os.write(1, json.dumps(supported).encode())
        return
    rules = json.loads(arguments[0])
    _limit_resources(rules["limits"])
    if rules["network"] and _isolate_namespaces():
        _become_first_process()
    if rules["files"]:
        _restrict_files(rules["readable"], rules["writable"])
    try:
        os.execvpe(arguments[1], arguments[1:], os.environ)  # noqa: S606 - no shell
    except OSError as error:
        os.write(2, f"cannot start {arguments[1]}: {error.strerror}\n".encode())
        os._exit(_CANNOT_START)


def _limit_resources(limits: dict[str, int]) -> None:
    for name, value in {**limits, "RLIMIT_CORE": 0}.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        bounded = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bounded, bounded))


def _isolate_namespaces() -> bool:
    """Isolate network and processes in new namespaces; return whether that worked."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC
    try:
        if libc.unshare(flags) != 0:
            return False
        for path, text in (
            ("/proc/self/setgroups", "deny"),
            ("/proc/self/uid_map", f"{user} {user} 1"),
            ("/proc/self/gid_map", f"{group} {group} 1"),
        ):
            with open(path, "w", encoding="ascii") as file:  # noqa: PTH123 - starts faster
                file.write(text)
    except (AttributeError, OSError):
        return False
    return True


def _become_first_process() -> None:
    """Continue in a child that is the first of its namespace: all others end with it."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) % 256)


def _landlock_abi() -> int:
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _ABI_FLAG))


def _restrict_files(readable: list[str], writable: list[str]) -> None:
    """Allow access to these paths only, with Landlock.

    The probe has checked that Landlock is supported.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    abi = _landlock_abi()
    last = 14 if abi >= _TRUNCATE_ABI else 13 if abi >= _REFER_ABI else 12  # the last known right
    everything = (1 << (last + 1)) - 1
    ruleset = libc.syscall(_CREATE_RULESET, struct.pack("=Q", everything), 8, 0)
    for paths, access in ((readable, _READ), (writable, everything)):
        for path in paths:
            try:
                descriptor = os.open(path, getattr(os, "O_PATH", 0) | os.O_CLOEXEC)
            except OSError:
                continue  # the path does not exist on this system
            allowed = access if os.path.isdir(path) else access & _file_rights(last)  # noqa: PTH112
            rule = struct.pack("=Qi", allowed, descriptor)
            libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
            os.close(descriptor)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
        os.write(2, b"cannot restrict the files of the process\n")
        os._exit(_CANNOT_START)


def _file_rights(last: int) -> int:
    """Return the rights that apply to files: execute, write, read and truncate."""
    return 0b111 | (1 << 14 if last >= 14 else 0)  # noqa: PLR2004


if __name__ == "__main__":
    main(sys.argv[1:])
