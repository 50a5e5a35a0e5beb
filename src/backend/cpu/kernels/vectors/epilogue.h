/* The epilogue of kernels (epilogue_body.h): S(epilogue) for a D of STORED, and T(epilogue) for one of REAL, which the product of factors
 * of 16 bits may have. */
#include "backend/cpu/kernels/vectors/stored.h"

#ifndef EPILOGUE_H
#define EPILOGUE_H
#include "backend/cpu/kernels/vectors/as_real.h"
#include "backend/cpu/kernels/vectors/epilogue_body.h"
#include "backend/cpu/kernels/vectors/as_stored.h"
#endif

#if STORED_BITS == 16 && !defined(EPILOGUE_STORED_H)
#define EPILOGUE_STORED_H
#include "backend/cpu/kernels/vectors/epilogue_body.h"
#endif
