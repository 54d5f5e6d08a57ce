"""Logs: which columns may be missing, what is taken instead, and what is refused."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedsim.calibration import calibrate, read_log
from fedsim.errors import DataError, FedsimError
from fedsim.history.outcomes import COMPUTE, NOT_CUT, UPLINK, Outcome

ROWS = 12


def written(place, **columns):
    rows = [columns, *zip(*columns.values(), strict=True)]
    place.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    return place


def whole(**changes):
    index = np.arange(ROWS)
    columns = {
        "client": [f"phone {i % 3}" for i in index],
        "round": index // 3,
        "start_s": 10.0 * (index // 3),
        "end_s": 10.0 * (index // 3) + 3 + index % 3,
        "downlink_s": np.full(ROWS, 0.5),
        "compute_s": np.full(ROWS, 1.5),
        "uplink_s": 1.0 + index % 3,
        "outcome": ["delivered"] * (ROWS - 1) + ["dropped"],
        "cut_in": [""] * (ROWS - 1) + ["compute"],
        **changes,
    }
    return {name: values for name, values in columns.items() if values is not None}


def test_a_whole_log_is_read_as_it_is(tmp_path):
    log = read_log(written(tmp_path / "log.csv", **whole()))
    assert log.names == ("phone 0", "phone 1", "phone 2")
    assert log.client.tolist() == [0, 1, 2] * 4
    assert log.cut_in.tolist() == [NOT_CUT] * (ROWS - 1) + [COMPUTE]
    assert log.outcome.tolist() == [Outcome.DELIVERED] * (ROWS - 1) + [Outcome.DROPPED]
    assert log.round_times_s().tolist() == [5.0] * 4
    assert log.rounds == 4
    assert log.notes == ("samples missing: all clients are taken to have as many",)


def test_parquet_with_labels_and_nulls_is_read_alike(tmp_path):
    columns = whole()
    columns["cut_in"] = pa.array([text or None for text in columns["cut_in"]]).dictionary_encode()
    pq.write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    assert log.cut_in.tolist() == [NOT_CUT] * (ROWS - 1) + [COMPUTE]


def test_without_phases_the_whole_time_is_an_uplink(tmp_path):
    columns = whole(downlink_s=None, compute_s=None, uplink_s=None, start=range(ROWS))
    log = read_log(written(tmp_path / "log.csv", **columns))
    assert np.isnan(log.spent_s[:2]).all()
    assert log.spent_s[UPLINK].tolist() == [3.0, 4.0, 5.0] * 4
    assert log.cut_in[-1] == UPLINK
    assert "columns not read: start" in log.notes[0]
    assert "the whole participation is taken" in log.notes[1]


def test_the_least_that_is_needed(tmp_path):
    log = read_log(written(tmp_path / "log.csv", client=range(ROWS), uplink_s=range(ROWS)))
    assert (log.round, log.start_s, log.rounds, log.round_times_s().size) == (None, None, 0, 0)
    missing = ["outcome", "downlink_s and compute_s", "round, start_s or end_s"]
    assert [note.split(" missing")[0] for note in log.notes] == missing


def test_a_lost_client_without_a_phase_was_cut_in_its_last_one(tmp_path):
    uplink_s = [1.0] * (ROWS - 2) + [0.0, 0.5]
    outcome = ["delivered"] * (ROWS - 2) + ["dropped", "late"]
    log = read_log(written(tmp_path / "log.csv", **whole(cut_in=None, outcome=outcome, uplink_s=uplink_s)))
    assert log.cut_in[-2:].tolist() == [COMPUTE, UPLINK]


def test_lost_clients_without_a_phase_beside_others_that_have_one(tmp_path):
    outcome = ["delivered"] * (ROWS - 2) + ["dropped"] * 2
    cut_in = [""] * (ROWS - 1) + ["compute"]
    log = read_log(written(tmp_path / "log.csv", **whole(outcome=outcome, cut_in=cut_in)))
    assert log.cut_in[-2:].tolist() == [UPLINK, COMPUTE]
    assert log.notes[0].startswith("cut_in of 1 lost participations missing: the last phase that took time")


def test_queues_classes_samples_and_rounds(tmp_path):
    table = written(tmp_path / "rounds.csv", candidates=[3, 2, 3, 2])
    columns = whole(queue_s=[1.0] * ROWS, end_s=whole()["end_s"] + 1, samples=[10, 20, 30] * 4)
    columns["class"] = ["old", "new", "new"] * 4
    log = read_log(written(tmp_path / "log.csv", **columns), table)
    assert log.spent_s[UPLINK].tolist() == [2.0, 3.0, 4.0] * 4
    assert (log.groups, log.group[:3].tolist()) == (("new", "old"), [1, 0, 0])
    assert log.samples.tolist() == [10, 20, 30]
    assert log.candidates.tolist() == [3, 2, 3, 2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"client": None}, "there is no column 'client'; its columns: round, start_s"),
        ({"downlink_s": ["soon"] * ROWS}, "downlink_s, row 1: 'soon' is not allowed; allowed: numbers"),
        ({"uplink_s": ["nan"] * ROWS}, "uplink_s, row 1: nothing is not allowed; allowed: numbers"),
        ({"compute_s": [-1.0] * ROWS}, "compute_s, row 1: '-1.0' is not allowed; allowed: numbers of at least 0"),
        ({"outcome": ["lost"] * ROWS}, "outcome, row 1: 'lost' is not allowed; allowed: delivered, late, dropped"),
        ({"uplink_s": whole()["uplink_s"] * 1000}, "row 1: .* are 1002 s together, and end_s - start_s is 3 s; in"),
        ({"compute_s": [1.5] * 5 + [2.5] + [1.5] * 6}, "row 6: .* are 6 s together, and end_s - start_s is 5 s;"),
        (
            {"start_s": whole()["start_s"] * 1000, "end_s": whole()["end_s"] * 1000},
            "in the median they are 0.001 times as long: are all in seconds?",
        ),
        ({"compute_s": None, "downlink_s": [500.0] * ROWS}, r"row 1: downlink_s \+ uplink_s are 501 s together"),
        ({"cut_in": ["uplink"] * ROWS}, "row 1: cut_in = 'uplink' is not allowed with an outcome of 'delivered'"),
        ({"outcome": None}, "row 12: cut_in = 'compute' is not allowed with an outcome of 'delivered'"),
        ({"end_s": whole()["start_s"] - 1}, "row 1: end_s = -1 is not allowed; it is at least start_s = 0"),
        ({"round": np.arange(ROWS) / 2}, "round, row 2: '0.5' is not allowed; allowed: whole numbers"),
        (
            {"samples": range(ROWS)},
            "samples, row 1: 0 is not allowed; samples: each client has one whole number of at least 1",
        ),
        (
            {"downlink_s": None, "compute_s": None, "uplink_s": None, "end_s": None, "took": [1] * ROWS},
            "no column tells a time; needed: downlink_s, .*; its columns: client, round, start_s, outcome, .*took",
        ),
        (
            {"work": [0.5] * 3 + [150] * 9},
            "work, row 4: '150' is not allowed; allowed: shares of the local work, 0 to 100",
        ),
    ],
)
def test_wrong_columns_are_refused(changes, said, tmp_path):
    with pytest.raises(DataError, match=said):
        read_log(written(tmp_path / "log.csv", **whole(**changes)))


def test_what_rows_do_not_say_is_noted(tmp_path):
    log = read_log(written(tmp_path / "log.csv", **whole(**{"class": ["old", "", "new"] * 4, "work (%)": [50] * ROWS})))
    assert (log.groups, set(log.work)) == (("None", "new", "old"), {0.5})
    assert "log.csv: 4 rows have no class: they are of one of their own, None" in log.notes
    columns = whole(client=[2**63 + i % 3 for i in range(ROWS)])
    assert read_log(written(tmp_path / "log.csv", **columns)).client.tolist() == [0, 1, 2] * 4
    unknown = {"client": [f"phone {i}" for i in range(3)], "samples": pa.nulls(3, pa.int64())}
    for name, values in ("participations", whole()), ("rounds", {"candidates": [3] * 4}), ("clients", unknown):
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    assert read_log(tmp_path).samples is None


def test_files_that_are_no_logs_are_refused(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        read_log(tmp_path / "none.csv")
    with pytest.raises(DataError, match="it has 2 participations"):
        read_log(written(tmp_path / "log.csv", client=[0, 1], uplink_s=[1, 2]))
    with pytest.raises(DataError, match="there is no column 'candidates'"):
        read_log(written(tmp_path / "log.csv", **whole()), tmp_path / "log.csv")
    (tmp_path / "log.txt").write_text("client,uplink_s\n")
    with pytest.raises(DataError, match="it has 0 participations"):
        read_log(tmp_path / "log.txt")


def test_a_phase_that_is_missing_has_the_rest_of_the_time(tmp_path):
    for name, rest in (("downlink_s", 0.5), ("compute_s", 1.5)):
        log = read_log(written(tmp_path / "log.csv", **whole(**{name: None})))
        assert log.spent_s[["downlink_s", "compute_s"].index(name)].tolist() == [rest] * ROWS
        assert log.notes[0] == f"{name} missing: what end_s - start_s has beside the other phases is taken for it"
    uplink_s = whole()["uplink_s"] + 2
    log = read_log(written(tmp_path / "log.csv", **whole(compute_s=None, downlink_s=[0.0] * ROWS, uplink_s=uplink_s)))
    assert not log.spent_s[COMPUTE].any()


def test_gaps_and_times_of_days_are_noted(tmp_path):
    log = read_log(written(tmp_path / "log.csv", **whole(end_s=whole()["end_s"] + 2 * (np.arange(ROWS) % 2))))
    assert log.notes[0] == (
        "6 of 12 participations take longer than downlink_s + compute_s + uplink_s together, in the median by 2 s, "
        "which is left out"
    )
    log = read_log(written(tmp_path / "log.csv", client=range(ROWS), uplink_s=[432500.0] * ROWS))
    assert "participations take 4.325e+05 s in the median: are all times in seconds?" in log.notes


@pytest.mark.parametrize("columns", [whole(), whole(round=None), {"client": range(ROWS), "uplink_s": range(ROWS)}])
@pytest.mark.parametrize("times", [2, 3])
def test_a_log_that_was_written_several_times_counts_once(columns, times, tmp_path):
    again = {name: [*values] * times for name, values in columns.items()}
    one, other = (read_log(written(tmp_path / "log.csv", **given)) for given in (columns, again))
    assert other.client.tolist() == one.client.tolist()
    more = f"{ROWS * (times - 1)} rows stand there twice and count once; the first of them is row 13"
    assert other.notes == (more, *one.notes)


def test_a_participation_with_two_rows_that_differ_is_refused(tmp_path):
    again = {name: [*values, values[3]] for name, values in whole().items()}
    again["uplink_s"][-1], again["end_s"][-1] = 2.0, again["end_s"][-1] + 1
    words = r"row 13 names the participation of row 4 again \(client, round, start_s\), with other values"
    with pytest.raises(DataError, match=words):
        read_log(written(tmp_path / "log.csv", **again))


def test_phases_to_which_a_lost_client_did_not_come_may_be_empty(tmp_path):
    columns = whole(start_s=None, end_s=None, uplink_s=[1.0] * (ROWS - 1) + [""])
    log = read_log(written(tmp_path / "log.csv", **columns))
    assert (log.spent_s[:, -1].tolist(), log.cut_in[-1]) == ([0.5, 1.5, 0.0], COMPUTE)
    with pytest.raises(DataError, match="uplink_s, row 12: nothing is not allowed; allowed: numbers of at least 0 wh"):
        read_log(written(tmp_path / "log.csv", **{**columns, "outcome": ["delivered"] * ROWS}))


def test_columns_in_milliseconds_are_converted_by_their_names(tmp_path):
    columns = whole(uplink_s=None, compute_s=None)
    columns |= {"uplink_ms": 1000 * whole()["uplink_s"], "compute_us": 1e6 * whole()["compute_s"]}
    log = read_log(written(tmp_path / "log.csv", **columns))
    assert log.spent_s == pytest.approx(read_log(written(tmp_path / "other.csv", **whole())).spent_s)


def test_single_rows_that_stand_there_twice_count_once(tmp_path):
    again = {name: [*values, values[3], values[0]] for name, values in whole().items()}
    log = read_log(written(tmp_path / "log.csv", **again))
    assert (log.client.size, log.notes[0][:11]) == (ROWS, "2 rows stan")
    alike = read_log(written(tmp_path / "log.csv", client=[0, 1, 2] * 5, uplink_s=[1.0] * 14 + [2.0]))
    assert alike.client.size == 15


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cut_in": ["uplink"] * ROWS}, r"uplink_s: none of 12 participations ended its uplink \(12 were cut"),
        ({"cut_in": ["downlink"] * ROWS}, r"downlink_s: none of 12 .* \(12 were cut in it, after 0.5 s at most\)"),
        ({"cut_in": ["compute"] * ROWS, "compute_s": [0.0] * ROWS, "end_s": None}, "compute_s: none of 12"),
    ],
)
def test_a_phase_that_never_ended_is_not_zero(changes, words, tmp_path):
    log = read_log(written(tmp_path / "log.csv", **whole(outcome=["dropped"] * ROWS, **changes)))
    with pytest.raises(FedsimError, match=words):
        calibrate(log)


def test_columns_that_are_not_read_and_work_of_another_unit_are_named(tmp_path):
    more = {"upload_s": range(ROWS), "delivered": ["no"] * ROWS, "work": [80] * ROWS, "draws": [1] * ROWS}
    notes = read_log(written(tmp_path / "log.csv", **whole(**more))).notes
    assert notes[0] == "log.csv: columns not read: upload_s, delivered"
    assert "work is 80 in the median: is it a share of the local work?" in notes


def test_hours_of_a_log_go_over_midnight(tmp_path):
    """Each of two phones takes 4 s; the first one's second participation is one day later."""
    start = ["23:59:58", "00:30:00", *["23:00:00"] * 10]
    end = ["00:00:02", "00:30:04", *["23:00:04"] * 10]
    columns = {"client": [0, 0, *range(1, 11)], "round": range(ROWS), "start": start, "end": end}
    log = read_log(written(tmp_path / "log.csv", **columns))
    assert set(log.spent_s[UPLINK].tolist()) == {4.0}
    assert log.start_s[:3].tolist() == [86_398.0, 88_200.0, 82_800.0]
