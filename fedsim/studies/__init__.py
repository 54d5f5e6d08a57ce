"""Studies: many runs of variants and seeds, compared pair by pair; `fedsim` exports what users need."""
