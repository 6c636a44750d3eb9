"""The body: names of coordinates, landmarks, loads, postures, strength, fatigue, pictures, kernels for all bodies."""
