"""Path loss, lines of sight and penetration of buildings in the scenarios of 3GPP TR 38.901."""
