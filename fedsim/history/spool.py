"""The rows of one table on disk, as Arrow record batches that are appended and never changed.

A file is a sequence of segments, each a whole Arrow IPC stream with one batch, so that a file that a kill has cut off
is readable up to the segment before.
"""

import contextlib
import mmap
import os
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

import pyarrow as pa

from fedsim.errors import RunError
from fedsim.whole_files import not_written

ROWS_IN_A_BATCH: Final = 2**14
"""Most rows of a record batch in a spool."""

_BYTES_AT_ONCE: Final = 2**20


class Extent(NamedTuple):
    """How much of a spool's file is valid: rows, bytes of their segments, and the CRC-32 of these."""

    rows: int
    nbytes: int
    crc32: int = 0


EMPTY: Final = Extent(0, 0)


class Spool:
    def __init__(self, schema: pa.Schema, file: BinaryIO, where: str, extent: Extent = EMPTY) -> None:
        self.schema, self.where = schema, where
        self._file = file
        try:
            crc32 = check_bytes(file, extent)
        except (OSError, ValueError) as error:
            file.close()
            raise RunError(f"{where}: is damaged: {error}; --force runs the scenario again") from None
        self.extent = extent._replace(crc32=crc32)
        self._told(lambda: file.truncate(extent.nbytes))

    @classmethod
    def temporary(cls, schema: pa.Schema) -> "Spool":
        """Return an empty spool in the system's folder for temporary files, gone with the process at the latest."""
        file = cast(BinaryIO, tempfile.TemporaryFile(prefix="fedsim-", buffering=0))  # noqa: SIM115 (closed with the spool)
        spool = cls(schema, file, tempfile.gettempdir())
        weakref.finalize(spool, file.close)
        return spool

    def append(self, table: pa.Table, at: int) -> None:
        new = table.slice(max(0, self.extent.rows - at))
        for batch in new.combine_chunks().to_batches(max_chunksize=ROWS_IN_A_BATCH):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, self.schema) as writer:
                writer.write_batch(batch)
            segment = sink.getvalue()
            self._told(partial(self._write, segment))
            # One assignment: an interrupt comes before it or after it.
            rows, nbytes, crc32 = self.extent
            self.extent = Extent(rows + batch.num_rows, nbytes + segment.size, zlib.crc32(segment, crc32))

    def sync(self) -> None:
        """Have the operating system write the rows to the disk, so that they outlast a loss of power."""
        self._told(lambda: os.fsync(self._file.fileno()))

    def table(self) -> pa.Table:
        """Return all rows, as a map of the file into memory."""
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
        return self._batches(self.extent)

    def close(self) -> None:
        self._file.close()

    def _batches(self, extent: Extent) -> Iterator[pa.RecordBatch]:
        try:
            yield from read_batches(self._file, extent)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise RunError(f"{self.where}: is damaged: {error}") from None

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
            raise not_written(Path(self.where), error) from None


def check_bytes(file: BinaryIO, extent: Extent) -> int:
    """Return the CRC-32 of the bytes that an extent says a file holds."""
    crc32 = have = 0
    file.seek(0)
    while have < extent.nbytes:
        piece = file.read(min(_BYTES_AT_ONCE, extent.nbytes - have))
        if not piece:
            raise ValueError(f"it has {have} bytes of {extent.nbytes}")
        crc32, have = zlib.crc32(piece, crc32), have + len(piece)
    if extent.crc32 != crc32:
        raise ValueError("its checksum is not that of what was written")
    return crc32


def read_batches(file: BinaryIO, extent: Extent) -> Iterator[pa.RecordBatch]:
    """Check the bytes of a spool's file, and read its segments, with one batch in memory."""
    check_bytes(file, extent)
    position = 0
    while position < extent.nbytes:
        file.seek(position)
        segment = list(pa.ipc.open_stream(file))
        position = file.tell()
        yield from segment
