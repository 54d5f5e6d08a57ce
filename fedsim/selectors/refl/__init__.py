"""REFL (Abdelmoniem et al., EuroSys 2023): clients of least future availability first."""
