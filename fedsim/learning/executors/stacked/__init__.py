"""The executor that trains a whole cohort as one computation."""
