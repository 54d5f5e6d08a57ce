"""Questions that need more runs than a study names: what if, how sensitive, which is best, and enough seeds."""
