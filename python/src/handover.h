/* Tensors of Python handed over to the extension and back, past the dispatcher. By threads that hold the interpreter's lock. */
#pragma once

#include <Python.h>

#include <optional>

#include "tensors.h"

namespace sparse_autotune {

/* A reference that is given back. */
class Owned {
    PyObject *object_;

  public:
    explicit Owned(PyObject *object) : object_(object) {}
    ~Owned() { Py_XDECREF(object_); }
    Owned(const Owned &) = delete;
    PyObject *get() const { return object_; }
};

/* Without the interpreter's lock, as the dispatcher's callers run. */
class Unlocked {
    PyThreadState *state_ = PyEval_SaveThread();

  public:
    Unlocked() = default;
    Unlocked(const Unlocked &) = delete;
    ~Unlocked() { PyEval_RestoreThread(state_); }
};

template <typename Body> PyObject *guarded(Body body)
{
    try {
        return body();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

/* True where PyTorch's C interface or the two functions (else None) hand over tensors; then with all that tells plain tensors and whether
 * something watches, as direct_setup gets it. */
PyObject *handover_setup(PyObject *types, PyObject *pairs, PyObject *to, PyObject *from);
/* Whether handover_setup was called, and gave True. */
bool is_set_up();

/* A tensor that is what it seems, by its type. */
bool is_plain(PyObject *object);
/* 1: nothing watches operators; 0: something does; -1: an exception is set. */
int unwatched();
/* As unwatched(): of a tensor with a lazy negation 0. */
int is_not_negated(PyObject *tensor);
bool has_memory_here(const Tensor &tensor);
/* The tensor of a Python object; nullopt: an exception is set. */
std::optional<Tensor> from_python(PyObject *object);
PyObject *to_python(const Tensor &tensor);

} // namespace sparse_autotune
