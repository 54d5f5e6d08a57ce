"""TOML with more digits, brackets or tables than any scenario has, and options that are nothing."""

import pytest

from fedsim.errors import ScenarioError
from fedsim.scenario import Scenario, parse_assignment
from fedsim.scenario.toml import DEEPEST, NoTomlError, parse_toml
from tests.support.field_values import write_files
from tests.support.scenario_fields import schema_fields

TOO_MUCH = {
    "5,000 digits": ("a = " + "9" * 5000, r"cannot be read: Exceeds the limit \(4300 digits\).*; allowed: 64 bits"),
    "4,000 digits": ("a = " + "9" * 4000, "a: a whole number of 13288 bits is not allowed"),
    "65 bits": ("[b]\na = [1, 9223372036854775808]", "b.a: a whole number of 64 bits is not allowed"),
    "3,000 brackets": ("a = " + "[" * 3000, "too many brackets"),
    "3,000 closed brackets": ("a = " + "[" * 3000 + "]" * 3000, "too many brackets"),
    "3,000 steps": ("a" + ".a" * 3000 + " = 1", "lies too deep; allowed: 20"),
    "3,000 steps of a table": ("[a" + ".a" * 3000 + "]", "lies too deep"),
    "3,000 braces": ("a = " + "{b = " * 3000, "too many brackets"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_too_much_is_refused(case):
    text, words = TOO_MUCH[case]
    with pytest.raises(ScenarioError, match=words):
        parse_toml(text, "here")
    with pytest.raises(ScenarioError, match=f"^here: .*{words}"):
        Scenario.from_toml(text, source="here")


def test_what_is_deep_enough_is_read():
    assert parse_toml("a = -9223372036854775807", "here")["a"] == -(2**63) + 1
    inner = parse_toml("a = " + "[" * (DEEPEST - 2) + "1" + "]" * (DEEPEST - 2), "here")["a"]
    assert str(inner).count("[") == DEEPEST - 2


def test_other_text_is_no_toml():
    with pytest.raises(NoTomlError, match="here: is not valid TOML"):
        parse_toml("a = nothing", "here")
    with pytest.raises(NoTomlError):
        parse_toml("a = '\0'", "here")


@pytest.mark.parametrize(
    ("text", "words"),
    {
        "seed=" + "9" * 5000: "^--set seed=9*\\.\\.\\.: holds a number that cannot be read",
        "seed=" + "[" * 3000: "too many brackets",
        "a" + ".a" * 3000 + "=1": "names 3001 tables within one another; allowed: 20",
        "seed=9223372036854775808": "64 bits is not allowed",
        "name=\udcff": "is not UTF-8 text",
    }.items(),
    ids=["digits", "brackets", "steps", "bits", "bytes"],
)
def test_values_set_on_the_command_line_have_the_same_bounds(text, words):
    with pytest.raises(ScenarioError, match=words):
        parse_assignment(text)


def test_a_value_of_several_lines_is_a_text():
    assert parse_assignment("name=1\nb = 2") == ("name", "1\nb = 2")


class Patient:
    """A selector with an option that may be nothing and is something by default."""

    def __init__(self, cohort: int = 1, rounds: int | None = 3) -> None:
        self.cohort, self.rounds = cohort, rounds

    def select(self, view, rng):
        return view.clients[: self.cohort]

    def observe(self, reports):
        pass


@pytest.mark.parametrize(
    ("path", "chosen"),
    [
        ("selector", {"kind": "oort", "cohort": 5, "blacklist_after": None}),
        ("network", {"kind": "urban-macro", "sites": None}),
        ("selector", Patient(2, None)),
    ],
)
def test_nothing_stays_nothing_where_something_is_the_default(path, chosen):
    scenario = Scenario.load("scenarios/quickstart.toml").replace({path: chosen})
    again = Scenario.from_toml(scenario.to_toml())
    assert again == scenario
    assert again.digest() == scenario.digest()
    assert '= "none"' in scenario.to_toml().partition(f"[{path}]")[2]


@pytest.mark.parametrize("every", [24, pytest.param(1, marks=pytest.mark.slow)])
def test_each_option_of_each_kind_is_read_as_it_was_written(every, tmp_path, monkeypatch):
    """Each moves the digest, as `tests.learning.test_digests` sees to."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    for field in list(schema_fields())[::every]:
        scenario = field.changed() or field.scenario
        again = Scenario.from_toml(scenario.to_toml())
        assert (again.digest(), again.to_toml()) == (scenario.digest(), scenario.to_toml()), (field.part, field.name)
