"""Signs skills, and identifies their signers. Needs the package `cryptography`."""
