#include "masks.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <sparsek/sparsek.h>

namespace sparse_autotune {

namespace {

/* A parameter's name in Python. */
std::string word_of(const spk_mask_parameter_info &p)
{
    std::string word = p.name;
    for (char &c : word)
        c = c == '-' ? '_' : c;
    return word;
}

bool shape_at(int number, spk_mask_shape_info *info)
{
    *info = {};
    info->struct_size = sizeof *info;
    return spk_mask_shape_get_info(static_cast<spk_mask_shape>(number), info) == SPK_OK;
}

spk_mask_parameter_info parameter_at(int number, int index)
{
    spk_mask_parameter_info info = {};
    info.struct_size = sizeof info;
    spk_mask_shape_get_parameter(static_cast<spk_mask_shape>(number), index, &info);
    return info;
}

/* The whole numbers of a sequence; false with an exception set. */
bool read_numbers(PyObject *sequence, std::vector<int64_t> *out)
{
    const Py_ssize_t count = PySequence_Size(sequence);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        if (item == nullptr)
            return false;
        out->push_back(PyLong_AsLongLong(item));
        Py_DECREF(item);
        if (PyErr_Occurred() != nullptr)
            return false;
    }
    return count >= 0;
}

/* Writes a parameter's members, which `at` begins. `list` holds what a list points to. */
bool take(const spk_mask_parameter_info &p, PyObject *value, void *at, std::vector<int64_t> *list)
{
    std::vector<int64_t> numbers;
    switch (p.value) {
    case SPK_MASK_VALUE_COUNT:
        *static_cast<int64_t *>(at) = PyLong_AsLongLong(value);
        break;
    case SPK_MASK_VALUE_SHARE:
        *static_cast<double *>(at) = PyFloat_AsDouble(value);
        break;
    case SPK_MASK_VALUE_FLAG:
        *static_cast<int *>(at) = PyObject_IsTrue(value);
        break;
    case SPK_MASK_VALUE_CELLS:
    case SPK_MASK_VALUE_RANGE: {
        const size_t wanted = p.value == SPK_MASK_VALUE_CELLS ? 3 : 2;
        if (read_numbers(value, &numbers) && numbers.size() != wanted)
            PyErr_Format(PyExc_ValueError, "%s: has %zd numbers, not %zd", word_of(p).c_str(), static_cast<Py_ssize_t>(numbers.size()),
                         static_cast<Py_ssize_t>(wanted));
        if (PyErr_Occurred() == nullptr)
            std::memcpy(at, numbers.data(), wanted * sizeof(int64_t));
        break;
    }
    case SPK_MASK_VALUE_LIST:
        list->reserve(1); /* so that an empty list is not NULL, which means none */
        if (read_numbers(value, list)) {
            static_cast<const int64_t **>(at)[0] = list->data();
            static_cast<int64_t *>(at)[1] = static_cast<int64_t>(list->size());
        }
        break;
    }
    return PyErr_Occurred() == nullptr;
}

bool take_words(int number, const spk_mask_shape_info &shape, PyObject *words, spk_generate *options, std::vector<int64_t> *list)
{
    Py_ssize_t taken = 0;
    for (int i = 0; i < shape.parameter_count; i++) {
        const spk_mask_parameter_info p = parameter_at(number, i);
        PyObject *value = PyDict_GetItemString(words, word_of(p).c_str());
        taken += value != nullptr;
        if (value != nullptr && !take(p, value, reinterpret_cast<char *>(options) + p.offset, list))
            return false;
    }
    if (taken != PyDict_Size(words))
        PyErr_Format(PyExc_ValueError, "shape: %s does not take all of these parameters", shape.name);
    return PyErr_Occurred() == nullptr;
}

/* What `make` makes of the bytes, None where there are none. It is called from here: no frame of Python's holds a bytearray, which
 * torch.compile fails at. After an exception, of an earlier array, it is not. */
PyObject *made_of(PyObject *make, PyObject *bytes)
{
    PyObject *made = nullptr;
    if (bytes != nullptr && PyErr_Occurred() == nullptr)
        made = PyByteArray_Size(bytes) > 0 ? PyObject_CallFunctionObjArgs(make, bytes, nullptr) : Py_NewRef(Py_None);
    Py_XDECREF(bytes);
    return made;
}

PyObject *array_of(PyObject *make, const void *data, int64_t bytes)
{
    return made_of(make, PyByteArray_FromStringAndSize(static_cast<const char *>(data), static_cast<Py_ssize_t>(bytes)));
}

/* In 32 bits; that they fit is known. */
PyObject *narrowed(PyObject *make, const int64_t *numbers, int64_t count)
{
    PyObject *bytes = PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(count * 4));
    auto *out = bytes == nullptr ? nullptr : reinterpret_cast<int32_t *>(PyByteArray_AsString(bytes));
    for (int64_t i = 0; out != nullptr && i < count; i++)
        out[i] = static_cast<int32_t>(numbers[i]);
    return made_of(make, bytes);
}

PyObject *arrays_of(const spk_mask *mask, PyObject *make)
{
    spk_mask_desc desc = {};
    desc.struct_size = sizeof desc;
    spk_mask_view(mask, &desc);
    if (desc.blocks > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "block: so small that there are more than 2^31 blocks");
        return nullptr;
    }
    const int64_t numbered = desc.tiles > 0 ? desc.blocks : 0;
    return Py_BuildValue("(NNNNL)", narrowed(make, desc.row_offsets, desc.grid_rows + 1), narrowed(make, desc.col_indices, desc.blocks),
                         array_of(make, desc.tile_numbers, numbered * 4), array_of(make, desc.tile_bits, desc.tiles * desc.tile_words * 4),
                         static_cast<long long>(desc.tiles));
}

/* Python's word for a member of spk_generate, where a message gives its value. */
void rename(std::string &text, const std::string &member, const char *word)
{
    const std::string given = member + " = ";
    const size_t at = (" " + text).find(" " + given);
    if (at != std::string::npos)
        text.replace(at, member.size(), word);
}

PyObject *fail(spk_status status)
{
    std::string text = spk_last_error(nullptr);
    rename(text, "rows", "queries");
    rename(text, "cols", "keys");
    rename(text, "lists", "heads");
    PyErr_SetString(status == SPK_ERR_OUT_OF_MEMORY ? PyExc_MemoryError : PyExc_ValueError, text.c_str());
    return nullptr;
}

PyObject *parameters_of(int number, const spk_mask_shape_info &shape)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list != nullptr && i < shape.parameter_count; i++) {
        const spk_mask_parameter_info p = parameter_at(number, i);
        PyObject *entry = Py_BuildValue("(siszLL)", word_of(p).c_str(), static_cast<int>(p.value), p.help, p.usual,
                                        static_cast<long long>(p.least), static_cast<long long>(p.most));
        if (entry == nullptr || PyList_Append(list, entry) != 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

} // namespace

PyObject *mask_shapes(PyObject *, PyObject *)
{
    PyObject *list = PyList_New(0);
    spk_mask_shape_info shape;
    for (int number = 1; list != nullptr && shape_at(number, &shape); number++) {
        PyObject *entry =
            Py_BuildValue("(ssON)", shape.name, shape.help, shape.is_random ? Py_True : Py_False, parameters_of(number, shape));
        if (entry == nullptr || PyList_Append(list, entry) != 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    return list;
}

PyObject *make_mask(PyObject *, PyObject *args)
{
    const char *name;
    long long rows, keys, high, wide, seed;
    PyObject *words, *make;
    if (!PyArg_ParseTuple(args, "sLLLLLOO", &name, &rows, &keys, &high, &wide, &seed, &words, &make))
        return nullptr;
    spk_generate options = {};
    options.struct_size = sizeof options;
    options.mask = spk_mask_shape_from_name(name);
    options.rows = rows;
    options.cols = keys;
    options.block_rows = high;
    options.block_cols = wide;
    options.seed = static_cast<uint64_t>(seed);
    std::vector<int64_t> list;
    spk_mask_shape_info shape;
    spk_mask *mask = nullptr;
    spk_status status;
    if (!shape_at(options.mask, &shape))
        return fail(SPK_ERR_ARGUMENT);
    if (!take_words(options.mask, shape, words, &options, &list))
        return nullptr;
    Py_BEGIN_ALLOW_THREADS status = spk_mask_create(nullptr, &options, &mask);
    Py_END_ALLOW_THREADS if (status != SPK_OK) return fail(status);
    PyObject *made = arrays_of(mask, make);
    spk_mask_destroy(&mask);
    return made;
}

} // namespace sparse_autotune
