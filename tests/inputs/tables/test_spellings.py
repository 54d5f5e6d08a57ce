"""A table in another spelling (ids, instants, units, order, packing) is the same; a wrong cell is named by its row."""

import gzip
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import Phase, given, settings, strategies as st

from fedsim.devices.availability.traces import Traces
from fedsim.errors import DataError
from fedsim.inputs.tables import reading
from fedsim.network.topology.mobility import Trace
from fedsim.network.traces.files import RateFile
from fedsim.per_client.laws import Column
from fedsim.streams import Streams

BEGIN = datetime(2024, 2, 28, 22, 59, 30, tzinfo=UTC)
"""A day before a leap day."""
CLIENTS = 3
TIMES = {
    "time_s": lambda at: f"{at}",
    "Time [ms]": lambda at: f"{at * 1000:g}",
    " time_min": lambda at: repr(at / 60),
    "TIME (s)": lambda at: f"+{at}.0",
}
DATES = {
    "time": lambda at: (BEGIN + timedelta(seconds=at)).astimezone(timezone(timedelta(hours=at % 3))).isoformat(),
    "Timestamp": lambda at: (BEGIN + timedelta(seconds=at)).strftime("%Y-%m-%d %H:%M:%S"),
    "timestamp": lambda at: (BEGIN + timedelta(seconds=at)).strftime("%Y.%m.%d_%H.%M.%S"),
    "time_s": lambda at: f"{BEGIN.timestamp() + at:.0f}",
    "timestamp ": lambda at: f"{(BEGIN.timestamp() + at) * 1e3:.0f}",
    "Time_s": lambda at: f"{(BEGIN.timestamp() + at) * 1e6:.0f}",
    "TIME": lambda at: f"{(BEGIN.timestamp() + at) * 1e9:.0f}",
}
METRES = {"x_m": 1, "X (m)": 1, "x_cm": 100, "x_km": 0.001}
RATES = {"rate_bps": 1, "Rate [kbit/s]": 1e-3, "rate_mbps": 1e-6, "rate (B/s)": 0.125}
READERS = {
    "ways": lambda path, _: [
        [(leg.start_s, *leg.place_m) for leg in Trace(path=path).of_clients(CLIENTS)(one, (0.0, 0.0))]
        for one in range(CLIENTS)
    ],
    "rates": lambda path, time: [
        np.round(part, 6).tolist()
        for part in vars(RateFile(path=path, time=time).of_clients("f", CLIENTS, None, Streams(0))[0]).values()
        if isinstance(part, np.ndarray)
    ],
    "presence": lambda path, _: [
        np.round(part, 6).tolist() for part in vars(Traces(path=path, after="none").intervals(CLIENTS)[0]).values()
    ],
    "values": lambda path, _: np.round(
        Column(column="x_m", path=path).values(CLIENTS, Streams(0), "f.x_m"), 6
    ).tolist(),
}


def written(draw, rows, values, times):
    """Return a file of rows (client, instant, number) in a drawn spelling, and the name of its column of instants."""
    named, shuffled = draw(st.booleans()), draw(st.booleans())
    time, value = draw(st.sampled_from(sorted(times))), draw(st.sampled_from(sorted(values)))
    header = [draw(st.sampled_from(("client", "Client ", " ID"))), time, value, "y_m", "note"]
    cells = [
        [f"node-{client}" if named else f"{client}", times[time](at), repr(number * values[value]), "0", "-"]
        for client, at, number in (draw(st.permutations(rows)) if shuffled and not named else rows)
    ]
    mark, end = draw(st.sampled_from((",", ";", "\t"))), draw(st.sampled_from(("\n", "\r\n")))
    order = draw(st.permutations(range(len(header))))
    text = end.join(mark.join(row[at] for at in order) for row in (header, *cells)) + end
    content = draw(st.sampled_from((b"", b"\xef\xbb\xbf"))) + text.encode()
    return (gzip.compress(content, mtime=0) if draw(st.booleans()) else content), time


def read(folder, name, content, reader, time):
    path = folder / name
    path.write_bytes(content)
    with reading():
        return READERS[reader](str(path), time)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("examples", [8, pytest.param(100, marks=pytest.mark.slow)])
def test_a_table_in_another_spelling_is_the_same_table(tmp_path_factory, reader, examples):
    @settings(max_examples=examples, phases=(Phase.generate,))
    @given(st.data())
    def check(data):
        steps = data.draw(st.lists(st.integers(1, 5), min_size=2, max_size=5))
        instants = [0] if reader == "values" else [0, *np.cumsum(steps).tolist()]
        numbers = st.integers(1, 9)
        rows = [(client, at, data.draw(numbers)) for client in range(CLIENTS) for at in instants]
        values = RATES if reader == "rates" else METRES
        plain = next(iter(values))
        lines = [f"client,time_s,{plain},y_m", *(f"{client},{at},{number},0" for client, at, number in rows)]
        folder = tmp_path_factory.mktemp("t")
        right = read(folder, "plain.csv", "\n".join(lines).encode(), reader, "time_s")
        content, time = written(data.draw, rows, values, data.draw(st.sampled_from((TIMES, DATES))))
        found = read(folder, "spelt.csv", content, reader, time)
        if reader == "ways":
            found, right = ([np.round(way, 6).tolist() for way in each] for each in (found, right))
        assert found == right
        # The same with one wrong cell.
        wrong = data.draw(st.integers(0, len(rows) - 1))
        column = 1 if reader == "presence" else data.draw(st.sampled_from((0, 2) if reader == "values" else (0, 1, 2)))
        lines[wrong + 1] = ",".join(
            data.draw(st.sampled_from(("x?", "1..5", "12:61"))) if at == column else cell
            for at, cell in enumerate(lines[wrong + 1].split(","))
        )
        with pytest.raises(DataError, match=rf"wrong\.csv: .*row {wrong + 1}: "):
            read(folder, "wrong.csv", "\n".join(lines).encode(), reader, "time_s")

    check()
