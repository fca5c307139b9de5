def get_credential(**_options):
    """The suite signs with the account key; directory credentials are not part of it here."""
    return None
