"""What every request passes before an endpoint sees it, one file a guard; ``app.py`` has their order."""
