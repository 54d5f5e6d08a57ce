"""What the studies of papers share: runs that can go on, curves over seeds, tables, options of a command."""
