"""Terms of human motion problems: torques, balance, contacts, habits, places."""
