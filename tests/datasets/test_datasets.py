"""The data sets: right rows, public bounds that fit, clear words where files are absent."""

import shutil
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dpreg import datasets
from dpreg.columns import Boolean, Categorical, Numeric
from dpreg.errors import ArgumentError, DatasetError, DpregError

FROM_FOLDER = {
    "prostate.csv": datasets.load_prostate,
    "kc_house.csv.gz": datasets.load_kc_house,
}


@pytest.fixture
def real_data(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPREG_DATA", str(data_folder))
    return data_folder


def terms_of(formula: str) -> tuple[str, list[str]]:
    response, right = formula.split(" ~ ")
    return response, right.split(" + ")


def check_schema_fits(data: datasets.Dataset, *, clipped: float) -> None:
    """Columns of the formula are declared, and at most a share `clipped` of any lies outside."""
    response, terms = terms_of(data.formula)
    assert {response, *terms} <= set(data.schema) <= set(data.data.columns)
    for name, declared in data.schema.items():
        column = data.data[name]
        match declared:
            case Numeric(lo, hi):
                assert ((column < lo) | (column > hi)).mean() <= clipped, name
            case Boolean():
                assert column.isin([0, 1]).all(), name
            case Categorical(levels):
                assert column.isin(levels).all(), name


def test_randhie_is_ready_to_use() -> None:
    randhie = datasets.load_randhie()
    response, terms = terms_of(randhie.formula)
    assert randhie.data.shape == (20_190, 10)
    assert response == "mdvis"
    assert len(terms) == 9
    assert randhie.schema["mdvis"] == Numeric(0, 20)
    # One person in a hundred sees a doctor more than twenty times in the year.
    check_schema_fits(randhie, clipped=0.011)
    assert not randhie.simulated


def test_each_call_makes_its_own_frame() -> None:
    first, second = datasets.load_randhie(), datasets.load_randhie()
    first.data.loc[:, "mdvis"] = -1.0
    assert (second.data["mdvis"] >= 0).all()


@pytest.mark.usefixtures("real_data")
def test_prostate_is_the_papers() -> None:
    prostate = datasets.load_prostate()
    assert prostate.data.shape == (97, 10)
    assert prostate.formula == "lpsa ~ lcavol + lweight + age + lcp + lbph"
    check_schema_fits(prostate, clipped=0.0)


@pytest.mark.usefixtures("real_data")
def test_kc_house_has_4096_models() -> None:
    houses = datasets.load_kc_house()
    response, terms = terms_of(houses.formula)
    assert houses.data.shape == (21_613, 19)
    assert response == "price"
    assert len(terms) == 12
    check_schema_fits(houses, clipped=0.03)


@pytest.mark.parametrize("file", FROM_FOLDER)
def test_without_the_variable_the_error_names_source_and_mend(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPREG_DATA", raising=False)
    with pytest.raises(DatasetError, match="DPREG_DATA") as caught:
        FROM_FOLDER[file]()
    assert file in str(caught.value)
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, DpregError)


@pytest.mark.parametrize("file", FROM_FOLDER)
def test_an_absent_file_is_named_and_the_folder_is_not(
    file: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DPREG_DATA", str(tmp_path))
    with pytest.raises(DatasetError, match="no readable file") as caught:
        FROM_FOLDER[file]()
    assert file in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("file", FROM_FOLDER)
def test_a_file_with_one_byte_changed_is_refused(
    file: str, data_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = tmp_path / file
    shutil.copyfile(data_folder / file, copy)
    monkeypatch.setenv("DPREG_DATA", str(tmp_path))
    FROM_FOLDER[file]()
    content = bytearray(copy.read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    with pytest.raises(DatasetError, match="not the file that dpreg knows"):
        FROM_FOLDER[file]()


def test_bay_area_says_that_it_is_simulated() -> None:
    bay = datasets.make_bay_area(50)
    assert bay.simulated
    assert "SIMULATED" in bay.source
    assert "simulated" in repr(bay)
    assert "SIMULATE" in (datasets.make_bay_area.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("n", [0, 1, 2, 5000])
def test_bay_area_stays_within_its_schema(n: int) -> None:
    bay = datasets.make_bay_area(n, seed=1)
    names = ["price", "bsqft", "lsqft", "time", "lat", "long", "age", "nbr", "county"]
    assert bay.data.shape == (n, 9)
    assert [*bay.data.columns] == names
    if n:
        check_schema_fits(bay, clipped=0.0)


def test_bay_area_has_8192_models_by_column() -> None:
    bay = datasets.make_bay_area(10)
    _, terms = terms_of(bay.formula)
    county = bay.schema["county"]
    assert isinstance(county, Categorical)
    assert 2 ** (len(terms) - 1 + len(county.levels) - 1) >= 8192


def test_bay_area_repeats_with_its_seed() -> None:
    first, again, other = (datasets.make_bay_area(200, seed=s).data for s in (3, 3, 4))
    assert first.equals(again)
    assert not first.equals(other)


def test_bay_area_is_hard_enough_to_be_of_use() -> None:
    """Every county occurs, and the linear fit explains some of the price and not all of it."""
    bay = datasets.make_bay_area(20_000)
    county = bay.schema["county"]
    assert isinstance(county, Categorical)
    shares = bay.data["county"].value_counts(normalize=True)
    assert set(shares.index) == set(county.levels)
    assert shares.min() > 0.04
    numbers = bay.data.drop(columns=["price", "county"])
    dummies = [(bay.data["county"] == level) for level in county.levels]
    design = np.column_stack([numbers - numbers.mean(), *dummies]).astype(float)
    price = bay.data["price"].to_numpy()
    residual = price - design @ np.linalg.lstsq(design, price, rcond=None)[0]
    assert 0.2 < 1 - residual.var() / price.var() < 0.7


def test_bay_area_is_made_fast() -> None:
    ends = [time.perf_counter()]
    for _ in range(3):
        datasets.make_bay_area(235_760)
        ends.append(time.perf_counter())
    assert min(b - a for a, b in pairwise(ends)) < 1.0


@pytest.mark.parametrize("n", [-1, 1.5, True, "10"])
def test_bay_area_refuses_a_number_of_rows_that_is_none(n: object) -> None:
    with pytest.raises(ArgumentError, match="n must be"):
        datasets.make_bay_area(n)  # type: ignore[arg-type]


def test_repr_holds_no_rows() -> None:
    text = repr(datasets.load_randhie())
    assert text.startswith("<Dataset: 20,190 rows, 10 columns.")
    assert len(text) < 200
