/* Linear elasticity on a box of unit cubes, assembled from trilinear hexahedra: what spk_generate_elasticity is made of. */
#ifndef SPK_MATRIX_ELASTICITY_H
#define SPK_MATRIX_ELASTICITY_H

#include <stdbool.h>

#include "matrix/matrix.h"

typedef struct spk_elastic_box {
    int64_t cells[3];      /* unit cubes along x, y, z; >= 1 */
    double young, poisson; /* isotropic material */
    bool clamped;          /* the nodes with x = 0 are held: they have no rows and columns */
} spk_elastic_box;

/* The stiffness matrix in 3 x 3 blocks (displacements along x, y, z of a node), nodes numbered x fastest, then y, then z. Exactly
 * symmetric in f64 and in f32. */
spk_status spk_elasticity_assemble(const spk_mem *mem, const spk_elastic_box *box, spk_dtype dtype, spk_matrix **out);

#endif
