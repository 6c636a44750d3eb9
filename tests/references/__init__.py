"""Helpers of tests that compare with the literature; the documents' own equations are in torsor.reproduce.equations."""
