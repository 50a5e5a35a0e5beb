#include "base/text.h"

#include <stdbool.h>
#include <string.h>

size_t spk_number_text(int64_t number, char text[SPK_NUMBER_TEXT])
{
    char reversed[SPK_NUMBER_TEXT];
    const bool negative = number < 0;
    uint64_t left = negative ? 0 - (uint64_t)number : (uint64_t)number;
    size_t count = 0, used = 0;
    do
        reversed[count++] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (negative)
        text[used++] = '-';
    while (count > 0)
        text[used++] = reversed[--count];
    text[used] = '\0';
    return used;
}
