/* Numbers as text, without the cost of printf. */
#ifndef SPK_BASE_TEXT_H
#define SPK_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { SPK_NUMBER_TEXT = 24 };

/* In decimal, with a zero at the end; returns the length. */
size_t spk_number_text(int64_t number, char text[SPK_NUMBER_TEXT]);

#endif
