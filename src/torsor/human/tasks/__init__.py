"""Tasks on flat feet: lifting, standing up, reaching; and start values."""
