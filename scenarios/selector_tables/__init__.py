"""Parts of the study `compare_selectors.py`: crowds and methods, figures of runs, tables and pages."""
