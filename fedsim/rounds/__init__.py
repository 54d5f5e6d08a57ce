"""The clock: server and client processes, round policies and the history they write."""
