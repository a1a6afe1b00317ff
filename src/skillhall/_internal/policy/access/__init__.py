"""Access to a server: scopes of tokens, roles of users, actions and actors."""
