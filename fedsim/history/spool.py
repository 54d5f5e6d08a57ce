"""The rows of one table on disk, as Arrow record batches that are appended and never changed.

The file is a sequence of segments. A segment is a whole Arrow IPC stream (schema, dictionaries, one batch), so that a
file that ends within a segment, as after a kill, is readable up to the segment before.
"""

import contextlib
import mmap
import os
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO, Final, NamedTuple, cast

import pyarrow as pa

from fedsim.errors import RunError

ROWS_IN_A_BATCH: Final = 2**14
"""Most rows of a record batch in a spool."""


class Extent(NamedTuple):
    """How much of a spool's file is good: rows, and bytes of their segments."""

    rows: int
    nbytes: int


EMPTY: Final = Extent(0, 0)


class Spool:
    """Rows of one table in a file.

    Parameters
    ----------
    schema : of the table
    file : open for reading and writing, in bytes and without a buffer
    where : name of the file in messages
    extent : what the file holds already; what stands behind is cut off

    Attributes
    ----------
    extent : rows that are in the file
    """

    def __init__(self, schema: pa.Schema, file: BinaryIO, where: str, extent: Extent = EMPTY) -> None:
        self.schema, self.where, self.extent = schema, where, extent
        self._file = file
        self._told(lambda: file.truncate(extent.nbytes))

    @classmethod
    def temporary(cls, schema: pa.Schema) -> "Spool":
        """Return an empty spool in the system's folder for temporary files, gone with the process at the latest."""
        file = cast(BinaryIO, tempfile.TemporaryFile(prefix="fedsim-", buffering=0))  # noqa: SIM115 (closed with the spool)
        spool = cls(schema, file, tempfile.gettempdir())
        weakref.finalize(spool, file.close)
        return spool

    def append(self, table: pa.Table, at: int) -> None:
        """Append rows that are not in the file yet.

        Parameters
        ----------
        table : rows
        at : number of the rows before the first of them, at most as many as the file has

        Raises
        ------
        RunError
            If they cannot be written; the rows before them are not touched, and these can be appended later.
        """
        new = table.slice(max(0, self.extent.rows - at))
        for batch in new.combine_chunks().to_batches(max_chunksize=ROWS_IN_A_BATCH):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.schema) as writer:
                writer.write_batch(batch)
            segment = sink.getvalue()
            self._told(partial(self._write, segment))
            # One assignment: an interrupt comes before it or after it.
            self.extent = Extent(self.extent.rows + batch.num_rows, self.extent.nbytes + segment.size)

    def sync(self) -> None:
        """Have the operating system put the rows on the disk, so that they outlast a loss of power."""
        self._told(lambda: os.fsync(self._file.fileno()))

    def table(self) -> pa.Table:
        """Return all rows, as a map of the file into memory: nothing is copied, and nothing is read before its use."""
        size = self.extent.nbytes
        if not size:
            return pa.Table.from_batches([], self.schema)
        mapped = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ)
        source = pa.BufferReader(pa.py_buffer(mapped))
        tables = []
        while source.tell() < size:
            tables.append(pa.ipc.open_stream(source).read_all())
        if sys.platform == "linux":
            # What was read to find the segments need not stay in memory.
            mapped.madvise(mmap.MADV_DONTNEED)
        return pa.concat_tables(tables)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows batch by batch, with one batch in memory; rows may be appended meanwhile."""
        return read_batches(self._file, self.extent.nbytes)

    def close(self) -> None:
        """Close the file; tables that were returned stay as they are."""
        self._file.close()

    def _write(self, segment: pa.Buffer) -> None:
        left = memoryview(segment)
        self._file.seek(self.extent.nbytes)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError:
            # On a full disk this is what makes room for the state of the run.
            with contextlib.suppress(OSError):
                self._file.truncate(self.extent.nbytes)
            raise

    def _told(self, act: Callable[[], object]) -> None:
        try:
            act()
        except OSError as error:
            raise RunError(f"{self.where}: cannot be written: {error.strerror}") from None


def read_batches(file: BinaryIO, nbytes: int) -> Iterator[pa.RecordBatch]:
    """Read the segments of a spool's file up to a number of bytes, with one batch in memory.

    Raises
    ------
    OSError, ValueError, pyarrow.ArrowException
        If the file does not hold them.
    """
    position = 0
    while position < nbytes:
        file.seek(position)
        segment = list(pa.ipc.open_stream(file))
        position = file.tell()
        yield from segment
