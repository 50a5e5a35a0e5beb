"""What bench/peers.py is made of: library (sparsek through ctypes), cases (what is measured), operands (the data of a case), harness (timing), contestants
(who runs beside sparsek), report (JSON and text). A further operation is a class in operands.py, its contestants, and cases that name both."""
