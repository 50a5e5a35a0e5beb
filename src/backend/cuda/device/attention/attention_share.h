/* The keys of a tile shared out over workers, where the last tiles would leave most of them without work: what the host writes down of it.
 */
#ifndef SPK_DEVICE_ATTENTION_SHARE_H
#define SPK_DEVICE_ATTENTION_SHARE_H

/* Steps [first, end) of a tile. */
typedef struct attention_share {
    int tile, first, end;
} attention_share;

/* Queries [row, end) of a tile that has `count` shares, from number `share` on, in the order of their keys. */
typedef struct attention_joined {
    int share, count;
    int item, head, row, end;
} attention_joined;

#endif
