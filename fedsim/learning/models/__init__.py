"""Models as modules of torch and as one flat vector."""
