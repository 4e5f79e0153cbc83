"""What to do about a damaged file, in the words of every error message."""

RESTORE = (
    "restore it from a snapshot or a backup (before a backup is copied over the file, remove the old log: "
    "the files of the same name with -wal and -shm at the end)"
)
