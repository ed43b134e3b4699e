"""A real PostgreSQL server for tests: Debian's, on loopback, in a temporary folder.

PostgreSQL refuses to run as root: root lends it to the user `postgres`, whom the package makes.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

BIN = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


def free_port():
    """Find a port that the system does not hand out by itself: while the server is away, a client
    that tries again and again could be given the server's own."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Server:
    def __init__(self, folder):
        self.bin = BIN[-1]
        self.folder = folder / "base"
        self.user = "postgres" if os.geteuid() == 0 else None
        self.port = free_port()
        if self.user:
            for parent in (folder, *folder.parents):
                if parent.owner() == "root" and not parent.stat().st_mode & 1:
                    parent.chmod(parent.stat().st_mode | 0o711)
            shutil.chown(folder, self.user)
        self._run("initdb", "-D", self.folder, "-A", "trust", "-U", "owner", "-E", "UTF8", "-N")
        self.start()

    def _run(self, name, *arguments):
        subprocess.run(
            [self.bin / name, *arguments],
            check=True,
            user=self.user,
            cwd="/",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            timeout=60,
        )

    def start(self):
        options = (
            f"-p {self.port} -c listen_addresses=127.0.0.1 -c max_connections=150 -k {self.folder}"
        )
        log = self.folder / "log"
        for attempt in range(5):  # after a stop at once, its processes may still be ending
            try:
                self._run("pg_ctl", "-D", self.folder, "-w", "-l", log, "-o", options, "start")
                return
            except subprocess.CalledProcessError:
                time.sleep(0.5 + attempt)
        told = log.read_text().splitlines()
        raise AssertionError("\n".join(line for line in told if "starting up" not in line))

    def stop(self, mode="immediate"):
        self._run("pg_ctl", "-D", self.folder, "-m", mode, "-w", "stop")

    def url(self, base="postgres", user="owner"):
        return f"postgresql://{user}@127.0.0.1:{self.port}/{base}"

    def sql(self, statement, base="postgres"):
        import psycopg

        with psycopg.connect(self.url(base), autocommit=True) as connection:
            connection.execute(statement)
