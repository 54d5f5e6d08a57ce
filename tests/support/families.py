"""Laws over a whole catalogue: one kind of each family in the default tier, the others in the slow tier."""

import pytest


def folder(place):
    return module(place).rpartition(".")[0]


def module(place):
    return place.partition(":")[0]


def first_kinds(catalogue, family=folder):
    """Return one kind of each family of a catalogue: that of the file with the family's name, or the first by name."""

    def order(kind):
        home = module(catalogue.builtin[kind]).split(".")
        return home[-1] != home[-2], kind

    return sorted(
        {family(catalogue.builtin[kind]): kind for kind in sorted(catalogue.builtin, key=order)[::-1]}.values()
    )


def by_family(catalogue, family=folder):
    """Return each kind of a catalogue as a parameter, marked slow where another kind stands for its family."""
    return by_default(sorted(catalogue.builtin), first_kinds(catalogue, family))


def by_default(cases, chosen):
    """Return cases as parameters, marked slow where they are not among the chosen."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=() if case in chosen else pytest.mark.slow)
        for case in cases
    ]
