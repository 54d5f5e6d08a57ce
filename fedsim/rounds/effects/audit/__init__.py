"""Conservation of bits, time, spectrum and energy, checked on the records of every participation."""
