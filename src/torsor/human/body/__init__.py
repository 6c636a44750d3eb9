"""The human body: coordinate names, landmarks, loads, postures, strength, fatigue, pictures and shared kernels."""
