"""Benchmarks: `make bench` runs them and writes the tables of the README."""
