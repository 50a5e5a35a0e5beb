"""What bench/performance.py is made of: results (files and numbers), tables, topics (what bench/peers.py measures), targets, picture."""
