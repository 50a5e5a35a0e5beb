#include "direct.h"

#include <array>
#include <vector>

#include "ops.h"

/* PyTorch 2.14 and later have them; the build may be against an older one, and the process with one. */
extern "C" {
__attribute__((weak)) AOTITorchError torch_tensor_from_pyobject(void *object, AtenTensorHandle *tensor);
__attribute__((weak)) AOTITorchError torch_tensor_to_pyobject(AtenTensorHandle tensor, void *type, void **object);
}

namespace sparse_autotune {

namespace {

struct Watcher {
    PyObject *ask, *quiet; /* a function without arguments, and what it returns where nothing is to be seen */
};

std::vector<PyTypeObject *> plain_types; /* of tensors that are what they seem */
std::vector<Watcher> watchers;
PyObject *is_neg = nullptr, *spmm_op = nullptr, *gradients_op = nullptr;

bool is_plain(PyObject *object)
{
    for (PyTypeObject *type : plain_types)
        if (Py_TYPE(object) == type)
            return true;
    return false;
}

/* 1: nothing watches; 0: something does; -1: an exception is set. */
int unwatched()
{
    for (const Watcher &watcher : watchers) {
        PyObject *found = PyObject_CallNoArgs(watcher.ask);
        if (found == nullptr)
            return -1;
        int same = found == watcher.quiet ? 1 : PyObject_RichCompareBool(found, watcher.quiet, Py_EQ);
        Py_DECREF(found);
        if (same != 1)
            return same;
    }
    return 1;
}

bool has_memory_here(const Tensor &tensor)
{
    int32_t type = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
    return type == aoti_torch_device_type_cpu() || type == aoti_torch_device_type_cuda();
}

/* Arguments of a call: tensors (None: none) first, then whole numbers. */
template <size_t TENSORS, size_t NUMBERS>
struct Arguments {
    std::array<std::optional<Tensor>, TENSORS> tensors;
    std::array<int64_t, NUMBERS> numbers;

    /* As unwatched(). needed: the first so many tensors must be there. */
    int take(PyObject *const *args, Py_ssize_t count, size_t needed)
    {
        if (plain_types.empty() || count != static_cast<Py_ssize_t>(TENSORS + NUMBERS))
            return 0;
        for (size_t i = 0; i < TENSORS; i++)
            if (!is_plain(args[i]) && (i < needed || args[i] != Py_None))
                return 0;
        const int free = unwatched();
        if (free != 1)
            return free;
        for (size_t i = 0; i < TENSORS; i++) {
            if (args[i] == Py_None)
                continue;
            PyObject *negative = PyObject_CallMethodObjArgs(args[i], is_neg, nullptr);
            if (negative == nullptr)
                return -1;
            const bool lazy = negative != Py_False;
            Py_DECREF(negative);
            AtenTensorHandle handle = nullptr;
            if (lazy)
                return 0;
            STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_from_pyobject(args[i], &handle));
            tensors[i] = Tensor(handle);
            if (!has_memory_here(*tensors[i]))
                return 0;
        }
        for (size_t i = 0; i < NUMBERS; i++) {
            numbers[i] = PyLong_AsLongLong(args[TENSORS + i]);
            if (numbers[i] == -1 && PyErr_Occurred())
                return -1;
        }
        return 1;
    }
};

PyObject *to_python(const Tensor &tensor)
{
    void *made = nullptr;
    STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_to_pyobject(tensor.get(), nullptr, &made));
    return static_cast<PyObject *>(made);
}

PyObject *to_python(const std::optional<Tensor> &tensor)
{
    return tensor ? to_python(*tensor) : Py_NewRef(Py_None);
}

/* Without the interpreter's lock, as the dispatcher's callers run. */
class Unlocked {
    PyThreadState *state_ = PyEval_SaveThread();

  public:
    Unlocked() = default;
    Unlocked(const Unlocked &) = delete;
    ~Unlocked() { PyEval_RestoreThread(state_); }
};

template <typename Body>
PyObject *guarded(Body body)
{
    try {
        return body();
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

PyObject *dispatched(int taken, PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    if (taken < 0)
        return nullptr;
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t i = 0; all != nullptr && i < count; i++)
        PyTuple_SetItem(all, i, Py_NewRef(args[i]));
    PyObject *made = all != nullptr ? PyObject_Call(op, all, nullptr) : nullptr;
    Py_XDECREF(all);
    return made;
}

} // namespace

PyObject *direct_setup(PyObject *, PyObject *args)
{
    PyObject *types, *pairs, *spmm, *gradients;
    if (!PyArg_ParseTuple(args, "O!O!OO", &PyTuple_Type, &types, &PyTuple_Type, &pairs, &spmm, &gradients))
        return nullptr;
    if (torch_tensor_from_pyobject == nullptr || torch_tensor_to_pyobject == nullptr)
        Py_RETURN_FALSE;
    spmm_op = Py_NewRef(spmm);
    gradients_op = Py_NewRef(gradients);
    is_neg = PyUnicode_InternFromString("is_neg");
    if (is_neg == nullptr)
        return nullptr;
    for (Py_ssize_t i = 0; i < PyTuple_Size(pairs); i++) {
        Watcher watcher;
        if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "OO", &watcher.ask, &watcher.quiet))
            return nullptr;
        Py_INCREF(watcher.ask);
        Py_INCREF(watcher.quiet);
        watchers.push_back(watcher);
    }
    for (Py_ssize_t i = 0; i < PyTuple_Size(types); i++)
        plain_types.push_back(reinterpret_cast<PyTypeObject *>(Py_NewRef(PyTuple_GetItem(types, i))));
    Py_RETURN_TRUE;
}

PyObject *direct_spmm(PyObject *, PyObject *const *args, Py_ssize_t count)
{
    return guarded([&]() -> PyObject * {
        Arguments<5, 4> a; /* values, row_offsets, col_indices, dense, bias */
        const int taken = a.take(args, count, 4);
        if (taken != 1)
            return dispatched(taken, spmm_op, args, count);
        std::optional<Tensor> out;
        {
            Unlocked free;
            out = raw_spmm(*a.tensors[0], *a.tensors[1], *a.tensors[2], *a.tensors[3], a.tensors[4], a.numbers[0], a.numbers[1], a.numbers[2], a.numbers[3]);
        }
        return to_python(*out);
    });
}

PyObject *direct_gradients(PyObject *, PyObject *const *args, Py_ssize_t count)
{
    return guarded([&]() -> PyObject * {
        Arguments<5, 5> a; /* values, row_offsets, col_indices, dense, gradient */
        const int taken = a.take(args, count, 5);
        if (taken != 1)
            return dispatched(taken, gradients_op, args, count);
        std::tuple<std::optional<Tensor>, std::optional<Tensor>> made;
        {
            Unlocked free;
            made = raw_gradients(*a.tensors[0], *a.tensors[1], *a.tensors[2], *a.tensors[3], *a.tensors[4], a.numbers[0], a.numbers[1], a.numbers[2],
                                 a.numbers[3], a.numbers[4]);
        }
        return Py_BuildValue("(NN)", to_python(std::get<0>(made)), to_python(std::get<1>(made)));
    });
}

} // namespace sparse_autotune
