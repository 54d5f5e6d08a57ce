"""What the studies of papers have in common: runs that can go on, curves over seeds, tables, options of a command."""
