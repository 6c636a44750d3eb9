"""Tasks on flat feet: lifting a box, standing up and reaching; ``registry`` has them by name."""
