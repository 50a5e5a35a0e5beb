/* Names are compared by edits, whatever their capitals. */
#include "base/nearest.h"

#include <limits.h>
#include <string.h>

static int smallest(int a, int b, int c)
{
    int least = a < b ? a : b;
    return least < c ? least : c;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Edits (insert, delete, replace, swap of neighbours) between two short words, of which capitals are none. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 40 };
    int d[MOST + 1][MOST + 1], rows = (int)strnlen(a, MOST + 1), cols = (int)strnlen(b, MOST + 1);
    if (rows > MOST || cols > MOST)
        return INT_MAX;
    for (int i = 0; i <= rows; i++)
        d[i][0] = i;
    for (int j = 0; j <= cols; j++)
        d[0][j] = j;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= cols; j++) {
            d[i][j] = smallest(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (lower(a[i - 1]) != lower(b[j - 1])));
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]) && d[i - 2][j - 2] + 1 < d[i][j])
                d[i][j] = d[i - 2][j - 2] + 1;
        }
    return d[rows][cols];
}

static int common(const char *a, const char *b)
{
    int length = 0;
    while (a[length] != '\0' && lower(a[length]) == lower(b[length]))
        length++;
    return length;
}

static int edits(const char *text, const char *name)
{
    /* what the name begins with counts as near: --assume for --assume-finite */
    const size_t length = strlen(text);
    return length >= 3 && strncmp(name, text, length) == 0 ? 1 : distance(text, name);
}

const char *spk_nearest(const char *text, const char *const *names, int count)
{
    const char *best = NULL;
    int least = (int)strlen(text) / 4 + 2, longest = -1;
    const int limit = least;
    for (int i = 0; i < count; i++) {
        const int far = edits(text, names[i]);
        if (far < least && far < (int)strlen(names[i]))
            least = far;
    }
    if (least == limit)
        return NULL;
    for (int i = 0; i < count; i++) { /* reference_attn: four edits from reference_gemm, five from reference_attention */
        const int far = edits(text, names[i]);
        if (far <= least + least / 4 && far < (int)strlen(names[i]) && common(text, names[i]) > longest) {
            longest = common(text, names[i]);
            best = names[i];
        }
    }
    return best;
}
