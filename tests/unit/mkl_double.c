/* A test double of MKL's libmkl_rt, which multiplies nothing: what the library looks for in it before it is used. */
static int interface, threading;

int MKL_Set_Interface_Layer(int layer)
{
    return interface = layer;
}
int MKL_Set_Threading_Layer(int layer)
{
    return threading = layer;
}
int MKL_Set_Num_Threads_Local(int threads)
{
    return threads;
}
void MKL_Get_Version_String(char *text, int size)
{
    for (int i = 0; i < size; i++)
        text[i] = i < 6 ? "double"[i] : ' ';
}
void cblas_sgemm(void) {}
void cblas_dgemm(void) {}
