"""Run folders: writing, reading, summary and report of a run."""

from fedsim.results.models import load_model as load_model
from fedsim.results.recording import run as run
from fedsim.results.report import report as report
from fedsim.results.sentences import sentences as sentences
from fedsim.results.state import status_of as status_of
from fedsim.results.summary import read_summary as read_summary, rows as rows, summarise as summarise
from fedsim.results.tables import read_run as read_run
