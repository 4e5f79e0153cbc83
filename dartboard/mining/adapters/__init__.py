"""Benchmarks of different kinds, each read into cases."""
