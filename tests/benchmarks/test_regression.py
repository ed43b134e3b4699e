"""The tables of the regression benchmark."""

import json

from benchmarks.regression import gathered


def cell(eps, **errors):
    methods = {name: {"excess": error} for name, error in errors.items()}
    tried = {name: {"null": error} for name, error in errors.items()}
    taken = "adaptive" if "auto" in errors else ""
    head = {"data": "drawn", "eps": eps, "delta": 0.0, "taken": taken}
    return {**head, "methods": methods, "tried": tried}


def test_a_method_of_a_cell_is_of_the_last_file_that_ran_it(tmp_path):
    files = [tmp_path / "all.jsonl", tmp_path / "anew.jsonl", tmp_path / "peers.jsonl"]
    rows = [[cell(1, auto=3, peer=2), cell(4, auto=1, peer=1)], [cell(1, auto=1)], [cell(1, ihm=5)]]
    for file, lines in zip(files, rows, strict=True):
        file.write_text("".join(json.dumps(row) + "\n" for row in lines))
    assert gathered(files) == [cell(1, auto=1, peer=2, ihm=5), cell(4, auto=1, peer=1)]
