"""Run the catalogue: ``python -m mutants [--daily] [--jobs N] [WORD ...]``; see `mutants.runner`.

Words pick the mutants whose name holds one of them. Exits with 1 unless every mutant was killed.
"""

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from mutants.runner import Copy, Mutant, Verdict, catalogue
from tqdm import tqdm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name holds one of these")
    parser.add_argument("--daily", action="store_true", help="only those that `make test` runs")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()
    mutants = [
        mutant
        for mutant in catalogue()
        if (mutant.daily or not chosen.daily)
        and (not chosen.words or any(word in mutant.name for word in chosen.words))
    ]
    with ExitStack() as made, tqdm(total=len(mutants), unit="mutant") as bar:
        pool = made.enter_context(ThreadPoolExecutor(chosen.jobs))
        copies = SimpleQueue[Copy]()
        for _ in range(min(chosen.jobs, len(mutants))):
            copies.put(made.enter_context(Copy(compiled=True)))

        def judged(mutant: Mutant) -> Verdict:
            copy = copies.get()
            verdict = copy.judge(mutant)
            copies.put(copy)
            bar.write(f"{verdict.outcome:9} {verdict.seconds:6.1f} s  {mutant.name}", sys.stderr)
            bar.update()
            return verdict

        verdicts = list(pool.map(judged, mutants))
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        print(f"{verdict.outcome:9} {verdict.seconds:6.1f} s  {mutant.name}: {mutant.breaks}")
        if verdict.outcome != "killed":
            print(verdict.output, file=sys.stderr)
    killed = sum(verdict.outcome == "killed" for verdict in verdicts)
    print(f"{killed} of {len(mutants)} mutants killed")
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
