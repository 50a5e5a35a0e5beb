/* copy_lines: what its caller fills in. */
#ifndef SPK_BACKEND_CUDA_HELPERS_COPY_LINES_H
#define SPK_BACKEND_CUDA_HELPERS_COPY_LINES_H

enum { COPY_LINES_THREADS = 256, COPY_LINES_PIECE = 8 }; /* of a block; elements that a thread copies at a time */

/* Lines of 16-bit elements of a matrix for each item. What is beyond the end of a line of `to` is zeros. */
typedef struct copy_lines_task {
    const unsigned short *from;
    unsigned short *to; /* aligned to 16 bytes, as its lines are: to_ld % 8 == 0 */
    long long items, lines, length;
    long long from_ld, to_ld, from_stride, to_stride; /* elements from line to line, and from item to item */
} copy_lines_task;

#endif
