"""Builds services from settings: the only package that knows every concrete class."""
