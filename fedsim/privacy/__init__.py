"""Budgets, mechanisms and the ledger of what each client has leaked."""
