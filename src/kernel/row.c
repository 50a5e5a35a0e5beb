/* The frame around a row's functions: it makes the device current for the thread, so that a row need not. */
#include "kernel/row.h"

static spk_status enter(const spk_device *device, spk_entered *entered)
{
    return device->backend->enter != NULL ? device->backend->enter(device, entered) : SPK_OK;
}

static void leave(const spk_device *device, spk_entered *entered)
{
    if (device->backend->leave != NULL)
        device->backend->leave(device, entered);
}

spk_status spk_row_bind(spk_bound *bound)
{
    spk_entered entered;
    if (bound->kernel->ops->bind == NULL)
        return SPK_OK;
    SPK_TRY(enter(bound->device, &entered));
    const spk_status status = bound->kernel->ops->bind(bound);
    leave(bound->device, &entered);
    return status;
}

/* A device that is lost takes no calls. A library's row is not asked then: what the library holds is gone with the device. An own row still
 * releases what it has on the host. */
void spk_row_unbind(spk_bound *bound)
{
    spk_entered entered;
    if (bound->kernel->ops->unbind == NULL)
        return;
    const bool there = enter(bound->device, &entered) == SPK_OK;
    if (there || bound->kernel->library == NULL)
        bound->kernel->ops->unbind(bound);
    if (there)
        leave(bound->device, &entered);
}

spk_status spk_bound_update_values(spk_bound *bound, const void *values)
{
    spk_entered entered;
    if (bound->kernel->ops->update_values == NULL)
        return SPK_OK;
    SPK_TRY(enter(bound->device, &entered));
    const spk_status status = bound->kernel->ops->update_values(bound, values);
    leave(bound->device, &entered);
    return status;
}

spk_status spk_row_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    spk_entered entered;
    SPK_TRY(enter(bound->device, &entered));
    const spk_status status = bound->kernel->ops->run(bound, args, stream);
    leave(bound->device, &entered);
    return status;
}
