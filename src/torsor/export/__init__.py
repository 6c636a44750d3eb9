"""Robots as packages of other systems, made of the exported C: each in a folder of its own, loaded when it is used."""
