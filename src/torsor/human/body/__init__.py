"""The body: kernels shared by all bodies, landmarks, loads, strength, fatigue, postures."""
