#include "direct.h"

#include <array>

#include "handover.h"
#include "ops.h"

namespace sparse_autotune {

namespace {

PyObject *spmm_op = nullptr, *gradients_op = nullptr;

/* What a plain tensor is; data stays NULL where it is not contiguous, or has no memory or too many dimensions. */
void read(const Tensor &tensor, Facts *facts)
{
    int32_t dtype = 0;
    const int64_t dim = tensor.dim();
    if (dim < 1 || dim > static_cast<int64_t>(facts->sizes.size()) || !tensor.is_contiguous())
        return;
    const auto sizes = tensor.sizes();
    for (int64_t i = 0; i < dim; i++)
        facts->sizes[static_cast<size_t>(i)] = sizes[static_cast<size_t>(i)];
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(tensor.get(), &dtype));
    facts->dim = dim;
    facts->dtype = dtype;
    facts->data = tensor.const_data_ptr();
}

/* Arguments of a call: tensors (None: none) first, then whole numbers. */
template <size_t TENSORS, size_t NUMBERS> struct Arguments {
    std::array<std::optional<Tensor>, TENSORS> tensors;
    std::array<int64_t, NUMBERS> numbers;

    /* As unwatched(). needed: the first so many tensors must be there. */
    int take(PyObject *const *args, Py_ssize_t count, size_t needed)
    {
        if (!is_set_up() || count != static_cast<Py_ssize_t>(TENSORS + NUMBERS))
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
            const int plain = is_not_negated(args[i]);
            if (plain != 1)
                return plain;
            tensors[i] = from_python(args[i]);
            if (!tensors[i])
                return -1;
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

PyObject *tensor_or_none(const std::optional<Tensor> &tensor)
{
    return tensor ? to_python(*tensor) : Py_NewRef(Py_None);
}

PyObject *dispatched(int taken, PyObject *op, PyObject *const *args, Py_ssize_t count)
{
    if (taken < 0)
        return nullptr;
    const Owned all(PyTuple_New(count));
    for (Py_ssize_t i = 0; all.get() != nullptr && i < count; i++)
        PyTuple_SetItem(all.get(), i, Py_NewRef(args[i]));
    return all.get() != nullptr ? PyObject_Call(op, all.get(), nullptr) : nullptr;
}

typedef Arguments<SPMM_TENSORS, SPMM_NUMBERS> Spmm;

/* False: the product is of a kind that is not kept. */
bool see(const Spmm &call, Sight *sight)
{
    int32_t type = 0, index = 0;
    for (size_t i = 0; i < SPMM_TENSORS; i++)
        if (call.tensors[i])
            read(*call.tensors[i], &sight->facts[i]);
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(call.tensors[DENSE]->get(), &type));
    STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(call.tensors[DENSE]->get(), &index));
    sight->device = static_cast<intptr_t>(type) << 16 | index;
    sight->numbers = call.numbers;
    const auto &facts = sight->facts;
    for (size_t i = 0; i < SPMM_TENSORS; i++)
        if (call.tensors[i] && facts[i].data == nullptr)
            return false;
    return facts[VALUES].dim == 3 && facts[ROW_OFFSETS].dim == 1 && facts[COL_INDICES].dim == 1 && facts[BIAS].dim <= 1 &&
           facts[DENSE].numel() > 0;
}

Tensor run_recalled(const Known &known, const Sight &sight, const Tensor &dense)
{
    const std::vector<int64_t> sizes(known.out_sizes.begin(), known.out_sizes.begin() + known.out_dim);
    Tensor out = empty_like(dense, sizes, static_cast<int32_t>(sight.facts[DENSE].dtype));
    run_known(known, out.mutable_data_ptr());
    return out;
}

Tensor run_recorded(const Spmm &call, const Sight *sight)
{
    const Recording recording(sight);
    const auto &[values, row_offsets, col_indices, dense, bias] = call.tensors;
    const auto &[rows, cols, flags, version] = call.numbers;
    return raw_spmm(*values, *row_offsets, *col_indices, *dense, bias, rows, cols, flags, version);
}

} // namespace

PyObject *direct_setup(PyObject *, PyObject *args)
{
    PyObject *types, *pairs, *spmm, *gradients, *to, *from;
    if (!PyArg_ParseTuple(args, "O!O!OOOO", &PyTuple_Type, &types, &PyTuple_Type, &pairs, &spmm, &gradients, &to, &from))
        return nullptr;
    spmm_op = Py_NewRef(spmm);
    gradients_op = Py_NewRef(gradients);
    return handover_setup(types, pairs, to, from);
}

PyObject *direct_spmm(PyObject *, PyObject *const *args, Py_ssize_t count)
{
    return guarded([&]() -> PyObject * {
        Spmm call;
        const int taken = call.take(args, count, BIAS);
        if (taken != 1)
            return dispatched(taken, spmm_op, args, count);
        Sight sight;
        Known known;
        const bool kept = see(call, &sight), is_known = kept && recall(sight, &known);
        std::optional<Tensor> out;
        {
            Unlocked free;
            out = is_known ? run_recalled(known, sight, *call.tensors[DENSE]) : run_recorded(call, kept ? &sight : nullptr);
        }
        return to_python(*out);
    });
}

PyObject *direct_gradients(PyObject *, PyObject *const *args, Py_ssize_t count)
{
    return guarded([&]() -> PyObject * {
        Arguments<GRADIENTS_TENSORS, GRADIENTS_NUMBERS> a; /* in order of _spmm_gradients */
        const int taken = a.take(args, count, GRADIENTS_TENSORS);
        if (taken != 1)
            return dispatched(taken, gradients_op, args, count);
        std::tuple<std::optional<Tensor>, std::optional<Tensor>> made;
        {
            Unlocked free;
            const auto &[values, row_offsets, col_indices, dense, gradient] = a.tensors;
            const auto &[rows, cols, flags, version, want] = a.numbers;
            made = raw_gradients(*values, *row_offsets, *col_indices, *dense, *gradient, rows, cols, flags, version, want);
        }
        const Owned first(tensor_or_none(std::get<0>(made)));
        if (first.get() == nullptr)
            return nullptr;
        const Owned second(tensor_or_none(std::get<1>(made)));
        return second.get() != nullptr ? PyTuple_Pack(2, first.get(), second.get()) : nullptr;
    });
}

} // namespace sparse_autotune
