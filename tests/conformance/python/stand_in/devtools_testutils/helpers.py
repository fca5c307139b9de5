def is_live():
    """Nothing is played back: every request reaches a server."""
    return True
