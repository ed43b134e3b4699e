"""Work done as another user: root passes every permission, so a test of them has to be somebody.

The work runs in a fork that has given up root; nothing is imported there. Skips visibly where this
process is not root and so cannot become somebody else.
"""

import os
import traceback

import pytest
from oracles.forks import FORK

NOBODY, OTHER, GROUP = 65534, 65533, 65532


def as_user(work, user=NOBODY, group=65534, groups=(), umask=0o022):
    """Run `work()` in a process of this user and group; return what it returns."""
    if os.geteuid() != 0:
        pytest.skip("only root can work as another user")
    here, there = FORK.Pipe()

    def inside():
        os.setgroups(list(groups))
        os.setgid(group)
        os.setuid(user)
        os.umask(umask)
        try:
            there.send((True, work()))
        except BaseException:
            there.send((False, traceback.format_exc()))

    process = FORK.Process(target=inside)
    process.start()
    fine, result = here.recv() if here.poll(60) else (False, "no answer in a minute")
    process.join(10)
    assert fine, result
    return result


def reachable(folder):
    """Let other users pass through the folders above a temporary one."""
    for one in (folder, *folder.parents):
        mode = one.stat().st_mode & 0o777
        if one.stat().st_uid == os.geteuid() and mode & 0o011 != 0o011:
            one.chmod(mode | 0o011)
