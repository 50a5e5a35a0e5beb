/* Masks of attention, made by the library from its table of shapes. */
#pragma once

#include <Python.h>

namespace sparse_autotune {

/* The table: [(name, help, whether the seed matters, [(name, spk_mask_value, help, default in words or None, least, most)])]. */
PyObject *mask_shapes(PyObject *, PyObject *);
/* (name, queries, keys, block's queries, block's keys, seed, {parameter: value}, function) to what the function makes of bytearrays of
 * int32, None where one is empty: offsets, columns, tile_numbers, tile_bits; and how many tiles there are. */
PyObject *make_mask(PyObject *, PyObject *args);

} // namespace sparse_autotune
