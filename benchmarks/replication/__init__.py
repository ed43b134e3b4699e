"""Would the conclusions of published and textbook regressions survive a private release?

python -m benchmarks.replication [--runs 50] [--peers 10] [--only TEXT] [--out FILE]
python -m benchmarks.replication --table FILE...
"""
