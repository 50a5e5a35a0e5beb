"""What bench/performance.py is made of: results (files and numbers), tables, topics (what bench/peers.py measures), targets, picture
(rooflines), cases and charts (what the charts show), summary (docs/performance.md itself), readme."""
