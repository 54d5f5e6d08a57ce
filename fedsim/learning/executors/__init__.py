"""What trains and evaluates batches of jobs, chosen outside the scenario."""
