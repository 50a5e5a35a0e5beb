/* The operators called straight from Python, past the dispatcher, which costs more than all else of a small product. */
#pragma once

#include <Python.h>

namespace sparse_autotune {

/* Whether PyTorch's C interface hands over its tensors (2.14 and later). */
PyObject *hands_over(PyObject *, PyObject *);
/* setup(tensor types, (function, value for which nothing watches) pairs, operator _spmm, operator _spmm_gradients, function from a tensor
 * to a capsule with a handle, function from such a capsule to a tensor): False where neither the two functions (else None) nor the C
 * interface hand over tensors. */
PyObject *direct_setup(PyObject *, PyObject *args);
/* As these operators, by position. They call them where the dispatcher must see the call: tensors of other types, devices or with a lazy
 * negation, or something that watches operators. */
PyObject *direct_spmm(PyObject *, PyObject *const *args, Py_ssize_t count);
PyObject *direct_gradients(PyObject *, PyObject *const *args, Py_ssize_t count);
/* attention(q, k, v, keys to the left, to the right, first ones, scale, soft cap, flags, whether k may have fewer heads): NotImplemented
 * where it is not of plain tensors on the CPU that fit, something watches or a gradient is wanted. */
PyObject *direct_attention(PyObject *, PyObject *const *args, Py_ssize_t count);

} // namespace sparse_autotune
