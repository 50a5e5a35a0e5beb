#include "handover.h"

#include <vector>

#include "direct.h"

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
PyObject *is_neg = nullptr;
PyObject *to_handle = nullptr, *from_handle = nullptr; /* torch._C._aoti's, where PyTorch's C interface has no such functions */

} // namespace

bool is_set_up()
{
    return !plain_types.empty();
}

bool is_plain(PyObject *object)
{
    for (PyTypeObject *type : plain_types)
        if (Py_TYPE(object) == type)
            return true;
    return false;
}

int unwatched()
{
    for (const Watcher &watcher : watchers) {
        const Owned found(PyObject_CallNoArgs(watcher.ask));
        if (found.get() == nullptr)
            return -1;
        const int same = found.get() == watcher.quiet ? 1 : PyObject_RichCompareBool(found.get(), watcher.quiet, Py_EQ);
        if (same != 1)
            return same;
    }
    return 1;
}

int is_not_negated(PyObject *tensor)
{
    const Owned negated(PyObject_CallMethodObjArgs(tensor, is_neg, nullptr));
    return negated.get() == nullptr ? -1 : negated.get() == Py_False;
}

bool has_memory_here(const Tensor &tensor)
{
    int32_t type = 0;
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(tensor.get(), &type));
    if (type != aoti_torch_device_type_cpu() && type != aoti_torch_device_type_cuda())
        return false;
    return tensor.numel() == 0 || tensor.const_data_ptr() != nullptr; /* zeros of some derivatives have none */
}

std::optional<Tensor> from_python(PyObject *object)
{
    AtenTensorHandle handle = nullptr;
    if (to_handle == nullptr) {
        STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_from_pyobject(object, &handle));
        return Tensor(handle);
    }
    const Owned capsule(PyObject_CallFunctionObjArgs(to_handle, object, nullptr));
    if (capsule.get() == nullptr)
        return std::nullopt;
    handle = static_cast<AtenTensorHandle>(PyCapsule_GetPointer(capsule.get(), nullptr));
    return handle != nullptr ? std::optional<Tensor>(Tensor(handle)) : std::nullopt;
}

PyObject *to_python(const Tensor &tensor)
{
    if (from_handle == nullptr) {
        void *made = nullptr;
        STABLE_TORCH_ERROR_CODE_CHECK(torch_tensor_to_pyobject(tensor.get(), nullptr, &made));
        return static_cast<PyObject *>(made);
    }
    /* of which the function only copies: its name says that it takes the handle over */
    const Owned capsule(PyCapsule_New(tensor.get(), nullptr, nullptr));
    return capsule.get() != nullptr ? PyObject_CallFunctionObjArgs(from_handle, capsule.get(), nullptr) : nullptr;
}

PyObject *hands_over(PyObject *, PyObject *)
{
    return PyBool_FromLong(torch_tensor_from_pyobject != nullptr && torch_tensor_to_pyobject != nullptr);
}

PyObject *handover_setup(PyObject *types, PyObject *pairs, PyObject *to, PyObject *from)
{
    if (to != Py_None && from != Py_None) {
        to_handle = Py_NewRef(to);
        from_handle = Py_NewRef(from);
    } else if (torch_tensor_from_pyobject == nullptr || torch_tensor_to_pyobject == nullptr) {
        Py_RETURN_FALSE;
    }
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

} // namespace sparse_autotune
