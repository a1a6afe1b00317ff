"""Signs skills, and finds out who signed them. Needs the package `cryptography`."""
