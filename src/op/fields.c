/* Checks and texts that come from the tables of fields. */
#include "op/fields.h"

#include <string.h>

#include "op/read.h"

int spk_field_index(const spk_field_info *field, const void *given)
{
    int value;
    memcpy(&value, (const char *)given + field->offset, sizeof value);
    return value;
}

spk_status spk_fields_check(const spk_op *op, const void *given)
{
    for (int i = 0; i < op->field_count; i++) {
        const spk_field_info *field = &op->fields[i];
        if (field->values != NULL && field->kind != SPK_FIELD_DTYPE) /* the message on a dtype says more */
            SPK_TRY(spk_read_enum(field->name, spk_field_index(field, given), (int)field->high));
    }
    return SPK_OK;
}

const char *spk_list_word(const char *list, int index, int *length)
{
    while (index-- > 0 && *list != '\0') {
        list += strcspn(list, "|");
        list += *list == '|';
    }
    *length = (int)strcspn(list, "|");
    return list;
}
