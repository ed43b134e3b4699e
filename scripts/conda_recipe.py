"""Write dpreg's conda recipe, check it, and build it where a channel has all that it needs.

    python scripts/conda_recipe.py SDIST OUT [CHANNEL]

The recipe is made of the source archive's pyproject.toml, so nothing is said twice. rattler-build
parses and renders it. CHANNEL (by default conda-forge) is asked for each dependency: what it
lacks is listed, and where it lacks nothing the package is built and its own test run.
"""

import hashlib
import json
import re
import sys
import tarfile
import tempfile
import tomllib
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from rattler_build import Stage0Recipe, ToolConfiguration

CONDA_FORGE = "https://conda.anaconda.org/conda-forge"


def project(archive: Path) -> dict[str, Any]:
    """Return what pyproject.toml in a source archive says of the project."""
    with tarfile.open(archive) as packed:
        (name,) = (one for one in packed.getnames() if re.fullmatch(r"[^/]+/pyproject\.toml", one))
        file = packed.extractfile(name)
        assert file is not None
        return tomllib.loads(file.read().decode())


def spec(requirement: str) -> str:
    """Return a requirement as conda writes it: the name, a space and the bounds."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9._-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return f"{name} {bounds}".strip()


def recipe(archive: Path) -> dict[str, Any]:
    """Return the recipe of a source archive."""
    told = project(archive)
    own = told["project"]
    return {
        "schema_version": 1,
        "package": {"name": own["name"], "version": own["version"]},
        # Where the owner has uploaded the archive; beside the recipe until then.
        "source": {
            "path": archive.name,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
        },
        "build": {
            "noarch": "python",
            "script": "python -m pip install . --no-deps --no-build-isolation",
            "python": {"entry_points": [f"{k} = {v}" for k, v in own["scripts"].items()]},
        },
        "requirements": {
            "host": [
                f"python {own['requires-python']}",
                "pip",
                *map(spec, told["build-system"]["requires"]),
            ],
            "run": [f"python {own['requires-python']}", *map(spec, own["dependencies"])],
        },
        "tests": [{"python": {"imports": [own["name"]]}}, {"script": ["dpreg --version"]}],
        "about": {
            "summary": own["description"],
            "license": own["license"],
            "license_file": own["license-files"],
        },
    }


def names_in(channel: str) -> set[str]:
    """Return the names of all packages of a channel for any machine and for Linux."""
    names = set()
    for folder in ("noarch", "linux-64"):
        with urllib.request.urlopen(f"{channel}/{folder}/repodata.json", timeout=120) as answer:
            index = json.load(answer)
        for kind in ("packages", "packages.conda"):
            names |= {one["name"] for one in index.get(kind, {}).values()}
    return names


def main() -> None:
    archive, out = map(Path, sys.argv[1:3])
    channel = (sys.argv[3:] or [CONDA_FORGE])[0]
    made = recipe(archive)
    out.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")  # JSON is YAML
    (variant,) = Stage0Recipe.from_file(out).render()
    print(f"{out.name}: parsed and rendered by rattler-build")
    needs = {one.split()[0] for part in made["requirements"].values() for one in part}
    try:
        missing = needs - names_in(channel)
    except (urllib.error.URLError, TimeoutError) as problem:
        print(f"not built: {channel} does not answer ({getattr(problem, 'reason', problem)})")
        return
    if missing:
        print(f"not built: {channel} lacks {', '.join(sorted(missing))}")
        return
    with tempfile.TemporaryDirectory() as place:
        tested = ToolConfiguration(test_strategy="native")
        built = variant.run_build(tested, output_dir=place, channels=[channel])
        for package in built.packages:
            target = out.with_name(Path(package).name)
            target.write_bytes(Path(package).read_bytes())
            print(f"built and tested: {target.name}")


if __name__ == "__main__":
    main()
