/* The Python module sparse_autotune._C: its import registers the operators; its functions set options. */
#include <Python.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "direct.h"
#include "masks.h"
#include "state.h"
#include "types.h"

namespace sparse_autotune {

namespace {

PyObject *callback = nullptr; /* progress; read and set under the interpreter's lock */
PyObject *warn = nullptr;     /* of the package: takes a text */

std::mutex warnings_lock;
std::vector<std::string> &waiting()
{
    static auto *texts = new std::vector<std::string>;
    return *texts;
}

/* What a signal's handler raised while something was measured; raised again in Python as soon as the call is over. Under the interpreter's
 * lock. */
PyObject *raised_type = nullptr, *raised = nullptr, *raised_trace = nullptr;

int raise_again(void *)
{
    if (raised_type == nullptr)
        return 0;
    PyErr_Restore(raised_type, raised, raised_trace);
    raised_type = raised = raised_trace = nullptr;
    return -1;
}

/* Tuning runs without the interpreter's lock. A signal whose handler raises (Ctrl-C) stops it. A C++ exception could not carry what was
 * raised through PyTorch: so the call ends as if nothing were wrong (see ops.cpp), and Python raises it then, as after any call into C. */
bool on_progress(int64_t done, int64_t total, const char *what)
{
    PyGILState_STATE held = PyGILState_Ensure();
    bool stop = PyErr_CheckSignals() != 0;
    if (stop && raised_type == nullptr) {
        PyErr_Fetch(&raised_type, &raised, &raised_trace);
        if (Py_AddPendingCall(raise_again, nullptr) != 0) { /* their list is full: all that is left is a plain interrupt */
            raise_again(nullptr);
            PyErr_Clear();
            PyErr_SetInterrupt();
        }
    } else if (stop) {
        PyErr_Clear(); /* one is on its way */
    } else if (callback != nullptr) {
        PyObject *result = PyObject_CallFunction(callback, "LLs", static_cast<long long>(done), static_cast<long long>(total),
                                                 what == nullptr ? "" : what);
        if (result == nullptr)
            PyErr_WriteUnraisable(callback);
        Py_XDECREF(result);
    }
    PyGILState_Release(held);
    return stop;
}

/* Each text once in a process: contexts come and go, and each would tell again. The interpreter's lock may be held by one who waits for
 * this thread, so that the main thread says it when it is in Python again. */
int say_warnings(void *)
{
    std::vector<std::string> texts;
    {
        std::lock_guard<std::mutex> hold(warnings_lock);
        texts.swap(waiting());
    }
    int result = 0;
    for (const std::string &text : texts)
        if (result == 0 && warn != nullptr) {
            PyObject *none = PyObject_CallFunction(warn, "s", text.c_str());
            result = none != nullptr ? 0 : -1;
            Py_XDECREF(none);
        }
    return result;
}

void on_warning(const char *message)
{
    static auto *told = new std::set<std::string>;
    std::lock_guard<std::mutex> hold(warnings_lock);
    if (told->insert(message).second) {
        waiting().push_back(message);
        Py_AddPendingCall(say_warnings, nullptr);
    }
}

PyObject *set_options(PyObject *, PyObject *args)
{
    Options o;
    const char *only, *exclude, *choice, *store;
    if (!PyArg_ParseTuple(args, "iiidsssz", &o.effort, &o.tuning, &o.warm, &o.budget_s, &only, &exclude, &choice, &store))
        return nullptr;
    o.only = only;
    o.exclude = exclude;
    o.choice = choice;
    o.has_store = store != nullptr;
    o.store = store != nullptr ? store : "";
    Py_BEGIN_ALLOW_THREADS sparse_autotune::set_options(std::move(o));
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

PyObject *set_progress(PyObject *, PyObject *function)
{
    PyObject *old = callback;
    callback = function == Py_None ? nullptr : Py_NewRef(function);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyObject *set_warn(PyObject *, PyObject *function)
{
    PyObject *old = warn;
    warn = Py_NewRef(function);
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

PyObject *forbid(PyObject *, PyObject *args)
{
    int change;
    if (!PyArg_ParseTuple(args, "i", &change))
        return nullptr;
    forbid_tuning(change);
    Py_RETURN_NONE;
}

PyObject *each(PyObject *, PyObject *args)
{
    int change;
    if (!PyArg_ParseTuple(args, "i", &change))
        return nullptr;
    tune_each(change);
    Py_RETURN_NONE;
}

PyObject *clear(PyObject *, PyObject *)
{
    Py_BEGIN_ALLOW_THREADS forget();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

PyObject *mark(PyObject *, PyObject *)
{
    return PyLong_FromLongLong(last_mark());
}

PyObject *clear_mark(PyObject *, PyObject *)
{
    see_mark(0);
    Py_RETURN_NONE;
}

PyObject *limit(PyObject *, PyObject *args)
{
    long long bytes;
    if (!PyArg_ParseTuple(args, "L", &bytes))
        return nullptr;
    Py_BEGIN_ALLOW_THREADS limit_patterns(bytes);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

PyObject *patterns(PyObject *, PyObject *)
{
    const auto [count, bytes] = cached_patterns();
    return Py_BuildValue("(LL)", static_cast<long long>(count), static_cast<long long>(bytes));
}

PyObject *version(PyObject *, PyObject *)
{
    return PyUnicode_FromString(spk_version());
}

PyObject *commit(PyObject *, PyObject *)
{
    return PyUnicode_FromString(spk_commit());
}

/* A list of (name, PyTorch's name, use, whether its sums are of a wider type, PyTorch's names of what its products may be, NumPy's name
 * or None). */
PyObject *list_types(PyObject *, PyObject *)
{
    PyObject *list = PyList_New(0);
    for (const Type &type : types()) {
        PyObject *row = list == nullptr ? nullptr
                                        : Py_BuildValue("(sssisz)", type.name, type.torch, type.use_name, type.sums != type.dtype,
                                                        result_names(type, "|").c_str(), type.npy);
        if (row == nullptr || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

PyMethodDef methods[] = {
    {"set_options", set_options, METH_VARARGS, nullptr},
    {"set_progress", set_progress, METH_O, nullptr},
    {"set_warn", set_warn, METH_O, nullptr},
    {"forbid_tuning", forbid, METH_VARARGS, nullptr},
    {"tune_each", each, METH_VARARGS, nullptr},
    {"clear", clear, METH_NOARGS, nullptr},
    {"hands_over", hands_over, METH_NOARGS, nullptr},
    {"direct_setup", direct_setup, METH_VARARGS, nullptr},
    {"direct_spmm", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(direct_spmm)), METH_FASTCALL, nullptr},
    {"direct_attention", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(direct_attention)), METH_FASTCALL, nullptr},
    {"direct_gradients", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(direct_gradients)), METH_FASTCALL, nullptr},
    {"mark", mark, METH_NOARGS, nullptr},
    {"clear_mark", clear_mark, METH_NOARGS, nullptr},
    {"limit_patterns", limit, METH_VARARGS, nullptr},
    {"cached_patterns", patterns, METH_NOARGS, nullptr},
    {"types", list_types, METH_NOARGS, nullptr},
    {"mask_shapes", mask_shapes, METH_NOARGS, nullptr},
    {"make_mask", make_mask, METH_VARARGS, nullptr},
    {"version", version, METH_NOARGS, nullptr},
    {"commit", commit, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef module = {PyModuleDef_HEAD_INIT, "sparse_autotune._C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace

} // namespace sparse_autotune

PyMODINIT_FUNC PyInit__C(void)
{
    sparse_autotune::progress_hook = sparse_autotune::on_progress;
    sparse_autotune::warning_hook = sparse_autotune::on_warning;
    return PyModule_Create(&sparse_autotune::module);
}
