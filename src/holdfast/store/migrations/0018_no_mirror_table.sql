-- The mirror of protocol sessions compares files with the runs; it keeps no progress of its own.

DROP TABLE protocol_mirror;
