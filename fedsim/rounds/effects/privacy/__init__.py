"""Privacy as effects: accounts, numbers beside updates, and what the tables say of releases."""
