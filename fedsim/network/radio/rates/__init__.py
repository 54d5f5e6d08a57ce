"""Shannon's formula, its mean over Rayleigh fading, and its mean under a ceiling."""
