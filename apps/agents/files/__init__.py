"""The files that agents read anyway: taken in as candidates, written from what was approved.

``services`` takes rules files and decision records in, ``exporting`` writes what holds for a repository between markers
in such files, and ``whole`` brings everything out of a workspace and into an empty one.
"""
