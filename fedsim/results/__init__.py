"""Run folders, tables and figures: the only room with matplotlib in it."""
