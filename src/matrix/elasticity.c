/* Assembles the stiffness matrix of a box of hexahedra. Same bits on every machine: additions, multiplications and divisions in a
 * fixed order, a square root, and no contraction (set for this file by the build). */
#include "matrix/elasticity.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { NODES = 8, BLOCK = 9 };

/* Nodes of a mesh; their blocks fit in 64 bits with room to spare. */
#define NODE_LIMIT (INT64_C(1) << 30)
#define YOUNG_LEAST 1e-20 /* keeps every entry a normal float */
#define YOUNG_MOST 1e20

typedef struct element {
    double block[NODES][NODES][BLOCK];
} element;

/* The blocks of a mesh node and its 27 neighbours, by what surrounds the node along each axis (a cell after it, on both sides,
 * before it) and by the neighbour's offset + 1 along each axis. Unit cubes of one material: these are all there are. */
enum { CELL_AFTER = 0, CELLS_AROUND = 1, CELL_BEFORE = 2, PLACES = 27, NEIGHBOURS = 27 };

typedef struct stencils {
    double block[PLACES][NEIGHBOURS][BLOCK];
} stencils;

/* Corner c of the unit cube lies at the bits of c: x in bit 0, y in bit 1, z in bit 2. Its trilinear shape function is the product
 * over the axes of t (bit set) or 1 - t. */
static void shape_gradient(int corner, const double at[3], double gradient[3])
{
    double factor[3];
    for (int axis = 0; axis < 3; axis++)
        factor[axis] = corner >> axis & 1 ? at[axis] : 1 - at[axis];
    for (int axis = 0; axis < 3; axis++) {
        double others = factor[(axis + 1) % 3] * factor[(axis + 2) % 3];
        gradient[axis] = corner >> axis & 1 ? others : -others;
    }
}

/* Two Gauss points an axis integrate a unit cube exactly. Block (a, b) is the sum of
 * lambda ga gb^T + mu gb ga^T + mu (ga . gb) I, the gradients' products taken in an order that makes block (b, a) its exact
 * transpose. */
static void integrate_element(double young, double poisson, element *out)
{
    double lambda = young * poisson / ((1 + poisson) * (1 - 2 * poisson));
    double mu = young / (2 * (1 + poisson));
    double offset = 0.5 / sqrt(3.0);
    memset(out, 0, sizeof *out);
    for (int point = 0; point < NODES; point++) {
        double at[3], gradient[NODES][3];
        for (int axis = 0; axis < 3; axis++)
            at[axis] = point >> axis & 1 ? 0.5 + offset : 0.5 - offset;
        for (int corner = 0; corner < NODES; corner++)
            shape_gradient(corner, at, gradient[corner]);
        for (int a = 0; a < NODES; a++)
            for (int b = 0; b < NODES; b++) {
                const double *ga = gradient[a], *gb = gradient[b];
                double dot = ga[0] * gb[0] + ga[1] * gb[1] + ga[2] * gb[2];
                for (int i = 0; i < 3; i++)
                    for (int j = 0; j < 3; j++) {
                        double term = lambda * (ga[i] * gb[j]) + mu * (ga[j] * gb[i]);
                        if (i == j)
                            term += mu * dot;
                        out->block[a][b][3 * i + j] += 0.125 * term;
                    }
            }
    }
}

/* Adds what the cell on one side of a node (bit of `side`: 0 before, 1 after it along that axis) brings to a neighbour's block. */
static void add_cell(const element *cell, int side, const int place[3], const int neighbour[3], double block[BLOCK])
{
    int own = 0, other = 0;
    for (int axis = 0; axis < 3; axis++) {
        int after = side >> axis & 1;
        if (place[axis] == (after ? CELL_BEFORE : CELL_AFTER))
            return; /* no such cell */
        int corner = 1 - after + neighbour[axis] - 1;
        if (corner < 0 || corner > 1)
            return; /* the neighbour is no corner of it */
        own |= (1 - after) << axis;
        other |= corner << axis;
    }
    for (int i = 0; i < BLOCK; i++)
        block[i] += cell->block[own][other][i];
}

static void make_stencils(double young, double poisson, stencils *out)
{
    element cell;
    integrate_element(young, poisson, &cell);
    memset(out, 0, sizeof *out);
    for (int p = 0; p < PLACES; p++)
        for (int n = 0; n < NEIGHBOURS; n++) {
            int place[3] = {p % 3, p / 3 % 3, p / 9};
            int neighbour[3] = {n % 3, n / 3 % 3, n / 9};
            for (int side = 0; side < NODES; side++)
                add_cell(&cell, side, place, neighbour, out->block[p][n]);
        }
}

static int place_along(int64_t node, int64_t cells)
{
    return node == 0 ? CELL_AFTER : node == cells ? CELL_BEFORE : CELLS_AROUND;
}

static void store_block(spk_matrix *matrix, int64_t position, const double block[BLOCK])
{
    if (spk_type_is_double(matrix->dtype)) {
        memcpy((double *)matrix->values + position * BLOCK, block, BLOCK * sizeof *block);
        return;
    }
    for (int i = 0; i < BLOCK; i++)
        spk_value_set(matrix->values, matrix->dtype, position * BLOCK + i, block[i]);
}

/* Appends the block row of a mesh node: its neighbours in ascending order. Returns the end of the blocks. */
static int64_t append_node(const spk_elastic_box *box, const stencils *stencil, const int64_t node[3], spk_matrix *matrix, int64_t position)
{
    int64_t first_x = box->clamped ? 1 : 0;
    int64_t nodes_x = box->cells[0] + 1 - first_x, nodes_y = box->cells[1] + 1;
    int place = place_along(node[0], box->cells[0]) + 3 * place_along(node[1], box->cells[1]) + 9 * place_along(node[2], box->cells[2]);
    for (int n = 0; n < NEIGHBOURS; n++) {
        int64_t x = node[0] + n % 3 - 1, y = node[1] + n / 3 % 3 - 1, z = node[2] + n / 9 - 1;
        if (x < first_x || x > box->cells[0] || y < 0 || y > box->cells[1] || z < 0 || z > box->cells[2])
            continue;
        matrix->col_indices[position] = (z * nodes_y + y) * nodes_x + x - first_x;
        store_block(matrix, position, stencil->block[place][n]);
        position++;
    }
    return position;
}

static spk_status check_box(const spk_elastic_box *box, int64_t *nodes, int64_t *blocks)
{
    static const char axis_name[] = "xyz";
    *nodes = *blocks = 1;
    for (int axis = 0; axis < 3; axis++) {
        int64_t cells = box->cells[axis];
        if (cells < 1)
            return spk_fail(SPK_ERR_ARGUMENT, "cells_%c = %" PRId64 ": must be at least 1", axis_name[axis], cells);
        int64_t across = box->clamped && axis == 0 ? cells : cells < NODE_LIMIT ? cells + 1 : cells;
        if (across > NODE_LIMIT / *nodes)
            return spk_fail(SPK_ERR_ARGUMENT, "cells_%c = %" PRId64 ": the mesh would have more than %" PRId64 " nodes", axis_name[axis],
                            cells, NODE_LIMIT);
        *nodes *= across;
        *blocks *= 3 * across - 2; /* a node of a line has itself and two neighbours, but for the ends */
    }
    if (!(box->young >= YOUNG_LEAST && box->young <= YOUNG_MOST))
        return spk_fail(SPK_ERR_ARGUMENT, "young = %g: must be in %g .. %g", box->young, YOUNG_LEAST, YOUNG_MOST);
    if (!(box->poisson > -1 && box->poisson < 0.5))
        return spk_fail(SPK_ERR_ARGUMENT, "poisson = %g: must be above -1 and below 0.5", box->poisson);
    return SPK_OK;
}

spk_status spk_elasticity_assemble(const spk_mem *mem, const spk_elastic_box *box, spk_dtype dtype, spk_matrix **out)
{
    int64_t nodes = 0, blocks = 0;
    char types[SPK_TYPE_LIST_TEXT];
    if (!spk_type_holds_values(dtype))
        return spk_fail(SPK_ERR_UNSUPPORTED, "dtype = %d: matrices are generated as %s", (int)dtype,
                        spk_type_list(SPK_USES_OF_VALUES, "or", types, sizeof types));
    SPK_TRY(check_box(box, &nodes, &blocks));

    stencils *stencil = NULL;
    spk_matrix *matrix = NULL;
    spk_status status;
    SPK_GOTO(spk_alloc(mem, 1, sizeof *stencil, &stencil));
    SPK_GOTO(spk_matrix_make(mem, SPK_BSR, dtype, 3 * nodes, 3 * nodes, 3, 3, SPK_ROW_MAJOR, blocks, &matrix));
    make_stencils(box->young, box->poisson, stencil);

    int64_t row = 0, position = 0;
    matrix->row_offsets[0] = 0;
    int64_t node[3];
    for (node[2] = 0; node[2] <= box->cells[2]; node[2]++)
        for (node[1] = 0; node[1] <= box->cells[1]; node[1]++)
            for (node[0] = box->clamped ? 1 : 0; node[0] <= box->cells[0]; node[0]++) {
                position = append_node(box, stencil, node, matrix, position);
                matrix->row_offsets[++row] = position;
            }
    *out = matrix;
done:
    spk_free(mem, stencil);
    return status;
}

spk_status spk_generate_elasticity(const spk_mem *mem, const spk_generate *options, spk_matrix **out)
{
    spk_elastic_box box = {
        .cells = {options->cells_x, options->cells_y, options->cells_z},
        .young = options->young == 0 ? 1.0 : options->young,
        .poisson = options->poisson == 0 ? 0.3 : options->poisson,
        .clamped = true,
    };
    return spk_elasticity_assemble(mem, &box, options->dtype == SPK_DTYPE_DEFAULT ? SPK_F64 : options->dtype, out);
}
