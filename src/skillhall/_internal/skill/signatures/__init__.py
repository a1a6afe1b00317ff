"""Signature files of skills, in the format of OpenSSF Model Signing (OMS)."""
