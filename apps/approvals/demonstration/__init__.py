"""The main job from end to end, on this project's own decision records: ``manage.py demo``."""
