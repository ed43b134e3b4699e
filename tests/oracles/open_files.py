"""Files that this process has open, with a name or without."""

import gc
import os


def open_files(folder):
    """Return the states of this process's files in a folder, named or not."""
    gc.collect()
    found = []
    for one in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{one}").startswith(str(folder)):
                found.append(os.fstat(int(one)))
        except OSError:  # the one that listed them
            continue
    return found
