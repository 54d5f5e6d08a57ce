"""Run folders: writing, reading, summary and report of a run."""

from fedsim.results.models import load_model
from fedsim.results.recording import run
from fedsim.results.report import report
from fedsim.results.sentences import sentences
from fedsim.results.state import status_of
from fedsim.results.summary import read_summary, rows, summarise
from fedsim.results.tables import read_run

__all__ = ["load_model", "read_run", "read_summary", "report", "rows", "run", "sentences", "status_of", "summarise"]
